// tensorpar/search/choice_book.hpp - choices of operators and prices between them, made once however many graphs ask
#pragma once
#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <tensorpar/search/evaluate.hpp>
#include <tensorpar/search/flows.hpp>
#include <tensorpar/search/layout_prices.hpp>
#include <tensorpar/search/spreads.hpp>

namespace tensorpar {

struct objective_options {
  int grain = 1;                  // side by side: ranges are divided at multiples of this
  i64 scalar_bytes = 4;
  int micro_batches = 1;          // forward, backward and their movements count so many times, updates once
  bool shard_updates = false;     // copies of a weight share its update where that is faster (ZeRO-2, plan/memory_saving.hpp)
};

/// Choice sets and pair costs by all that they depend on, for one machine, cost model and space of spreads. Operators that look alike, in
/// this graph or another one, share them. Precondition: machine and cost model outlive it.
template <cost_model M> class choice_book {
 public:
  mapping_tables tables;

  choice_book(machine const& on, M const& model, objective_options const& o)
      : choice_book(on, model, o, std::make_shared<layout_prices<M>>(model, on, o.scalar_bytes)) {}
  /// With the prices of movements that other books found. Precondition: for this machine, cost model and size of numbers.
  choice_book(machine const& on, M const& model, objective_options const& o, std::shared_ptr<layout_prices<M>> known)
      : on_(on), model_(model), o_(o), shared_(std::move(known)), prices_(*shared_) {}
  choice_book(choice_book const&) = delete;
  choice_book& operator=(choice_book const&) = delete;

  machine const& on() const { return on_; }
  objective_options const& options() const { return o_; }
  std::shared_ptr<layout_prices<M>> const& prices() const { return shared_; }

  /// Forgets everything but the prices of movements.
  void start(spread_limits const& l) {
    limits_ = l;
    tables = {};
    kinds_.clear();
    set_id_ = classes_id_ = cost_id_ = {};
    pairs_.clear();
    excess_.clear();
    slack_ = never;
  }
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
  int set_for(training_graph const& t, training_flows const& flows, int f, std::vector<device_range> const& ranges) {
    int const whole = set_for(t, flows, f, ranges, choice_saving{});
    bool updates = false;
    for (int v : flows.groups[detail::idx(f)].nodes) updates = updates || t.graph.node(v).phase == step_phase::update;
    if (!o_.shard_updates || !updates) return whole;
    int const parts = set_for(t, flows, f, ranges, {weight_sharding::update, false});
    int const set = set_id_({-1, whole, parts});
    if (set < static_cast<int>(tables.sets.size())) return set;
    choice_set c = tables.sets[detail::idx(whole)];
    choice_set const& other = tables.sets[detail::idx(parts)];
    c.savings.assign(c.spreads.size(), {});
    for (std::size_t i = 0; i < c.spreads.size(); ++i) {
      if (!(other.seconds[i] < c.seconds[i] * (1 - 1e-12))) continue;
      c.seconds[i] = other.seconds[i];
      c.bytes[i] = other.bytes[i];
      c.savings[i] = other.savings[i];
    }
    tables.sets.push_back(std::move(c));
    kinds_.push_back(kinds_[detail::idx(whole)]);
    kinds_.back().layouts.clear();
    return set;
  }
  /// The same where every choice saves this. The graph says what is computed again and where weights live.
  int set_for(training_graph const& t, training_flows const& flows, int f, std::vector<device_range> const& ranges, choice_saving saving) {
    std::vector<i64> key = flows.key_of(f);
    key.push_back(static_cast<i64>(saving.sharding) * 2 + saving.recompute);
    for (device_range r : ranges) key.push_back(static_cast<i64>(r.start) * (1 << 20) + r.size);
    int const set = set_id_(key);
    if (set < static_cast<int>(tables.sets.size())) return set;
    operator_group const& q = flows.groups[detail::idx(f)];
    kind_of_group k;
    for (int v : q.nodes) {
      k.spaces.push_back(space_of(t.graph, v));
      k.letters.push_back(t.graph.node(v).letters);
      k.update.push_back(t.graph.node(v).phase == step_phase::update);
    }
    k.ranges = ranges;
    choice_set c;
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      if (i + 1 < ranges.size() && ranges[i + 1].start == ranges[i].start) continue;   // the largest range from this start has them all
      auto const some = legal_spreads(k.spaces.front(), ranges[i].start, ranges[i].size, on_.size(), limits_);
      c.spreads.insert(c.spreads.end(), some.begin(), some.end());
    }
    for (spread const& s : c.spreads) c.sizes.push_back(static_cast<int>(s.size()));
    if (!(saving == choice_saving{})) c.savings.assign(c.spreads.size(), saving);
    tables.sets.push_back(std::move(c));
    kinds_.push_back(std::move(k));
    price(t, set, q);
    return set;
  }

