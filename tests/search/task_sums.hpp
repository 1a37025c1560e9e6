// tests/search/task_sums.hpp - what the tasks of an assignment take, from the program that an executor would run
#pragma once
#include "random_problem.hpp"

#include <tensorpar/program/passes/memory_pass.hpp>
#include <tensorpar/program/unroll.hpp>
#include <tensorpar/search/solve/baselines.hpp>

namespace tensorpar::search_test {
using namespace search;

/// Seconds of all tasks of the unrolled program, one after the other.
template <class M>
double all_tasks(training_graph const& t, mapping_problem const& p, assignment const& a, machine const& on, M const& model, int micro) {
  plan q;
  q.cluster = on;
  q.nodes = op_strategies(p, a);
  q.micro_batches = micro;
  planned_step const step = passes::memory_pass(t, q);
  program const prog = unroll(step.graph, step.plan);
  double sum = 0;
  for (task const& x : prog.tasks) {
    if (x.kind == task_kind::reshard) {
      sum += model.seconds(cost::reshard_query{x.step, prog.buffers[static_cast<std::size_t>(x.in[0])].type, 4, on});
      continue;
    }
    std::vector<shape> in, out;
    for (int b : x.in)
      in.push_back(part_of(prog.buffers[static_cast<std::size_t>(b)].where, prog.buffers[static_cast<std::size_t>(b)].type));
    for (int b : x.out)
      out.push_back(part_of(prog.buffers[static_cast<std::size_t>(b)].where, prog.buffers[static_cast<std::size_t>(b)].type));
    sum += model.seconds(cost::compute_query{
        x.op, {in.data(), static_cast<int>(in.size())}, {out.data(), static_cast<int>(out.size())}, 4, on.kind_of(x.mesh.start)});
  }
  return sum;
}

/// Prices reshards alone, by the bytes sent: sharing and better sources can only make it less.
struct bytes_model {
  double seconds(cost::compute_query const&) const { return 0; }
  double seconds(cost::reshard_query const& q) const { return bytes_sent(q.step, q.logical, q.scalar_bytes); }
};

inline assignment random_in_sequence(mapping_problem const& p, std::mt19937_64& g) {
  assignment a;
  for (int v = 0; v < p.operators(); ++v) {
    int i = 0;
    do i = static_cast<int>(g() % static_cast<u64>(p.choices(v).count()));
    while (p.choices(v).shardings[static_cast<std::size_t>(i)].start != 0);
    a.push_back(i);
  }
  return a;
}

}  // namespace tensorpar::search_test
