// tensorpar/search/objective.hpp - from a training graph, a machine and a cost model to a mapping problem
#pragma once
#include <algorithm>
#include <array>
#include <map>
#include <tensorpar/graph/relaxation.hpp>
#include <tensorpar/search/evaluate.hpp>
#include <tensorpar/search/flows.hpp>
#include <tensorpar/search/layout_prices.hpp>
#include <tensorpar/search/spreads.hpp>

namespace tensorpar {

struct objective_options {
  int grain = 1;                  // side by side: ranges are divided at multiples of this
  i64 scalar_bytes = 4;
  int micro_batches = 1;          // forward, backward and their movements count so many times, updates once
};

namespace detail {

template <cost_model M> class objective_builder {
 public:
  objective_builder(training_graph const& t, machine const& on, M const& model, objective_options const& o)
      : t_(t), g_(t.graph), on_(on), model_(model), o_(o), prices_(model, on, o.scalar_bytes), flows_(t, o.micro_batches) {
    if (t_.forward_nodes < 1) throw error("the graph has no operators", "search", "at least one operator");
    make_tree();
    for (operator_group& q : flows_.groups) {
      number_shapes(q.inner);
      for (auto& [slot, x] : q.everywhere) x = prices_.id(g_.type(x));
    }
    for (auto& [ab, all] : flows_.between) number_shapes(all);
    ranges_ = reachable_ranges(tree_, on_.size(), o_.grain);
    leaf_of_.assign(detail::idx(t_.forward_nodes), -1);
    for (int i = 0; i < tree_.size(); ++i) if (tree_[i].kind == sp_kind::leaf) leaf_of_[detail::idx(tree_[i].left)] = i;
  }

  /// The problem over the spreads within these limits. Choices that cannot be part of an assignment of at most `worth_having` seconds are
  /// left out: those with which the operators alone take longer. Movements between two choices that cannot be together so either are
  /// not priced: they cost `never`.
  mapping_problem make(spread_limits const& l, double worth_having = never) {
    limits_ = l;
    p_ = {};
    p_.tree = tree_;
    p_.relaxed = relaxed_;
    p_.devices = on_.size();
    p_.grain = o_.grain;
    for (int d = 0; d < on_.size(); ++d) p_.capacity.push_back(on_.kind_of(d).memory);
    kinds_.clear();
    set_id_ = classes_id_ = cost_id_ = {};
    cost_parts_.clear();
    for (int f = 0; f < t_.forward_nodes; ++f) make_choices(f);
    excess_.clear();
    if (worth_having < never) leave_out(worth_having);
    make_pairs();
    return std::move(p_);
  }
  std::size_t moves_asked() const { return prices_.asked(); }

 private:
  /// What all operators of a choice set share.
  struct kind_of_group {
    std::vector<iteration_space> spaces;
    std::vector<std::string> letters;
    std::map<std::array<int, 3>, std::vector<int>> layouts;   // slot -> choice -> layout
  };

  training_graph const& t_;
  computation_graph const& g_;
  machine const& on_;
  M const& model_;
  objective_options o_;
  layout_prices<M> prices_;
  sp_binary tree_;
  bool relaxed_ = false;
  spread_limits limits_;
  std::vector<std::vector<double>> excess_;       // set -> choice -> seconds above the set's least, where there is a bar;
  double slack_ = never;                          // how much all operators may be above their least together
  mapping_problem p_;
  training_flows flows_;
  std::vector<kind_of_group> kinds_;
  std::vector<std::vector<device_range>> ranges_;
  std::vector<int> leaf_of_;
  interner set_id_, classes_id_, cost_id_;
  std::map<int, std::array<int, 3>> cost_parts_;  // pair signature -> cost, rows, cols

  void number_shapes(value_flows& all) {
    for (value_flow& f : all) f.shape_id = prices_.id(g_.type(f.value));
  }

  void make_tree() {
    std::vector<std::vector<int>> before(detail::idx(t_.forward_nodes));
    for (int v = 0; v < t_.forward_nodes; ++v) before[detail::idx(v)] = g_.predecessors(v);
    auto const work = [this](int v) {
      std::vector<shape> in, out;
      for (int x : g_.node(v).in) in.push_back(g_.type(x));
      for (int x : g_.node(v).out) out.push_back(g_.type(x));
      any_op const& op = g_.node(v).op;
      return 1 + op.op->flops(op.attr, {in.data(), static_cast<int>(in.size())}, {out.data(), static_cast<int>(out.size())});
    };
    auto const r = relax(before, work);
    relaxed_ = !r.added.empty();
    tree_ = binary(r.tree, sp_shape::left);
  }

  int set_id(int f) {
    std::vector<i64> key = flows_.key_of(f);
    for (device_range r : ranges_[detail::idx(leaf_of_[detail::idx(f)])]) key.push_back(static_cast<i64>(r.start) * (1 << 20) + r.size);
    return set_id_(key);
  }

  std::vector<int> const& layouts(int set, value_slot const& s) {
    kind_of_group& k = kinds_[detail::idx(set)];
    auto const [at, fresh] = k.layouts.try_emplace({s.local, s.port, s.result}, std::vector<int>{});
    if (fresh)
      for (spread const& c : p_.sets[detail::idx(set)].spreads) {
        auto const& space = k.spaces[detail::idx(s.local)];
        auto const& letters = k.letters[detail::idx(s.local)];
        at->second.push_back(prices_.id(s.result ? result_layout(space, letters, c, s.port) : operand_layout(space, letters, c, s.port)));
      }
    return at->second;
  }

  void make_choices(int f) {
    int const set = set_id(f);
    p_.set_of.push_back(set);
    graph_node const& forward = g_.node(f);
    p_.names.push_back((forward.name.empty() ? std::string() : forward.name + ":") + std::string(forward.op.op->name));
    if (set < static_cast<int>(p_.sets.size())) return;
    operator_group const& q = flows_.groups[detail::idx(f)];
    kind_of_group k;
    for (int v : q.nodes) { k.spaces.push_back(space_of(g_, v)); k.letters.push_back(g_.node(v).letters); }
    choice_set c;
    auto const& ranges = ranges_[detail::idx(leaf_of_[detail::idx(f)])];
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      if (i + 1 < ranges.size() && ranges[i + 1].start == ranges[i].start) continue;   // the largest range from this start has them all
      auto const some = legal_spreads(k.spaces.front(), ranges[i].start, ranges[i].size, p_.devices, limits_);
      c.spreads.insert(c.spreads.end(), some.begin(), some.end());
    }
    for (spread const& s : c.spreads) c.sizes.push_back(static_cast<int>(s.size()));
    p_.sets.push_back(std::move(c));
    kinds_.push_back(std::move(k));
    price(set, q);
  }

