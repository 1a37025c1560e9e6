// tensorpar/exec/step/program_check.hpp - does a program that is handed over fit graph, plan and kernels? One
// that does not leaves its arena
#pragma once
#include <tensorpar/check/check.hpp>
#include <tensorpar/core/index.hpp>
#include <tensorpar/exec/comm/traffic.hpp>
#include <tensorpar/exec/device/concepts.hpp>
#include <tensorpar/exec/device/narrow.hpp>
#include <tensorpar/program/program_hash.hpp>
#include <tensorpar/program/unroll.hpp>

namespace tensorpar::exec {

namespace detail {
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_program(std::string what, i64 scalar_bytes) {
  throw error(
      "the program " + std::move(what), "executor",
      "what unroll(graph, plan, {&policy::workspace}) makes of this graph and plan, the plan's scalar_bytes "
      "being " +
          std::to_string(scalar_bytes));
}
/// The graph, if the policy has all of its kernels: asked before a program is unrolled, which asks kernels
/// for their scratch.
template <class Compute> training_graph const& with_kernels(training_graph const& t) {
  require_kernels<Compute>(t.graph, "executor");
  return t;
}
/// Of what all processes of a run have alike.
inline u64 whole_hash(training_graph const& t, plan const& p, program const& q) {
  return core::hasher{}.add(t.graph.hash()).add(passes::task_hash(q)).add(p.optimizer.on_non_finite).value();
}
/// What ranks are told before a run of it.
inline traffic announced(training_graph const& t, plan const& p, program const& q) {
  traffic r = traffic_of(q);
  r.program = whole_hash(t, p, q);
  return r;
}

/// What of a compute policy a program has to fit: one type for all of them, so that programs are checked by
/// one function.
struct policy_facts {
  i64 scalar_bytes;
  bool (*supports)(op::any_op const&);
  i64 (*workspace)(op::any_op const&, shapes, shapes);
};

inline void check_program(training_graph const& t, plan const& p, program const& q,
                          policy_facts const& kernels) {
  i64 const each = kernels.scalar_bytes;
  auto const no = [each](std::string what) { refuse_program(std::move(what), each); };
  int const devices = p.cluster.size(), buffers = static_cast<int>(q.buffers.size());
  if (q.scalar_bytes != each) no("is for scalars of " + std::to_string(q.scalar_bytes) + " bytes");
  if (static_cast<int>(q.arena.size()) != devices)
    no("is for " + std::to_string(q.arena.size()) + " devices, the plan for " + std::to_string(devices));
  if (!q.listed_for.empty())
    no("lists one device only of those that do the same: it is there to be simulated");
  if (q.micro_batches != p.micro_batches)
    no("is for " + std::to_string(q.micro_batches) + " micro-batches, the plan for " +
       std::to_string(p.micro_batches));
  auto const ours = [&](std::vector<int> const& all) {
    return all.empty() || (all.front() >= 0 && all.back() < devices);
  };
  for (int b = 0; b < buffers; ++b) {
    buffer const& x = q.buffers[idx(b)];
    std::string const name = "buffer " + std::to_string(b);
    if (x.value >= static_cast<int>(t.graph.values.size()) ||
        (x.value >= 0 && x.type != t.graph.type(x.value)))
      no("is of another graph: " + name + " is value " + std::to_string(x.value) + " of "
         + op::spell(x.type));
    if (!ours(x.devices) || x.offset.size() != x.devices.size()) no("has no place for " + name);
    if (x.value >= 0 && !x.devices.empty())
      if (i64 const n = ir::part_of(x.where, x.type).elements()
          * tensorpar::bytes_of(x.type.type, each); x.bytes < n)
        no("has " + std::to_string(x.bytes) + " bytes for " + name + ", which takes " + std::to_string(n));
    for (std::size_t k = 0; k < x.devices.size(); ++k)
      if (x.offset[k] < 0 || x.bytes < 0 ||
          x.offset[k] > q.arena[idx(x.devices[k])] - x.bytes)
        no("has " + name + " outside of the arena of device " + std::to_string(x.devices[k]));
  }
  for (std::size_t i = 0; i < q.tasks.size(); ++i) {
    task const& x = q.tasks[i];
    auto const name = [&] { return "task " + std::to_string(i) + " (" + x.name + ")"; };
    bool known = ours(x.devices) && x.workspace < buffers;
    if (x.kind == task_kind::compute) known = known && x.node >= 0 && x.node < t.graph.node_count();
    for (auto const* side : {&x.in, &x.out}) for (int b : *side) known = known && b >= 0 && b < buffers;
    if (!known)
      no("is of another graph: " + name() + " has devices, buffers or an operator that there are not");
    if (x.kind != task_kind::compute || x.devices.empty()) continue;
    std::vector<shape> in, out;
    auto const shapes_of = [&](std::vector<int> const& side, std::vector<shape>& to) {
      for (int b : side) {
        buffer const& y = q.buffers[idx(b)];
        to.push_back(ir::part_of(y.where, y.type));
      }
      return shapes{to.data(), static_cast<int>(to.size())};
    };
    if (!kernels.supports(x.op)) continue;                               // refused by name elsewhere
    shapes const is = shapes_of(x.in, in), os = shapes_of(x.out, out);
    i64 const asked = kernels.workspace(x.op, is, os) * each;
    i64 const has = x.workspace < 0 ? 0 : q.buffers[idx(x.workspace)].bytes;
    if (has < asked)
      no("has " + std::to_string(has) + " bytes of scratch for " + name() + ", which asks for " +
         std::to_string(asked));
  }
}
}  // namespace detail

/// Throws `error` unless the program is one of this graph, of as many devices and micro-batches as the plan
/// has, for this policy's scalar. Every buffer holds its elements, every operator has the scratch that its
/// kernel asks for, and all lie in the arenas. Returns the program. O(program).
template <class Compute>
program const& require_program(training_graph const& t, plan const& p, program const& q) {
  detail::check_program(t, p, q,
                        {sizeof(typename Compute::scalar_type),
                         [](op::any_op const& o) -> bool { return Compute::supports(o); },
                             &Compute::workspace});
  return q;
}

}  // namespace tensorpar::exec
