// examples/batch_norm.cpp - batch norm evaluated with statistics of many batches instead of the present one's, and saved with the weights
#include "scratch_folder.hpp"
#include "standard_output.hpp"
#include <cstdio>
#include <tensorpar/exec/comm/threads.hpp>
#include <tensorpar/exec/cpu/common/batch_moments.hpp>
#include <tensorpar/exec/cpu/eigen.hpp>
#include <tensorpar/exec/executor.hpp>
#include <tensorpar/exec/files/parameters_file.hpp>
#include <tensorpar/exec/forward_pass.hpp>
#include <tensorpar/program/training.hpp>
#include <tensorpar/typed/typed.hpp>

using namespace tensorpar;

constexpr axis batch{"batch"}, channels{"channels"}, height{"height"}, width{"width"}, classes{"classes"};
struct net {
  static constexpr void define(auto& g) {
    auto image = g.input("image", {batch, channels(1), height(4), width(4)});
    auto label = g.input("label", {batch}, dtype::i32);
    auto h = image | named("conv", conv2d{.out = 8});
    auto y = all(h, h | op::channel_moments{}) | named("norm", op::normalize{}) | relu{};      // batch_norm() is the same without a name
    auto logits = y | flatten{} | named("last", linear{.out = 2, .to = classes});
    g.output("logits", logits);
    g.output("loss", all(logits, label) | cross_entropy{});
  }
};

/// Noise, with a brighter half: the upper or the lower one.
host_batch images(i64 n, u64 from) {
  host_batch b{{"image", {{n, 1, 4, 4}, {}, {}}}, {"label", {shape({n}, dtype::i32), {}, {}}}};
  for (u64 i = from; i < from + static_cast<u64>(n); ++i) {
    bool const lower = core::mix(i) % 2;
    for (u64 k = 0; k < 16; ++k)
      b["image"].real.push_back(static_cast<float>(core::mix(16 * i + k) % 1000) / 500 + ((k >= 8) == lower ? 1.0f : 0.0f));
    b["label"].index.push_back(lower);
  }
  return b;
}

int main() {
  scratch_folder const folder;
  std::string const file = folder.path() + "/batch_norm.safetensors";
  training_options o;
  o.optimizer.kind = optimizer_kind::adamw;
  computation_graph const graph = ir::with_moments_as_outputs(lower(typed<net>, {batch = 64}));
  executor<compute::eigen<float>, comm::threads> run(differentiate(graph, o), one_device_plan(graph, o));
  run.initialise(1);
  for (u64 k = 0; k < 60; ++k) run.step(images(64, 64 * k), 0.01);

  // [quoted: statistics]
  forward_pass<compute::eigen<float>> pass(ir::with_moments_as_outputs(lower(typed<net>, {batch = 100})));
  pass.take_parameters(run);                                             // the final weights
  exec::batch_moments<float> moments;
  for (u64 k = 0; k < 10; ++k) {                                         // more batches, better statistics; their sizes may differ
    pass.run(images(100, 100 * k));
    moments.add(pass);
  }
  forward_pass<compute::eigen<float>> served(ir::with_running_statistics(lower(typed<net>, {batch = 1})));
  moments.store(served);                                                 // parameter "norm.moments"
  served.take_parameters(run);                                           // all others
  save_parameters(served, file);                                         // both
  // [end]

  // [quoted: under the plan]
  moments.add(run, run.evaluate(images(64, 1000), ir::moments_in(run.graph().graph)));
  // [end]

  forward_pass<compute::eigen<float>> again(ir::with_running_statistics(lower(typed<net>, {batch = 1})));
  load_parameters(again, file);
  int right = 0;
  for (u64 i = 0; i < 200; ++i) {                                        // one at a time: no batch to take statistics from
    host_batch const one = images(1, 1000000 + i);
    again.run(one);
    std::vector<float> const logits = again.output("logits");
    right += (logits[1] > logits[0]) == (one.at("label").index[0] == 1);
  }
  std::printf("%d of 200 right, one at a time\n", right);
  return right > 180 ? 0 : 1;
}
