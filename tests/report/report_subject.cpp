#include "report_subject.hpp"

#include <algorithm>
#include <random>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/simulate/engine.hpp>

namespace tests {

report_subject report_of(computation_graph const& g, int devices, unsigned seed, int micro_batches) {
  std::mt19937 draw(seed);
  training_options o;
  o.micro_batches = micro_batches;
  report_subject s{differentiate(g, o), random_plan(g, devices, draw), {}, {}, {}};
  s.p.model = "sample";
  s.p.micro_batches = micro_batches;
  s.q = unroll(s.t, s.p);
  s.p.peak_bytes = s.q.arena;
  s.predicted = simulate(s.q, s.p.cluster, tensorpar::cost::analytical{});
  s.measured = s.predicted;
  s.measured.memory.clear();
  for (span& x : s.measured.spans) {
    x.start *= 1.5;
    x.end *= 1.5 - static_cast<double>(draw() % 8) / 1e6;
  }
  s.measured.seconds *= 1.5;
  return s;
}

computation_graph one_operator() {
  computation_graph g;
  int const x = g.add_input("x", {4, 6}), w = g.add_parameter("w", {4, 6}, tensorpar::op::init::normal_02);
  g.add_output("loss", out(g, g.add(mean_squared_error{}, {w, x}, "only")));
  return g;
}

computation_graph hostile_names(int n) {
  computation_graph g;
  int const x = g.add_input("<input>&\"'</script>", {12, 24}), y = g.add_input("y", {12, 24});
  int v = x, before = x;
  for (int i = 0; i < n; ++i) {
    std::string const name = i % 3 == 0   ? "</script><b>" + std::to_string(i)
                             : i % 3 == 1 ? "a\"&'\n\\" + std::to_string(i)
                                          : "\xce\xbb\xf0\x9f\x99\x82 &amp; " + std::to_string(i);
    if (i % 3 == 2) v = out(g, g.add(add{}, {v, before}, name));
    else v = out(g, g.add(relu{}, {v}, name));
    if (i % 3 == 2) before = v;
  }
  int const w = g.add_parameter("w", {24, 24}, tensorpar::op::init::normal_02);
  v = out(g, g.add(contraction("bi,io->bo"), {v, w}, "-->"));
  g.add_output("loss", out(g, g.add(mean_squared_error{}, {v, y}, "loss")));
  return g;
}

}  // namespace tests
