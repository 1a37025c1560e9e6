// tests/report/two_stages.hpp - two stages, two micro-batches, one second each way: 1F1B by hand
#pragma once
#include <tensorpar/simulate/pipeline.hpp>

namespace tests {

inline tensorpar::pipeline two_stages() {
  using enum tensorpar::pass;
  tensorpar::pipeline p;
  p.mini_batch = 2;
  p.groups = {{0, 1}, {1, 2}};
  p.stages.resize(2);
  p.stages[0].nodes = {0};
  p.stages[1].nodes = {1};
  p.stages[1].group = 1;
  p.schedule = {{{0, forward, 0}, {0, forward, 1}, {0, backward, 0}, {0, backward, 1}},
                {{1, forward, 0}, {1, backward, 0}, {1, forward, 1}, {1, backward, 1}}};
  return p;
}
inline tensorpar::simulation::pipeline_costs seconds_each() { return {{{1, 1, 0, 0, 1}, {1, 1, 0, 0, 1}}, {}, 0}; }

}  // namespace tests
