// examples/quickstart.cpp - a model, a plan, one training step
#include "standard_output.hpp"
// [quoted: quickstart]
#include <cstdio>
#include <tensorpar/plan.hpp>
#include <tensorpar/run.hpp>

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

int main() {
  training_problem const problem{.graph = lower(typed<mlp>, {batch = 1}), .samples = 32};   // a wrong shape does not compile
  planned const found = plan_training(problem, preset("logical:4"), cost::analytical{});    // four devices of this machine
  std::printf("predicted %.3g s a step, by %s\n", found.seconds(), found.best().what.c_str());
  trainer<compute::eigen<float>, comm::threads> run(found);                                 // or (problem, read_plan("plan.json"))
  run.initialise(1);
  host_batch const data{{"x", host_tensor::reals({32, 64}, std::vector<float>(32 * 64, 0.5f))},
                        {"label", host_tensor::integers({32}, std::vector<std::int32_t>(32, 3))}};
  for (int k = 0; k < 5; ++k) std::printf("loss %.4f\n", run.step(data, 0.1).loss);
}
// [end]