  /// Relaxed costs (reduced.hpp) make this safe whatever runs side by side.
  void leave_out(double worth_having) {
    std::vector<std::vector<double>> least(p_.sets.size());
    std::vector<double> best(p_.sets.size(), never);
    double sum = 0;
    for (int f = 0; f < p_.operators(); ++f) {
      auto const s = detail::idx(p_.set_of[detail::idx(f)]);
      if (least[s].empty())
        for (int i = 0; i < p_.sets[s].count(); ++i) {
          int size = p_.devices;
          for (device_range r : ranges_[detail::idx(leaf_of_[detail::idx(f)])]) if (p_.fits(f, i, r)) size = std::min(size, r.size);
          least[s].push_back(p_.sets[s].seconds[detail::idx(i)] * size / p_.devices);
          best[s] = std::min(best[s], least[s].back());
        }
      sum += best[s];
    }
    slack_ = worth_having * (1 + 1e-9) - sum;
    excess_.assign(p_.sets.size(), {});
    for (std::size_t s = 0; s < p_.sets.size(); ++s) {
      choice_set& c = p_.sets[s];
      std::vector<char> keep;
      for (double x : least[s]) keep.push_back(x - best[s] <= slack_);
      std::size_t n = 0;
      for (std::size_t i = 0; i < keep.size(); ++i) {
        if (!keep[i]) continue;
        excess_[s].push_back(least[s][i] - best[s]);
        c.spreads[n] = c.spreads[i];
        c.sizes[n] = c.sizes[i];
        c.seconds[n] = c.seconds[i];
        c.bytes[n++] = c.bytes[i];
      }
      c.spreads.resize(n);
      c.sizes.resize(n);
      c.seconds.resize(n);
      c.bytes.resize(n);
      kinds_[s].layouts.clear();
    }
  }

