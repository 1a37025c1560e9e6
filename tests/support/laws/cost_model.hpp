// tests/support/laws/cost_model.hpp - the laws of a cost model, on many operators and reshards of any machine
#pragma once
#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <tensorpar/cost/concepts.hpp>
#include <tensorpar/ir/iteration_space.hpp>
#include <tensorpar/op/operators.hpp>

namespace laws {

using namespace tensorpar;

/// An operator with the extents of its parts.
struct priced_operator {
  op::any_op op;
  std::vector<shape> in, out;
  cost::compute_query query(i64 scalar_bytes, device_kind const& k) const {
    return {op, {in.data(), static_cast<int>(in.size())}, {out.data(), static_cast<int>(out.size())}, scalar_bytes, k};
  }
};

/// Operators of every family with `rows` rows.
inline std::vector<priced_operator> some_operators(i64 rows) {
  std::vector<priced_operator> r;
  auto put = [&](op::any_op const& o, std::vector<shape> in) {
    op::weight_list const w = o.op->weights(o.attr, {in.data(), static_cast<int>(in.size())});
    op::inference const y = o.op->infer(o.attr, {in.data(), static_cast<int>(in.size())});
    REQUIRE(y.ok());
    for (int i = 0; i < w.n; ++i) in.push_back(w.w[i].type);
    r.push_back({o, std::move(in), std::vector<shape>(y.out, y.out + y.n)});
  };
  shape const x{dim(rows), dim(64)};
  put(linear{32}, {x});
  put(contraction("mk,nk->mn"), {x, {dim(16), dim(64)}});
  put(matmul{}, {x, {dim(64), dim(8)}});
  put(relu{}, {x});
  put(add{}, {x, x});
  put(softmax{}, {x});
  put(transpose{}, {x});
  put(concat{}, {x, x, x});
  put(conv2d{.out = 8, .kernel = 3, .pad = 1}, {{dim(rows), dim(8), dim(8), dim(4)}});
  put(embedding{1000, 16}, {shape{dim(rows), dim(4)}.of(dtype::i32)});
  put(embedding_bag{1000, 16}, {shape{dim(rows), dim(4)}.of(dtype::i32)});
  return r;
}

/// A random mesh on devices start .. start + size - 1: digits of a mixed radix over a divisor of the machine's size, dealt to shards of two
/// axes, copies and sums. Both layouts of a pair use the same digits, so collectives come out; sometimes another start, so exchanges do.
struct layout_pair {
  ir::layout from, to;
};
inline layout_pair random_layouts(int devices, std::mt19937_64& random) {
  auto pick = [&](i64 n) { return static_cast<i64>(random() % static_cast<u64>(n)); };
  std::vector<i64> sizes;
  for (i64 n = 1; n <= devices; ++n) if (devices % n == 0) sizes.push_back(n);
  i64 left = sizes[static_cast<std::size_t>(pick(static_cast<i64>(sizes.size())))], stride = 1;
  layout_pair r;
  r.from.start = r.to.start = static_cast<int>(pick(devices / left) * left);
  for (; left > 1;) {
    i64 d = 2 + pick(left - 1);
    while (left % d) ++d;
    auto axis = [&](int kinds) {
      i64 const k = pick(kinds);
      return k < 2 ? ir::layout_axis{ir::part_kind::shard, static_cast<int>(k), d, stride}
                   : ir::layout_axis{k == 2 ? ir::part_kind::replicate : ir::part_kind::partial, -1, d, stride};
    };
    ir::layout_axis const a = axis(4);
    r.from.axes.push_back(a);
    r.to.axes.push_back(axis(3));
    stride *= d;
    left /= d;
  }
  if (pick(4) == 0 && r.to.size() * 2 <= devices)
    r.to.start = static_cast<int>((r.to.start + r.to.size()) % (devices / r.to.size() * r.to.size()));
  r.from = ir::canonical(r.from);
  r.to = ir::canonical(r.to);
  return r;
}

/// Reshards of a tensor whose axes every mesh divides.
inline std::vector<ir::reshard_step> some_steps(machine const& on, int count, u64 seed) {
  std::mt19937_64 random(seed);
  i64 const n = on.size();
  shape const s{dim(n * 4), dim(n * 2)};
  std::vector<ir::reshard_step> r;
  while (static_cast<int>(r.size()) < count && on.size() > 1) {
    layout_pair const p = random_layouts(on.size(), random);
    for (ir::reshard_step& m : ir::reshard(p.from, p.to, s)) r.push_back(std::move(m));
  }
  return r;
}

/// What a model documents that it may break.
struct cost_laws {
  bool monotone = true;
  bool keep_is_a_copy_at_most = true;
};

/// Every law of `cost_model` on the operators and some 200 steps of this machine.
template <class M> void check_cost_model(M const& m, machine const& on, cost_laws which = {}) {
  static_assert(cost::cost_model<M>);
  for (device_kind const& k : on.kinds)
    for (i64 bytes : {2, 4, 8}) {
      auto const small = some_operators(8), large = some_operators(64);
      for (std::size_t i = 0; i < small.size(); ++i) {
        CAPTURE(op::spell(small[i].op));
        double const s = m.seconds(small[i].query(bytes, k)), t = m.seconds(large[i].query(bytes, k));
        CHECK(std::isfinite(s));
        CHECK(s >= 0);
        CHECK(s == m.seconds(small[i].query(bytes, k)));
        if (which.monotone) CHECK(t >= s);
      }
    }
  i64 const n = on.size();
  for (ir::reshard_step const& step : some_steps(on, 200, 7)) {
    CAPTURE(ir::name_of(step.kind));
    double before = 0;
    for (i64 rows = 4; rows <= 64; rows *= 4) {
      shape const s{dim(n * rows), dim(n * 2)};
      cost::reshard_query const q{step, s, 4, on};
      double const t = m.seconds(q);
      CHECK(std::isfinite(t));
      CHECK(t >= 0);
      CHECK(t == m.seconds(q));
      cost::layout_extents const from(step.before), to(step.after);                // what the asker tells changes nothing
      std::vector<cost::group_levels> ways;
      if (!step.group.empty()) ways = cost::ways_to_lie(step, on);
      CHECK(t == m.seconds(cost::reshard_query{step, s, 4, on, step.group.empty() ? nullptr : &ways, &from, &to}));
      if (which.monotone) CHECK(t >= before);
      before = t;
      if (step.kind != ir::reshard_kind::slice || !which.keep_is_a_copy_at_most) continue;
      shape const part = ir::part_of(step.before, s);
      op::any_op const copy = relu{};
      double worst = 0;
      for (int d : step.before.devices())
        worst = std::max(worst, m.seconds(cost::compute_query{copy, {&part, 1}, {&part, 1}, 4, on.kind_of(d)}));
      CHECK(t <= worst);
    }
  }
}

}  // namespace laws