  /// Leaves the choices out for which `keep` has no excess, in all sets: `excess[set][choice]` seconds above the set's least, `never` for
  /// those that go. From then on pairs of choices that exceed `slack` together cost `never`. Precondition: no pair was asked for yet.
  void leave_out(std::vector<std::vector<double>> const& excess, double slack) {
    slack_ = slack;
    excess_.assign(tables.sets.size(), {});
    for (std::size_t s = 0; s < tables.sets.size(); ++s) {
      choice_set& c = tables.sets[s];
      std::size_t n = 0;
      for (std::size_t i = 0; i < excess[s].size(); ++i) {
        if (excess[s][i] == never) continue;
        excess_[s].push_back(excess[s][i]);
        c.spreads[n] = c.spreads[i];
        if (!c.savings.empty()) c.savings[n] = c.savings[i];
        c.sizes[n] = c.sizes[i];
        c.seconds[n] = c.seconds[i];
        c.bytes[n++] = c.bytes[i];
      }
      c.spreads.resize(n);
      if (!c.savings.empty()) c.savings.resize(n);
      c.sizes.resize(n);
      c.seconds.resize(n);
      c.bytes.resize(n);
      kinds_[s].layouts.clear();
    }
  }

  /// The devices of the smallest range in which each choice of a set can stand.
  std::vector<int> least_ranges(int set) const {
    choice_set const& c = tables.sets[detail::idx(set)];
    std::vector<int> r;
    for (int i = 0; i < c.count(); ++i) {
      int least = on_.size();
      for (device_range x : kinds_[detail::idx(set)].ranges)
        if (c.spreads[detail::idx(i)].start == x.start && c.sizes[detail::idx(i)] <= x.size) least = std::min(least, x.size);
      r.push_back(least);
    }
    return r;
  }

  /// What two operators of these sets exchange.
  operator_pair pair_for(training_flows const& flows, std::pair<int, int> ab, value_flows const& all, int sa, int sb) {
    std::vector<i64> key{sa, sb};
    flows.put(key, all);
    int const id = cost_id_(key);
    if (id == static_cast<int>(pairs_.size())) pairs_.push_back(price_pair(all, sa, sb));
    auto const& [cost, rows, cols] = pairs_[detail::idx(id)];
    return {ab.first, ab.second, cost, rows, cols};
  }

 private:
  /// What all operators of a choice set share.
  struct kind_of_group {
    std::vector<iteration_space> spaces;
    std::vector<std::string> letters;
    std::vector<char> update;                                 // by node
    std::map<std::array<int, 3>, std::vector<int>> layouts;   // slot -> choice -> layout
    std::vector<device_range> ranges;                         // where it may stand
  };

  machine const& on_;
  M const& model_;
  objective_options o_;
  std::shared_ptr<layout_prices<M>> shared_;
  layout_prices<M>& prices_;
  spread_limits limits_;
  std::vector<std::vector<double>> excess_;       // set -> choice -> seconds above the set's least, where there is a bar;
  double slack_ = never;                          // how much all operators may be above their least together
  std::vector<kind_of_group> kinds_;
  interner set_id_, classes_id_, cost_id_;
  std::vector<std::array<int, 3>> pairs_;         // by pair signature: cost, rows, cols

