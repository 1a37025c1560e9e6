// tensorpar/search/solve/min_additions.hpp - what a step spends at least on adding gradients up, wherever
// that is done
#pragma once
#include <algorithm>
#include <array>
#include <map>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/cost/ask.hpp>
#include <tensorpar/op/kinds/pointwise.hpp>
#include <tensorpar/search/problem/choice_book.hpp>
#include <tensorpar/search/problem/flows.hpp>
#include <vector>

namespace tensorpar::search {

namespace detail {

template <cost::cost_model M, class Counts> class min_additions {
  training_graph const& t_;
  machine const& on_;
  M const& model_;
  choice_book<M> const& book_;
  training_flows const& flows_;
  std::vector<int> const& set_of_;
  Counts const& counts_;
  std::map<std::array<i64, 5>, double> known_;     // by set, slot and kind of value

  double addition(ir::layout const& l, shape const& whole) const {
    shape const part = ir::part_of(l, whole);
    shape const in[] = {part, part};
    cost::compute_query const q{op::any_op(add{}), {in, 2}, {&part, 1}, book_.options().scalar_bytes,
                                on_.kinds[0]};
    return counts_(l) * cost::detail::ask(model_, q);
  }

 public:
  min_additions(training_graph const& t, machine const& on, M const& model, choice_book<M> const& book,
                  training_flows const& flows, std::vector<int> const& set_of, Counts const& counts)
      : t_(t), on_(on), model_(model), book_(book), flows_(flows), set_of_(set_of), counts_(counts) {}

  /// In any of the layouts that value x has at a slot of operator f's group.
  double at(int f, value_slot const& s, int x) {
    int const set = set_of_[idx(f)];
    shape const& whole = t_.graph.type(x);
    i64 const kind = static_cast<i64>(whole.type);
    auto const [known, fresh] = known_.try_emplace({set, s.local, s.port, s.result, kind}, infinity);
    if (fresh)
      book_.each_layout(set, s, [&](ir::layout const& l) {
        known->second = std::min(known->second, addition(l, whole));
      });
    return known->second;
  }
  double sum() {
    double r = 0;
    int const micro = book_.options().micro_batches;
    std::vector<double> least(t_.graph.nodes.size(), infinity);       // by addition: where its result may lie
    for (int v = t_.forward_nodes; v < t_.graph.node_count(); ++v) {
      graph_node const& n = t_.graph.node(v);
      if (!adds_gradients(n) || n.origin < 0) continue;
      auto const slot = [&](int u) { return value_slot{local_of(u), 0, true}; };
      least[idx(v)] = at(n.origin, slot(v), n.out[0]);
      // where the operands lie, if they lie alike
      int const x = n.in[0], p = t_.graph.value(x).producer;
      if (p < 0 || t_.graph.node(p).origin < 0) continue;
      if (adds_gradients(t_.graph.node(p))) least[idx(v)] = std::min(least[idx(v)], least[idx(p)]);
      else {
        auto const& out = t_.graph.node(p).out;
        int const port = static_cast<int>(std::find(out.begin(), out.end(), x) - out.begin());
        least[idx(v)] =
            std::min(least[idx(v)], at(t_.graph.node(p).origin, {local_of(p), port, true}, x));
      }
      r += micro * least[idx(v)];
    }
    if (micro == 1) return r;
    for (int f = 0; f < t_.forward_nodes; ++f)
      for (value_slot const& s : flows_.groups[idx(f)].summed) {
        graph_node const& n = t_.graph.node(flows_.groups[idx(f)].nodes[idx(s.local)]);
        r += (micro - 1) * at(f, s, (s.result ? n.out : n.in)[idx(s.port)]);
      }
    return r;
  }

 private:
  int local_of(int v) const {
    auto const& all = flows_.groups[idx(t_.graph.node(v).origin)].nodes;
    return static_cast<int>(std::find(all.begin(), all.end(), v) - all.begin());
  }
};

}  // namespace detail

/// Seconds that no assignment's step spends less on additions: of gradients of values that several operators
/// read, which are added where they lie, and of gradients of one micro-batch to those of others. Each counts
/// as where it takes least, among the places that some choice gives to its operands or its result.
/// `set_of`: by forward operator, of the book's sets. `counts(layout)`: what a second there counts.
/// O(operators * choices).
template <cost::cost_model M, class Counts>
double min_additions(training_graph const& t, machine const& on, M const& model, choice_book<M> const& book,
                       training_flows const& flows, std::vector<int> const& set_of, Counts const& counts) {
  return detail::min_additions<M, Counts>(t, on, model, book, flows, set_of, counts).sum();
}

}  // namespace tensorpar::search
