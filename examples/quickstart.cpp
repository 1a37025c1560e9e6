// examples/quickstart.cpp - a model, a plan, one training step
#include "standard_output.hpp"
// [quoted: quickstart]
#include <cstdio>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/exec/comm/threads.hpp>
#include <tensorpar/exec/cpu/eigen.hpp>
#include <tensorpar/exec/executor.hpp>
#include <tensorpar/search/intra/optimize.hpp>
#include <tensorpar/typed/typed.hpp>

using namespace tensorpar;
constexpr axis batch{"batch"}, features{"features"}, classes{"classes"};

struct mlp {
  static constexpr void define(auto& g) {
    auto x = g.input("x", {batch, features(64)});
    auto label = g.input("label", {batch}, dtype::i32);
    auto logits = x | linear{256} | relu{} | linear{.out = 10, .to = classes};
    g.output("loss", all(logits, label) | cross_entropy{});
  }
};
constexpr auto net = typed<mlp>;                                     // a wrong shape does not compile
static_assert(parameters(net) == 64 * 256 + 256 + 256 * 10 + 10);

int main() {
  machine const cluster = make_cluster("mine", {"core", 2e10, 1e10, i64{1} << 30, 2e-6}, 4, 4, {"memory", 4, 2e-6, 5e9}, {});
  computation_graph const graph = lower(net, {batch = 32});
  search_result const found = optimize(graph, cluster, analytical{});   // shardings, with a lower bound on any plan
  std::printf("predicted %.3g s, at most %.1f %% from the best\n", found.cost.seconds, 100 * found.gap);
  executor<compute::eigen<float>, comm::threads> run(graph, found.plan);
  run.initialise(1);
  host_batch data{{"x", {{32, 64}, std::vector<float>(32 * 64, 0.5f), {}}},
                  {"label", {shape({32}, dtype::i32), {}, std::vector<std::int32_t>(32, 3)}}};
  for (int k = 0; k < 5; ++k) std::printf("loss %.4f\n", run.step(data, 0.1).loss);
}
// [end]
