// examples/query_plan.cpp - questions about a plan's program and its predicted timeline, as lazy views
#include "standard_output.hpp"
#include <cstdio>
#include <tensorpar/plan.hpp>
#include <tensorpar/report/queries.hpp>
#include <tensorpar/simulate/engine.hpp>
#include <tensorpar/zoo/registry.hpp>

using namespace tensorpar;

int main() {
  training_problem const problem{.graph = zoo::make_reduced("bert_large", 1), .samples = 8};
  machine const cluster = preset("g4dn.12xlarge:1");
  planned const found = plan_training(problem, cluster, cost::analytical{}, {.effort = effort::quick});
  // [quoted: queries]
  using namespace tensorpar::queries;
  program const& step = found.step.program;
  timeline const predicted = simulate(step, cluster, cost::analytical{});

  std::printf("device 3 takes part in moving %.0f bytes\n", total(tasks(step) | on_device(3) | task_kind::reshard | bytes));
  std::printf("all devices communicate for %.3g s\n", total(spans(predicted) | lane::communication | seconds));
  double longest = 0;
  for (gap const& g : spans(predicted) | on_device(0) | lane::compute | gaps) longest = std::max(longest, g.end - g.start);
  std::printf("device 0 waits for at most %.3g s\n", longest);
  // [end]
  return 0;
}