  double compute_seconds(graph_node const& n, std::vector<shape> const& in, std::vector<shape> const& out, int start, int size) const {
    double worst = 0;
    std::vector<char> asked(on_.kinds.size(), 0);
    for (int d = start; d < start + size; ++d) {
      auto const kind = detail::idx(on_.device[detail::idx(d)]);
      if (asked[kind]) continue;
      asked[kind] = 1;
      double const s = model_.seconds(compute_query{
          n.op, {in.data(), static_cast<int>(in.size())}, {out.data(), static_cast<int>(out.size())}, o_.scalar_bytes, on_.kinds[kind]});
      worst = s > worst ? s : worst;
      if (on_.kinds.size() == 1) break;
    }
    return worst;
  }

  void price(int set, operator_group const& q) {
    choice_set& c = p_.sets[detail::idx(set)];
    auto const n = detail::idx(c.count());
    c.seconds.assign(n, 0);
    c.bytes.assign(n, 0);
    std::vector<shape> in, out;
    for (std::size_t t = 0; t < q.nodes.size(); ++t) {
      graph_node const& node = g_.node(q.nodes[t]);
      int const local = static_cast<int>(t);
      double const times = node.phase == step_phase::update ? 1 : o_.micro_batches;
      for (std::size_t i = 0; i < n; ++i) {
        in.clear();
        out.clear();
        for (std::size_t k = 0; k < node.in.size(); ++k)
          in.push_back(part_of(prices_.layout_of(layouts(set, {local, static_cast<int>(k), false})[i]), g_.type(node.in[k])));
        for (std::size_t k = 0; k < node.out.size(); ++k)
          out.push_back(part_of(prices_.layout_of(layouts(set, {local, static_cast<int>(k), true})[i]), g_.type(node.out[k])));
        c.seconds[i] += times * compute_seconds(node, in, out, c.spreads[i].start, c.sizes[i]);
      }
    }
    std::vector<int> wanted;
    for (std::size_t i = 0; i < n; ++i) {
      for (value_flow const& f : q.inner) {
        wanted_by(f, set, static_cast<int>(i), wanted);
        for (int w : wanted) c.seconds[i] += f.times * prices_.seconds(f.shape_id, layouts(set, f.from)[i], w);
      }
      for (auto const& [s, shape_id] : q.everywhere) {
        int const all = prices_.id(canonical(layout{0, {{part_kind::copy, -1, p_.devices, 1}}}));
        c.seconds[i] += prices_.seconds(shape_id, layouts(set, s)[i], all);
      }
    }
    add_bytes(set, q);
  }

  /// An estimate that adds up over operators: parameters and their gradients in their home layout, optimizer state, results, and operands
  /// as this operator wants them (its own copies where they were moved). Gradients of activations, which come and go, and scratch space
  /// are not counted; counting moved and unmoved operands alike makes up for them in deep networks.
  void add_bytes(int set, operator_group const& q) {
    choice_set& c = p_.sets[detail::idx(set)];
    std::vector<int> counted;
    auto const add = [&](int x, value_slot const& s, i64 times) {
      if (std::find(counted.begin(), counted.end(), x) != counted.end()) return;
      counted.push_back(x);
      auto const& l = layouts(set, s);
      for (std::size_t i = 0; i < c.bytes.size(); ++i) c.bytes[i] += times * prices_.bytes(l[i], g_.type(x));
    };
    for (std::size_t t = 0; t < q.nodes.size(); ++t) {
      graph_node const& n = g_.node(q.nodes[t]);
      int const local = static_cast<int>(t);
      for (std::size_t k = 0; k < n.in.size(); ++k) {
        value_role const role = g_.value(n.in[k]).role;
        if (t == 0 || role == value_role::state) add(n.in[k], {local, static_cast<int>(k), false}, role == value_role::parameter ? 2 : 1);
      }
      if (t == 0) for (std::size_t k = 0; k < n.out.size(); ++k) add(n.out[k], {local, static_cast<int>(k), true}, 1);
    }
  }

  /// The different layouts in which a choice of the receiver wants a value.
  void wanted_by(value_flow const& f, int set, int choice, std::vector<int>& wanted) {
    wanted.clear();
    for (value_slot const& s : f.to) {
      int const want = layouts(set, s)[detail::idx(choice)];
      if (std::find(wanted.begin(), wanted.end(), want) == wanted.end()) wanted.push_back(want);
    }
  }

