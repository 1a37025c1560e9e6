// tensorpar/cost/combinators.hpp - cost models made of cost models: remembered, scaled, fitted to
// measurements
#pragma once
#include <array>
#include <cmath>
#include <map>
#include <tensorpar/core/index.hpp>
#include <tensorpar/cost/concepts.hpp>
#include <tensorpar/op/core/spelling.hpp>
#include <utility>

namespace tensorpar::cost {

/// The kinds of queries that a calibration treats alike. An operator's loops decide. It is a contraction if
/// two operands share a loop that the results lack, while each has a loop that the other lacks; then every
/// element is used often. Otherwise it is a reduction if the results lack a loop, and elementwise if not.
/// Reshards are told apart by their kind.
enum class cost_family : int {
  contraction,
  reduction,
  elementwise,
  all_reduce,
  reduce_scatter,
  all_gather,
  all_to_all,
  keep,
  exchange
};
inline constexpr int cost_families = 9;
constexpr char const* name_of(cost_family f) {
  constexpr char const* n[] = {"contraction", "reduction",  "elementwise", "all_reduce", "reduce_scatter",
                               "all_gather",  "all_to_all", "keep",        "exchange"};
  return n[static_cast<int>(f)];
}
inline cost_family family_of(op::any_op const& op, shapes in) {
  int const activations = op.op->arity < 0 ? in.n : op.op->arity < in.n ? op.op->arity : in.n;
  op::loops const p = op.op->pattern(op.attr, {in.p, activations});
  // loop n: the leading axes together
  auto reads = [&](int i, int k) { return i == p.n ? p.lead_in[k] : p.l[i].in[k] != -1; };
  bool lead_out = false, reduces = false;
  for (int k = 0; k < p.results; ++k) lead_out = lead_out || p.lead_out[k];
  auto reduced = [&](int i) { return i == p.n ? p.leading && !lead_out : p.l[i].reduced; };
  for (int i = 0; i <= p.n; ++i) reduces = reduces || reduced(i);
  for (int a = 0; a < p.operands; ++a)
    for (int b = 0; b < a; ++b) {
      bool shared = false, only_a = false, only_b = false;
      for (int i = 0; i <= p.n; ++i) {
        shared = shared || (reduced(i) && reads(i, a) && reads(i, b));
        only_a = only_a || (reads(i, a) && !reads(i, b));
        only_b = only_b || (reads(i, b) && !reads(i, a));
      }
      if (shared && only_a && only_b) return cost_family::contraction;
    }
  return reduces ? cost_family::reduction : cost_family::elementwise;
}
constexpr cost_family family_of(ir::reshard_kind k) {
  return static_cast<cost_family>(static_cast<int>(cost_family::all_reduce) + static_cast<int>(k));
}
static_assert(family_of(ir::reshard_kind::all_reduce) == cost_family::all_reduce &&
              family_of(ir::reshard_kind::slice) == cost_family::keep &&
              family_of(ir::reshard_kind::exchange) == cost_family::exchange);

/// M with its answers multiplied: all operators by one factor, all reshards by another. Keeps M's laws
/// except "keep costs at most a copy", which needs moves <= compute. Precondition: factors are finite and not
/// negative.
template <class M> struct scaled {
  static_assert(cost_model_lack<M>::value);
  M base{};
  double compute = 1, moves = 1;
  double seconds(compute_query const& q) const { return compute * base.seconds(q); }
  double seconds(reshard_query const& q) const { return moves * base.seconds(q); }
};

/// One measurement next to what a model said.
struct calibration_sample {
  cost_family family = cost_family::elementwise;
  double predicted = 0, measured = 0;          // seconds
};

/// M multiplied by one factor per family. Keeps M's laws; "keep costs at most a copy" if factor[keep] <=
/// factor[elementwise].
template <class M> struct calibrated {
  static_assert(cost_model_lack<M>::value);
  M base{};
  std::array<double, cost_families> factor{1, 1, 1, 1, 1, 1, 1, 1, 1};
  double of(cost_family f) const { return factor[idx(f)]; }
  double seconds(compute_query const& q) const { return of(family_of(q.op, q.in)) * base.seconds(q); }
  double seconds(reshard_query const& q) const { return of(family_of(q.step.kind)) * base.seconds(q); }
};

/// The factors that minimise the sum of (log measured - log(factor * predicted))^2 in each family: the
/// geometric mean of measured / predicted. Relative errors count alike, whether a task takes a microsecond or
/// a second. Families without samples keep 1. `keep` never gets a larger factor than elementwise operators,
/// so the result keeps the laws.
/// Throws `error` for a sample that is not positive and finite. O(samples).
inline std::array<double, cost_families> fit_factors(std::vector<calibration_sample> const& samples) {
  std::array<double, cost_families> sum{}, count{}, r{};
  for (calibration_sample const& s : samples) {
    double const x = std::log(s.measured / s.predicted);
    if (!(s.measured > 0) || !(s.predicted > 0) || !std::isfinite(x))
      throw error("a sample of " + std::to_string(s.predicted) + " s predicted and " +
                      std::to_string(s.measured) + " s measured",
                  std::string("calibration of ") + name_of(s.family), "positive, finite seconds");
    sum[idx(s.family)] += x;
    count[idx(s.family)] += 1;
  }
  for (std::size_t f = 0; f < r.size(); ++f) r[f] = count[f] > 0 ? std::exp(sum[f] / count[f]) : 1;
  auto const keep = idx(cost_family::keep),
             plain = idx(cost_family::elementwise);
  if (r[keep] > r[plain]) r[keep] = r[plain];
  return r;
}
template <class M> calibrated<M> calibrate(M base, std::vector<calibration_sample> const& samples) {
  return {std::move(base), fit_factors(samples)};
}

/// M that remembers every answer, for models that take longer than a look-up. Keys are compared in full,
/// never by hash alone. Keeps M's laws. Not for use by several threads at once: give each a copy. O(log
/// entries) per query, one entry per distinct query.
template <class M> class cached {
  static_assert(cost_model_lack<M>::value);

 public:
  cached() = default;
  explicit cached(M base) : base_(std::move(base)) {}

  double seconds(compute_query const& q) const {
    core::hasher h;
    h.add(q.op.hash()).add(q.scalar_bytes).add(q.in.n);
    for (shapes const& side : {q.in, q.out}) for (shape const& s : side) add(h, s);
    h.add(q.device.flops).add(q.device.memory_bandwidth).add(q.device.launch);
    u64 const key = h.value();
    for (auto it = compute_.lower_bound(key); it != compute_.end() && it->first == key; ++it)
      if (it->second.is(q)) { ++hits_; return it->second.seconds; }
    ++misses_;
    double const s = base_.seconds(q);
    compute_.emplace(
        key,
        compute_entry{
            q.op, {q.in.begin(), q.in.end()}, {q.out.begin(), q.out.end()}, q.scalar_bytes, q.device, s});
    return s;
  }
  double seconds(reshard_query const& q) const {
    std::size_t const on = machine_number(q.on);
    core::hasher h;
    h.add(q.step.kind).add(q.step.from_dim).add(q.step.to_dim).add(q.scalar_bytes).add(on);
    for (ir::group_axis const& g : q.step.group) h.add(g.degree).add(g.stride);
    for (ir::layout const* l : {&q.step.before, &q.step.after}) {
      h.add(l->start).add(l->axes.size());
      for (ir::layout_axis const& a : l->axes) h.add(a.kind).add(a.dim).add(a.degree).add(a.stride);
    }
    add(h, q.logical);
    u64 const key = h.value();
    for (auto it = moves_.lower_bound(key); it != moves_.end() && it->first == key; ++it)
      if (it->second.on == on && it->second.scalar_bytes == q.scalar_bytes &&
          it->second.logical == q.logical && it->second.step == q.step) {
        ++hits_;
        return it->second.seconds;
      }
    ++misses_;
    double const s = base_.seconds(q);
    moves_.emplace(key, move_entry{q.step, q.logical, q.scalar_bytes, on, s});
    return s;
  }
  M const& base() const { return base_; }
  i64 hits() const { return hits_; }
  i64 misses() const { return misses_; }

 private:
  struct compute_entry {
    op::any_op op;
    std::vector<shape> in, out;
    i64 scalar_bytes;
    device_kind device;
    double seconds;
    bool is(compute_query const& q) const {
      auto same = [](std::vector<shape> const& a, shapes b) {
        if (static_cast<int>(a.size()) != b.n) return false;
        for (int i = 0; i < b.n; ++i) if (!(a[idx(i)] == b[i])) return false;
        return true;
      };
      return op == q.op && scalar_bytes == q.scalar_bytes && same(in, q.in) && same(out, q.out) &&
             device == q.device;
    }
  };
  struct move_entry {
    ir::reshard_step step;
    shape logical;
    i64 scalar_bytes;
    std::size_t on;
    double seconds;
  };
  static void add(core::hasher& h, shape const& s) {
    h.add(s.rank).add(s.type);
    for (int i = 0; i < s.rank; ++i) h.add(s.d[i].n);
  }
  /// Machines are kept as values, most often a single one; the last one asked about stands in front of the
  /// comparison.
  std::size_t machine_number(machine const& m) const {
    if (last_ < machines_.size() && machines_[last_] == m) return last_;
    for (last_ = 0; last_ < machines_.size(); ++last_) if (machines_[last_] == m) return last_;
    machines_.push_back(m);
    return last_;
  }

  M base_{};
  mutable std::multimap<u64, compute_entry> compute_;
  mutable std::multimap<u64, move_entry> moves_;
  mutable std::vector<machine> machines_;
  mutable std::size_t last_ = 0;
  mutable i64 hits_ = 0, misses_ = 0;
};

}  // namespace tensorpar::cost
