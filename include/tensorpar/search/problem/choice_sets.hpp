// tensorpar/search/problem/choice_sets.hpp - choices of operators and what each takes by itself, made once
// however many graphs ask
#pragma once
#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/cost/ask.hpp>
#include <tensorpar/ir/machine/machine_check.hpp>
#include <tensorpar/op/kinds/pointwise.hpp>
#include <tensorpar/search/problem/choice_layouts.hpp>
#include <tensorpar/search/problem/evaluate.hpp>
#include <tensorpar/search/problem/flow_lines.hpp>
#include <tensorpar/search/problem/flows.hpp>
#include <utility>

namespace tensorpar::search {

/// Choice sets by all that they depend on; see choice_book.
template <cost::cost_model M> class choice_sets : public choice_layouts<M> {
  using base = choice_layouts<M>;

 public:
  using base::tables;

  /// Numbers the shapes that flows are about.
  void number_shapes(training_graph const& t, training_flows& f) {
    auto const number = [&](value_flows& all) {
      for (value_flow& x : all) x.shape_id = prices_.id(t.graph.type(x.value));
    };
    for (operator_group& q : f.groups) {
      number(q.inner);
      for (value_everywhere& e : q.everywhere) e.shape_id = prices_.id(t.graph.type(e.value));
    }
    for (auto& [ab, all] : f.between) number(all);
  }

  /// The choice set of a forward operator that may stand in these ranges (ascending by start and size).
  int set_for(training_graph const& t, training_flows const& flows, int f,
              std::vector<device_range> const& ranges) {
    int const whole = set_for(t, flows, f, ranges, choice_saving{});
    bool updates = false;
    for (int v : flows.groups[idx(f)].nodes)
      updates = updates || t.graph.node(v).phase == step_phase::update;
    if (!o_.shard_updates || !updates) return whole;
    int const parts = set_for(t, flows, f, ranges, {ir::zero_stage::updates, false});
    int const set = set_id_({-1, whole, parts});
    if (set < static_cast<int>(tables.sets.size())) return set;
    choice_set c = tables.sets[idx(whole)];
    choice_set const& other = tables.sets[idx(parts)];
    c.savings.assign(c.shardings.size(), {});
    for (std::size_t i = 0; i < c.shardings.size(); ++i) {
      if (!(other.seconds[i] < c.seconds[i] * (1 - 1e-12))) continue;
      c.seconds[i] = other.seconds[i];
      c.bytes[i] = other.bytes[i];
      c.savings[i] = other.savings[i];
    }
    tables.sets.push_back(std::move(c));
    kinds_.push_back(kinds_[idx(whole)]);
    for (auto i = kinds_.back().layouts.begin(); i != kinds_.back().layouts.end();)
      i = in_parts(set, i->first[0]) ? kinds_.back().layouts.erase(i) : std::next(i);
    return set;
  }
  /// The same where every choice saves this. The graph says what is computed again and where weights live.
  int set_for(training_graph const& t, training_flows const& flows, int f,
              std::vector<device_range> const& ranges, choice_saving saving) {
    std::vector<i64> key = flows.key_of(f);
    key.push_back(static_cast<i64>(saving.zero) * 2 + saving.recompute);
    for (device_range r : ranges) key.push_back(static_cast<i64>(r.first) * (1 << 20) + r.count);
    int const set = set_id_(key);
    if (set < static_cast<int>(tables.sets.size())) return set;
    operator_group const& q = flows.groups[idx(f)];
    kind_of_group k;
    for (int v : q.nodes) {
      k.spaces.push_back(ir::space_of(t.graph, v));
      k.letters.push_back(t.graph.node(v).letters);
      k.update.push_back(t.graph.node(v).phase == step_phase::update);
    }
    k.ranges = ranges;
    k.choices = shardings_in(k.spaces.front(), ranges);
    choice_set c;
    c.shardings = k.choices->shardings;
    for (ir::sharding const& s : c.shardings) c.sizes.push_back(static_cast<int>(s.size()));
    if (!(saving == choice_saving{})) c.savings.assign(c.shardings.size(), saving);
    tables.sets.push_back(std::move(c));
    kinds_.push_back(std::move(k));
    price(t, set, q);
    return set;
  }

  /// Leaves the choices out for which `keep` has no excess, in all sets: `excess[set][choice]` seconds above
  /// the set's least, `never` for those that go. From then on pairs of choices that exceed `slack` together
  /// cost `never`. Precondition: no pair was asked for yet.
  void leave_out(std::vector<std::vector<double>> const& excess, double slack) {
    slack_ = slack;
    excess_.assign(tables.sets.size(), {});
    for (std::size_t s = 0; s < tables.sets.size(); ++s) {
      choice_set& c = tables.sets[s];
      keep_layouts(kinds_[s], excess[s]);
      auto const sift = [&](auto& of) {
        if (of.empty()) return;
        std::size_t n = 0;
        for (std::size_t i = 0; i < excess[s].size(); ++i) if (excess[s][i] != infinity) of[n++] = of[i];
        of.resize(n);
      };
      for (double x : excess[s]) if (x != infinity) excess_[s].push_back(x);
      sift(c.shardings);
      sift(c.savings);
      sift(c.sizes);
      sift(c.seconds);
      sift(c.bytes);
      sift(kinds_[s].own);
      sift(kinds_[s].function);
    }
  }

  /// Calls `visit(layout)` with the layouts that a value may have at a slot of a set's group, choice by
  /// choice; at an update whole and in parts. Precondition: none was left out.
  template <class Visit> void each_layout(int set, value_slot const& s, Visit const& visit) const {
    auto const& k = kinds_[idx(set)];
    auto const& space = k.spaces[idx(s.local)];
    auto const& own = k.letters[idx(s.local)];
    for (ir::sharding const& c : k.choices->shardings) {
      visit(base::layout_at(space, own, c, s));
      if (!k.update[idx(s.local)]) continue;
      ir::update_sharding const u = ir::sharded_update(space, own, c);
      visit(base::layout_at(space, u.letters, ir::in_shares(c, u.share), s));
    }
  }

  /// The devices of the smallest range in which each choice of a set can stand.
  std::vector<int> min_ranges(int set) const {
    choice_set const& c = tables.sets[idx(set)];
    std::vector<int> r;
    for (int i = 0; i < c.count(); ++i) {
      int least = on_.size();
      for (device_range x : kinds_[idx(set)].ranges)
        if (c.shardings[idx(i)].start == x.first && c.sizes[idx(i)] <= x.count)
          least = std::min(least, x.count);
      r.push_back(least);
    }
    return r;
  }

 protected:
  using typename base::kind_of_group;
  using base::on_, base::o_, base::prices_, base::kinds_;
  using base::in_parts, base::layouts, base::shardings_in, base::keep_layouts, base::alike_in,
      base::columns_of;

  choice_sets(machine const& on, M const& model, objective_options const& o,
              std::shared_ptr<layout_prices<M>> known)
      : base(on, o, std::move(known)), model_(model) {
    require_machine(on);
  }

  void start(sharding_limits const& l) {
    base::start(l);
    set_id_ = {};
    excess_.clear();
    slack_ = infinity;
  }

  M const& model_;
  // set -> choice -> seconds above the set's least, where there is a bar;
  std::vector<std::vector<double>> excess_;
  double slack_ = infinity;                       // how much all operators may be above their least together
  interner set_id_;

  double compute_seconds(op::any_op const& op, std::vector<shape> const& in, std::vector<shape> const& out,
                         int start, int size) const {
    auto const on_kind = [&](std::size_t kind) {
      return cost::detail::ask(model_, cost::compute_query{op,
                                           {in.data(), static_cast<int>(in.size())},
                                           {out.data(), static_cast<int>(out.size())},
                                           o_.scalar_bytes,
                                           on_.kinds[kind]});
    };
    if (on_.kinds.size() == 1) return on_kind(0);
    double worst = 0;
    std::vector<char> asked(on_.kinds.size(), 0);
    for (int d = start; d < start + size; ++d) {
      auto const kind = idx(on_.device[idx(d)]);
      if (!std::exchange(asked[kind], 1)) worst = std::max(worst, on_kind(kind));
    }
    return worst;
  }

  void price(training_graph const& t, int set, operator_group const& q) {
    computation_graph const& g = t.graph;
    choice_set& c = tables.sets[idx(set)];
    auto const n = idx(c.count());
    c.seconds.assign(n, 0);
    c.bytes.assign(n, 0);
    std::vector<shape> in, out;
    std::vector<std::vector<int> const*> read, made;
    std::vector<int> const& alike = alike_in(set);
    for (std::size_t k0 = 0; k0 < q.nodes.size(); ++k0) {
      graph_node const& node = g.node(q.nodes[k0]);
      if (o_.at_least && adds_gradients(node)) continue;
      int const local = static_cast<int>(k0);
      double const times = node.phase == step_phase::update ? 1 : o_.micro_batches;
      read.clear();
      made.clear();
      for (std::size_t k = 0; k < node.in.size(); ++k)
        read.push_back(&layouts(set, {local, static_cast<int>(k), false}));
      for (std::size_t k = 0; k < node.out.size(); ++k)
        made.push_back(&layouts(set, {local, static_cast<int>(k), true}));
      bool const shared = on_.kinds.size() == 1 && !in_parts(set, local);      // equal parts on equal devices
      auto const each = [&](op::any_op const& op, auto&& visit) {
        each_kind(shared ? &alike : nullptr, n, [&](std::size_t i) {
          in.clear();
          out.clear();
          for (std::size_t k = 0; k < node.in.size(); ++k)
            in.push_back(ir::part_of(prices_.layout_of((*read[k])[i]), g.type(node.in[k])));
          for (std::size_t k = 0; k < node.out.size(); ++k)
            out.push_back(ir::part_of(prices_.layout_of((*made[k])[i]), g.type(node.out[k])));
          return compute_seconds(op, in, out, c.shardings[i].start, c.sizes[i]);
        }, [&](std::size_t i, double seconds) { visit(i, times * seconds); });
      };
      kind_of_group& kind = kinds_[idx(set)];
      bool const forward = local == 0;
      if (forward && q.with_function) {
        op::any_op both = node.op;
        both.op = q.with_function;
        each(both, [&](std::size_t, double x) { kind.function.push_back(x); });
      }
      each(node.op, [&](std::size_t i, double x) {
        if (forward && q.with_function) kind.function[i] -= x;
        if (forward && q.apart) kind.own.push_back(x);
        else c.seconds[i] += x;
      });
    }
    if (o_.micro_batches > 1 && !o_.at_least) add_sums(t, set, q);
    std::vector<int> wanted;
    for (value_flow const& f : q.inner) {
      std::vector<int> const& have = layouts(set, f.from);
      layout_columns const wants = columns_of(set, f.to);
      for (std::size_t i = 0; i < n; ++i) {
        different(wants, i, wanted);
        for (int w : wanted) c.seconds[i] += f.times * prices_.seconds(f.shape_id, have[i], w) / f.shared_by;
      }
    }
    for (value_everywhere const& e : q.everywhere) {
      std::vector<int> const& have = layouts(set, e.from);
      int const all = prices_.id(ir::canonical(ir::layout{0,
                                                          {{ir::part_kind::replicate, -1, on_.size(), 1}}}));
      for (std::size_t i = 0; i < n; ++i) c.seconds[i] += prices_.seconds(e.shape_id, have[i], all);
    }
    add_bytes(t, set, q);
  }

  /// Gradients of later micro-batches are added to the first one's (ir/gradient_sums.hpp).
  void add_sums(training_graph const& t, int set, operator_group const& q) {
    choice_set& c = tables.sets[idx(set)];
    for (value_slot const& s : q.summed) {
      std::vector<int> const& made = layouts(set, s);
      graph_node const& n = t.graph.node(q.nodes[idx(s.local)]);
      shape const whole = t.graph.type((s.result ? n.out : n.in)[idx(s.port)]);
      bool const shared = on_.kinds.size() == 1 && !in_parts(set, s.local);
      each_kind(shared ? &alike_in(set) : nullptr, c.seconds.size(), [&](std::size_t i) {
        shape const part = ir::part_of(prices_.layout_of(made[i]), whole);
        return compute_seconds(add{}, {part, part}, {part}, c.shardings[i].start, c.sizes[i]);
      }, [&](std::size_t i, double seconds) { c.seconds[i] += (o_.micro_batches - 1) * seconds; });
    }
  }

  /// An estimate that adds up over operators: parameters in their home layout and their gradients, optimizer
  /// state, results, and operands as this operator wants them (its own copies where they were moved).
  /// Gradients of activations, which come and go, and scratch space are not counted; counting moved and
  /// unmoved operands alike makes up for them in deep networks. An operator that is recomputed keeps nothing
  /// but the inputs that it reads.
  void add_bytes(training_graph const& t, int set, operator_group const& q) {
    computation_graph const& g = t.graph;
    choice_set& c = tables.sets[idx(set)];
    bool const recompute = c.count() > 0 && c.saving(0).recompute;
    std::vector<int> counted;
    auto const put = [&](int x, value_slot const& s, i64 times) {
      auto const& l = layouts(set, s);
      each_kind(
          in_parts(set, s.local) ? nullptr : &alike_in(set), c.bytes.size(),
          [&](std::size_t i) { return prices_.bytes(l[i], g.type(x)); },
          [&](std::size_t i, i64 b) { c.bytes[i] = core::saturating_add(c.bytes[i],
                                                                        core::saturating_mul(times, b)); });
    };
    auto const add = [&](int x, value_slot const& s, i64 times) {
      if (std::find(counted.begin(), counted.end(), x) != counted.end()) return;
      counted.push_back(x);
      put(x, s, times);
    };
    graph_node const& forward = g.node(q.nodes[0]);
    for (std::size_t k = 0; k < q.nodes.size(); ++k) {
      graph_node const& n = g.node(q.nodes[k]);
      if (!is_update(n.op)) continue;
      int const x = n.in[0], local = static_cast<int>(k);
      int const operand =
          static_cast<int>(std::find(forward.in.begin(), forward.in.end(), x) - forward.in.begin());
      value_slot const whole{0, operand, false};
      add(x, t.home[idx(x)] == q.nodes[k] ? value_slot{local, 0, false} : whole, 1);
      // of micro-batches, gradients are added up first, but where the weight is kept in parts
      bool const first = o_.micro_batches > 1 && t.home[idx(x)] != q.nodes[k];
      put(x, first ? whole : value_slot{local, 1, false}, 1);
      for (std::size_t s = 2; s < n.in.size(); ++s)
        if (g.value(n.in[s]).role == value_role::state) add(n.in[s], {local, static_cast<int>(s), false}, 1);
    }
    for (std::size_t k = 0; k < forward.in.size(); ++k) {
      value_role const role = g.value(forward.in[k]).role;
      if (role == value_role::activation && recompute) continue;
      add(forward.in[k], {0, static_cast<int>(k), false}, role == value_role::parameter ? 2 : 1);
    }
    for (std::size_t k = 0; k < forward.out.size() && !recompute; ++k)
      add(forward.out[k], {0, static_cast<int>(k), true}, 1);
  }

  /// `visit(i, x)` for every choice, x = make(j) of the first one that is alike; without `alike` of each
  /// itself.
  template <class Make, class Visit>
  static void each_kind(std::vector<int> const* alike, std::size_t n, Make const& make, Visit const& visit) {
    std::vector<decltype(make(n))> known(n, -1);
    for (std::size_t i = 0; i < n; ++i) {
      auto& x = known[alike ? idx((*alike)[i]) : i];
      if (x < 0) x = make(i);
      visit(i, x);
    }
  }
};

}  // namespace tensorpar::search