  /// Choices of one side with the same layouts at all slots of these flows.
  int classes_for(int set, value_flows const& all, bool first) {
    interner number;
    choice_classes c{set, 0, {}};
    std::vector<i64> key, ids;
    for (int i = 0; i < p_.sets[detail::idx(set)].count(); ++i) {
      key.clear();
      for (value_flow const& f : all) {
        if (f.from_first == first) { key.push_back(layouts(set, f.from)[detail::idx(i)]); continue; }
        ids.clear();
        for (value_slot const& s : f.to) ids.push_back(layouts(set, s)[detail::idx(i)]);
        std::sort(ids.begin(), ids.end());
        ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
        key.push_back(static_cast<i64>(ids.size()));
        key.insert(key.end(), ids.begin(), ids.end());
      }
      c.of.push_back(number(key));
    }
    c.count = number.size();
    std::vector<i64> whole{set};
    whole.insert(whole.end(), c.of.begin(), c.of.end());
    int const id = classes_id_(whole);
    if (id == static_cast<int>(p_.classes.size())) p_.classes.push_back(std::move(c));
    return id;
  }

  void make_pairs() {
    std::vector<int> wanted;
    for (auto const& [ab, all] : flows_.between) {
      int const sa = p_.set_of[detail::idx(ab.first)], sb = p_.set_of[detail::idx(ab.second)];
      std::vector<i64> key{sa, sb};
      flows_.put(key, all);
      int const id = cost_id_(key);
      auto const [at, fresh] = cost_parts_.try_emplace(id, std::array<int, 3>{});
      if (fresh) {
        int const rows = classes_for(sa, all, true), cols = classes_for(sb, all, false);
        std::vector<int> const ra = representatives(rows), rb = representatives(cols);
        std::vector<double> const above_a = least_excess(rows), above_b = least_excess(cols);
        pair_cost c{static_cast<int>(ra.size()), static_cast<int>(rb.size()), std::vector<double>(ra.size() * rb.size(), 0)};
        for (value_flow const& f : all) {
          auto const &from = f.from_first ? ra : rb, &to = f.from_first ? rb : ra;
          auto const have = layouts(f.from_first ? sa : sb, f.from);
          std::size_t const from_step = f.from_first ? rb.size() : 1, to_step = f.from_first ? 1 : rb.size();
          for (std::size_t j = 0; j < to.size(); ++j) {
            wanted_by(f, f.from_first ? sb : sa, to[j], wanted);
            for (std::size_t i = 0; i < from.size(); ++i) {
              double& cell = c.seconds[i * from_step + j * to_step];
              if (!excess_.empty() && (f.from_first ? above_a[i] + above_b[j] : above_b[i] + above_a[j]) > slack_) {
                cell = never;
                continue;
              }
              double t = 0;
              for (int w : wanted) t += prices_.seconds(f.shape_id, have[detail::idx(from[i])], w);
              cell += f.times * t;
            }
          }
        }
        p_.costs.push_back(std::move(c));
        at->second = {static_cast<int>(p_.costs.size()) - 1, rows, cols};
      }
      p_.pairs.push_back({ab.first, ab.second, at->second[0], at->second[1], at->second[2]});
    }
  }
  std::vector<double> least_excess(int classes) const {
    choice_classes const& c = p_.classes[detail::idx(classes)];
    std::vector<double> r(detail::idx(c.count), never);
    if (!excess_.empty())
      for (std::size_t i = 0; i < c.of.size(); ++i) {
        double& x = r[detail::idx(c.of[i])];
        x = std::min(x, excess_[detail::idx(c.set)][i]);
      }
    return r;
  }
  std::vector<int> representatives(int classes) const {
    choice_classes const& c = p_.classes[detail::idx(classes)];
    std::vector<int> r(detail::idx(c.count), -1);
    for (std::size_t i = 0; i < c.of.size(); ++i) if (int& x = r[detail::idx(c.of[i])]; x < 0) x = static_cast<int>(i);
    return r;
  }
};

}  // namespace detail

/// The mapping problem of a training step. Every movement that the step needs is counted: producer to consumer, gradients back, partial
/// sums of gradients to the parameter's home, a shared parameter's copies to its further users and their gradients back. A value read
/// several times by one operator and its derivatives in one layout is delivered once; two operators that want it in the same layout each
/// pay (the executor lets them share, and adds gradients that lie alike before moving them: the objective is never below what it does).
/// Graphs that are not series-parallel get the tree of graph/relaxation.hpp; all their movements still count.
/// Throws `error` for a graph without operators. O(operators * choices + pairs of layouts), the latter asked of the model once each.
template <cost_model M> mapping_problem make_problem(training_graph const& t, machine const& on, M const& model,
                                                     spread_limits const& l = {}, objective_options const& o = {}) {
  return detail::objective_builder<M>(t, on, model, o).make(l);
}

}  // namespace tensorpar
