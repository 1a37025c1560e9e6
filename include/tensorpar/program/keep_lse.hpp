// tensorpar/program/keep_lse.hpp - gradients of attention that start from what its forward pass left
#pragma once
#include <algorithm>
#include <map>
#include <optional>
#include <tensorpar/core/index.hpp>
#include <tensorpar/op/attention/lse.hpp>
#include <tensorpar/op/attention/packed.hpp>
#include <tensorpar/program/unroll.hpp>
#include <tuple>

namespace tensorpar::passes {

/// Has a backend a kernel for the operator that is worth having, and if `narrow`, for operands of bf16?
using kernel_rule = bool (*)(op::any_op const&, bool narrow);

namespace detail {

inline std::vector<shape> local_shapes(program const& p, std::vector<int> const& buffers) {
  std::vector<shape> r;
  for (int b : buffers)
    r.push_back(
        ir::part_of(p.buffers[idx(b)].where, p.buffers[idx(b)].type));
  return r;
}
/// Makes the task one of `o` from `in` to `out`, with scratch as the rule says. A scratch buffer that it has
/// no use for is left alone.
inline void become(program& p, task& t, op::any_op const& o, std::vector<int> in, std::vector<int> out,
                   workspace_rule rule) {
  std::vector<shape> const from = local_shapes(p, in), to = local_shapes(p, out);
  i64 const scalars =
      rule(o, {from.data(), static_cast<int>(from.size())}, {to.data(), static_cast<int>(to.size())});
  t.op = o;
  t.in = std::move(in);
  t.out = std::move(out);
  if (scalars <= 0) {
    t.workspace = -1;
    return;
  }
  if (t.workspace < 0) {
    buffer w;
    w.devices = t.devices;
    w.where = p.buffers[idx(t.out[0])].where;
    for (ir::layout_axis& x : w.where.axes) x = {ir::part_kind::replicate, -1, x.degree, x.stride};
    t.workspace = static_cast<int>(p.buffers.size());
    p.buffers.push_back(std::move(w));
  }
  buffer& w = p.buffers[idx(t.workspace)];
  w.type = shape{dim(scalars)};
  w.bytes = scalars * p.scalar_bytes;
}

/// A buffer for the log-sum-exps beside y, whose place it has: heads where y has its width, before queries.
inline int add_lse(program& p, int y, i64 heads) {
  buffer const& of = p.buffers[idx(y)];
  buffer b;
  b.type = {of.type.d[0], dim(heads), of.type.d[1]};
  b.where = of.where;
  for (ir::layout_axis& a : b.where.axes) if (a.kind == ir::part_kind::shard && a.dim > 0) a.dim = 3 - a.dim;
  b.where = ir::canonical(std::move(b.where));
  b.devices = of.devices;
  b.bytes = ir::part_of(b.where, b.type).elements() * p.scalar_bytes;
  p.buffers.push_back(std::move(b));
  return static_cast<int>(p.buffers.size()) - 1;
}

/// Attention and its gradient as they are with log-sum-exps between them.
struct lse_pair {
  op::any_op forward, gradient;
  i64 heads;
};
template <class Forward, class Grad, class WithLse, class FromLse>
std::optional<lse_pair> with_lse_as(op::any_op const& forward, op::any_op const& gradient) {
  if (!forward.is<Forward>() || !gradient.is<Grad>()) return std::nullopt;
  auto const f = forward.as<Forward>();
  auto const g = gradient.as<Grad>();
  if (f.heads != g.heads || f.causal != g.causal) return std::nullopt;
  return lse_pair{WithLse{f.heads, f.causal}, FromLse{f.heads, f.causal}, f.heads};
}
/// Nothing where the one is not the other's gradient.
inline std::optional<lse_pair> with_lse(op::any_op const& forward, op::any_op const& gradient) {
  if (auto p = with_lse_as<attention, attention_grad, op::attention_with_lse,
                           op::attention_grad_from_lse>(forward, gradient))
    return p;
  return with_lse_as<packed_attention, packed_attention_grad, packed_attention_with_lse,
                     packed_attention_grad_from_lse>(forward, gradient);
}

}  // namespace detail

/// The program with gradients of attention that start from y and lse, the log-sum-exps
/// (op/attention/lse.hpp), of the forward pass or of the one that was computed again: wherever y and the
/// operands are still where they were. y then lives until the gradient; lse, a scalar for every query of
/// every head, lives from one to the other. Lives and offsets are not brought up to date: see `fuse_tasks`.
/// O(tasks * log).
inline program keep_lse(program p, kernel_rule can, workspace_rule rule) {
  // attention of these operands, devices and micro-batch
  std::map<std::tuple<std::vector<int>, std::vector<int>, int>, int> last;
  // by buffer: the last task that wrote where it lies
  std::vector<int> written(p.buffers.size(), -1);
  auto const wrote = [&](int b) -> int& { return written[idx(b)]; };
  auto const of = [&](int b) -> buffer const& { return p.buffers[idx(b)]; };
  for (int j = 0; j < static_cast<int>(p.tasks.size()); ++j) {
    task& t = p.tasks[idx(j)];
    std::vector<int> const made = t.out;
    if (t.kind == task_kind::compute && is_attention(t.op)) last[{t.in, t.devices, t.micro_batch}] = j;
    if (t.kind == task_kind::compute && is_attention_grad(t.op)) {
      auto const found = last.find({{t.in.begin() + 1, t.in.end()}, t.devices, t.micro_batch});
      bool good = found != last.end();
      for (int b : t.in) good = good && (b == t.in[0] || wrote(b) < found->second);
      if (good) {
        task& forward = p.tasks[idx(found->second)];
        auto const pair = detail::with_lse(forward.op, t.op);
        int const y = forward.out[0], dy = t.in[0];
        bool const narrow = is_narrow(of(y).type.type);
        if (pair && wrote(y) == found->second && of(y).where == of(dy).where && can(pair->forward, narrow) &&
            can(pair->gradient, narrow)) {
          int const lse = detail::add_lse(p, y, pair->heads);
          detail::become(p, forward, pair->forward, forward.in, {y, lse}, rule);
          std::vector<int> in = t.in;
          in.insert(in.end(), {y, lse});
          detail::become(p, t, pair->gradient, std::move(in), t.out, rule);
          last.erase(found);
        }
      }
    }
    for (int b : made) {
      wrote(b) = j;
      if (int const before = of(b).in_place_of; before >= 0) wrote(before) = j;
    }
  }
  return p;
}

}  // namespace tensorpar::passes
