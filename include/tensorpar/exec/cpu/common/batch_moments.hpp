// tensorpar/exec/cpu/common/batch_moments.hpp - the statistics that batch norm is evaluated with, from as
// many batches as one likes
#pragma once
#include <concepts>
#include <map>
#include <set>
#include <string>
#include <tensorpar/core/index.hpp>
#include <tensorpar/exec/device/has_parameters.hpp>
#include <tensorpar/exec/device/scalar.hpp>
#include <tensorpar/ir/running_statistics.hpp>
#include <type_traits>
#include <vector>

namespace tensorpar::exec {

/// Means of x and of x * x for every batch norm, over batches of any number and size: "precise" statistics
/// (Wu and Johnson 2021), of the weights as they are, where a moving average mixes those of many steps. In
/// every batch each layer is normalised by that batch, as in training. All batches are run with the same
/// weights, on the graphs that `with_moments_as_outputs` makes (ir/running_statistics.hpp); what comes of
/// them is stored where `with_running_statistics` asks for it. Added up in double, or in a scalar that is no
/// floating-point number.
template <class Scalar> class batch_moments {
 public:
  using number = std::conditional_t<std::floating_point<Scalar>, double, Scalar>;

  /// Those of the pass that was run last. Throws `error`, as below, for a graph whose statistics are not
  /// outputs, and for another model than before: nothing has been added then.
  template <class Pass>
    requires requires(Pass const& p) { p.output(""); }
  void add(Pass const& pass) {
    gather(pass.graph().graph, [&](std::string const& name) { return pass.output(name); });
  }
  /// Those of an evaluation under a plan: `found` is what run.evaluate(batch, moments_in(run.graph().graph))
  /// returned, one micro-batch after the other.
  template <class Run> void add(Run const& run, std::map<std::string, std::vector<Scalar>> const& found) {
    gather(run.graph().graph, [&](std::string const& name) {
      auto const it = found.find(name);
      return it == found.end() ? std::vector<Scalar>{} : it->second;
    });
  }
  /// By name, [2, c]: mean of x, mean of x * x. Empty before a batch was added.
  std::map<std::string, std::vector<number>> means() const {
    std::map<std::string, std::vector<number>> r;
    for (auto const& [name, s] : sums_) {
      number const each = scalar_traits<number>::reciprocal(scalar_traits<number>::from_integer(s.count));
      for (number x : s.sum) r[name].push_back(x * each);
    }
    return r;
  }
  /// Gives the parameters that keep statistics their values. Throws `error`, before any is stored, where no
  /// batch was added, and for a model whose batch norms are others.
  template <has_parameters Run> void store(Run& run) const {
    if (!added_)
      throw error("no batch has been added", "batch_moments", "add, after a pass, for one batch or more");
    computation_graph const& g = run.graph().graph;
    std::map<std::string, int> kept;
    for (graph_node const& n : g.nodes)
      if (int const x = ir::detail::running_statistics_of(g, n); x >= 0) kept.emplace(g.value(x).name, x);
    auto const all = means();
    for (auto const& [name, m] : all)
      if (!kept.contains(name))
        throw error("the model keeps no '" + name + "'", "batch_moments",
                    "a graph made by with_running_statistics");
    for (auto const& [name, x] : kept) {
      auto const it = all.find(name);
      if (it == all.end() || static_cast<i64>(it->second.size()) != g.type(x).elements())
        throw error("there is no '" + name + "' of this size", "batch_moments",
                    op::spell(g.type(x)) + ", of the same model's batches");
    }
    for (auto const& [name, m] : all) {
      std::vector<typename Run::scalar> values;
      for (number x : m) values.push_back(static_cast<typename Run::scalar>(x));
      run.store(kept.at(name), values);
    }
  }

 private:
  struct sums {
    std::vector<number> sum;
    i64 count = 0;                                         // elements of a channel
  };
  std::map<std::string, sums> sums_;
  bool added_ = false;

  template <class Output> void gather(computation_graph const& g, Output const& output) {
    std::map<std::string, sums> fresh;
    // of each name in the graph: one, or one for every micro-batch that it holds
    std::map<std::string, std::size_t> values;
    std::set<int> seen;
    for (std::string const& name : ir::moments_in(g)) {
      sums& s = fresh[name];
      for (graph_port const& o : g.outputs)
        if (o.name == name) {
          s.sum.resize(idx(g.type(o.value).elements()), number(0));
          s.count += ir::detail::summed_elements(g, o.value);
          seen.insert(o.value);
          ++values[name];
        }
    }
    for (ir::detail::taken_moments const& m : ir::detail::moments_taken(g))
      if (!seen.contains(m.value))
        throw error("a batch norm's statistics, '" + m.name + "', are no output", "batch_moments",
                    "a graph made by with_moments_as_outputs");
    bool same = !added_ || fresh.size() == sums_.size();
    for (auto const& [name, s] : fresh)
      same = same && (!added_ || (sums_.contains(name) && sums_.at(name).sum.size() == s.sum.size()));
    if (!same)
      throw error("batch norms that differ from those before", "batch_moments", "batches of one model");
    for (auto& [name, s] : fresh) {
      std::vector<Scalar> const found = output(name);
      std::size_t const n = s.sum.size(), all = n * values[name];
      if (found.empty() || found.size() % all != 0)
        throw error("output '" + name + "' has " + std::to_string(found.size()) + " elements",
                    "batch_moments", std::to_string(all) + ", or as many for each of several micro-batches");
      for (std::size_t i = 0; i < found.size(); ++i) s.sum[i % n] += static_cast<number>(found[i]);
      s.count *= static_cast<i64>(found.size() / all);
    }
    for (auto const& [name, s] : fresh) {
      sums& to = sums_[name];
      to.sum.resize(s.sum.size(), number(0));
      for (std::size_t i = 0; i < s.sum.size(); ++i) to.sum[i] += s.sum[i];
      to.count += s.count;
    }
    added_ = true;
  }
};

}  // namespace tensorpar::exec