  std::vector<int> const& layouts(int set, value_slot const& s) {
    kind_of_group& k = kinds_[detail::idx(set)];
    auto const [at, fresh] = k.layouts.try_emplace({s.local, s.port, s.result}, std::vector<int>{});
    choice_set const& all = tables.sets[detail::idx(set)];
    for (int i = 0; i < all.count() && fresh; ++i) {
      spread const& c = all.spreads[detail::idx(i)];
      auto const& space = k.spaces[detail::idx(s.local)];
      auto const& own = k.letters[detail::idx(s.local)];
      bool const parts = k.update[detail::idx(s.local)] && all.saving(i).sharding != weight_sharding::none;
      std::string const letters = parts ? sharded_letters(space, own, c) : own;
      at->second.push_back(prices_.id(s.result ? result_layout(space, letters, c, s.port) : operand_layout(space, letters, c, s.port)));
    }
    return at->second;
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

  void price(training_graph const& t, int set, operator_group const& q) {
    computation_graph const& g = t.graph;
    choice_set& c = tables.sets[detail::idx(set)];
    auto const n = detail::idx(c.count());
    c.seconds.assign(n, 0);
    c.bytes.assign(n, 0);
    std::vector<shape> in, out;
    std::vector<std::vector<int> const*> read, made;
    for (std::size_t k0 = 0; k0 < q.nodes.size(); ++k0) {
      graph_node const& node = g.node(q.nodes[k0]);
      int const local = static_cast<int>(k0);
      double const times = node.phase == step_phase::update ? 1 : o_.micro_batches;
      read.clear();
      made.clear();
      for (std::size_t k = 0; k < node.in.size(); ++k) read.push_back(&layouts(set, {local, static_cast<int>(k), false}));
      for (std::size_t k = 0; k < node.out.size(); ++k) made.push_back(&layouts(set, {local, static_cast<int>(k), true}));
      for (std::size_t i = 0; i < n; ++i) {
        in.clear();
        out.clear();
        for (std::size_t k = 0; k < node.in.size(); ++k) in.push_back(part_of(prices_.layout_of((*read[k])[i]), g.type(node.in[k])));
        for (std::size_t k = 0; k < node.out.size(); ++k) out.push_back(part_of(prices_.layout_of((*made[k])[i]), g.type(node.out[k])));
        c.seconds[i] += times * compute_seconds(node, in, out, c.spreads[i].start, c.sizes[i]);
      }
    }
    std::vector<int> wanted;
    for (std::size_t i = 0; i < n; ++i) {
      for (value_flow const& f : q.inner) {
        wanted_by(f, set, static_cast<int>(i), wanted);
        for (int w : wanted) c.seconds[i] += f.times * prices_.seconds(f.shape_id, layouts(set, f.from)[i], w);
      }
      for (value_everywhere const& e : q.everywhere) {
        int const all = prices_.id(canonical(layout{0, {{part_kind::copy, -1, on_.size(), 1}}}));
        c.seconds[i] += prices_.seconds(e.shape_id, layouts(set, e.from)[i], all);
      }
    }
    add_bytes(t, set, q);
  }

  /// An estimate that adds up over operators: parameters in their home layout and their gradients, optimizer state, results, and operands
  /// as this operator wants them (its own copies where they were moved). Gradients of activations, which come and go, and scratch space
  /// are not counted; counting moved and unmoved operands alike makes up for them in deep networks. An operator that is recomputed keeps
  /// nothing but the inputs that it reads.
  void add_bytes(training_graph const& t, int set, operator_group const& q) {
    computation_graph const& g = t.graph;
    choice_set& c = tables.sets[detail::idx(set)];
    bool const recompute = c.count() > 0 && c.saving(0).recompute;
    std::vector<int> counted;
    auto const put = [&](int x, value_slot const& s, i64 times) {
      auto const& l = layouts(set, s);
      for (std::size_t i = 0; i < c.bytes.size(); ++i) c.bytes[i] += times * prices_.bytes(l[i], g.type(x));
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
      int const operand = static_cast<int>(std::find(forward.in.begin(), forward.in.end(), x) - forward.in.begin());
      value_slot const whole{0, operand, false};
      add(x, t.home[detail::idx(x)] == q.nodes[k] ? value_slot{local, 0, false} : whole, 1);
      put(x, o_.micro_batches > 1 ? whole : value_slot{local, 1, false}, 1);       // of micro-batches, gradients are added up first
      for (std::size_t s = 2; s < n.in.size(); ++s)
        if (g.value(n.in[s]).role == value_role::state) add(n.in[s], {local, static_cast<int>(s), false}, 1);
    }
    for (std::size_t k = 0; k < forward.in.size(); ++k) {
      value_role const role = g.value(forward.in[k]).role;
      if (role == value_role::activation && recompute) continue;
      add(forward.in[k], {0, static_cast<int>(k), false}, role == value_role::parameter ? 2 : 1);
    }
    for (std::size_t k = 0; k < forward.out.size() && !recompute; ++k) add(forward.out[k], {0, static_cast<int>(k), true}, 1);
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
    for (int i = 0; i < tables.sets[detail::idx(set)].count(); ++i) {
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
    if (id == static_cast<int>(tables.classes.size())) tables.classes.push_back(std::move(c));
    return id;
  }

  std::array<int, 3> price_pair(value_flows const& all, int sa, int sb) {
    std::vector<int> wanted, starts;
    std::vector<double> moved;
    int const rows = classes_for(sa, all, true), cols = classes_for(sb, all, false);
    std::vector<int> const ra = representatives(rows), rb = representatives(cols);
    std::vector<double> const above_a = least_excess(rows), above_b = least_excess(cols);
    pair_cost c{static_cast<int>(ra.size()), static_cast<int>(rb.size()), std::vector<double>(ra.size() * rb.size(), 0)};
    for (value_flow const& f : all) {
      auto const &from = f.from_first ? ra : rb, &to = f.from_first ? rb : ra;
      std::vector<int> const& have = layouts(f.from_first ? sa : sb, f.from);
      std::size_t const from_step = f.from_first ? rb.size() : 1, to_step = f.from_first ? 1 : rb.size();
      starts.clear();
      for (int i : from) starts.push_back(have[detail::idx(i)]);
      for (std::size_t j = 0; j < to.size(); ++j) {
        auto const apart = [&](std::size_t i) {
          return !excess_.empty() && (f.from_first ? above_a[i] + above_b[j] : above_b[i] + above_a[j]) > slack_;
        };
        wanted_by(f, f.from_first ? sb : sa, to[j], wanted);
        moved.assign(from.size(), 0);
        for (int w : wanted) prices_.add_seconds(f.shape_id, starts, w, moved, apart);
        for (std::size_t i = 0; i < from.size(); ++i) {
          double& cell = c.seconds[i * from_step + j * to_step];
          if (apart(i)) cell = never;
          else cell += f.times * moved[i];
        }
      }
    }
    tables.costs.push_back(std::move(c));
    return {static_cast<int>(tables.costs.size()) - 1, rows, cols};
  }
  std::vector<double> least_excess(int classes) const {
    choice_classes const& c = tables.classes[detail::idx(classes)];
    std::vector<double> r(detail::idx(c.count), never);
    if (!excess_.empty())
      for (std::size_t i = 0; i < c.of.size(); ++i) {
        double& x = r[detail::idx(c.of[i])];
        x = std::min(x, excess_[detail::idx(c.set)][i]);
      }
    return r;
  }
  std::vector<int> representatives(int classes) const {
    choice_classes const& c = tables.classes[detail::idx(classes)];
    std::vector<int> r(detail::idx(c.count), -1);
    for (std::size_t i = 0; i < c.of.size(); ++i) if (int& x = r[detail::idx(c.of[i])]; x < 0) x = static_cast<int>(i);
    return r;
  }
};

}  // namespace tensorpar
