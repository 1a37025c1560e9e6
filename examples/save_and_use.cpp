// examples/save_and_use.cpp - a run that is saved, resumed by another plan, and whose network is then used
#include "scratch_folder.hpp"
#include "standard_output.hpp"
#include <algorithm>
#include <cstdio>
#include <tensorpar/exec/comm/threads.hpp>
#include <tensorpar/exec/cpu/eigen.hpp>
#include <tensorpar/exec/executor.hpp>
#include <tensorpar/exec/files/checkpoint.hpp>
#include <tensorpar/exec/forward_pass.hpp>
#include <tensorpar/exec/step/learning_rate.hpp>
#include <tensorpar/program/training.hpp>
#include <tensorpar/typed/typed.hpp>

using namespace tensorpar;
constexpr axis batch{"batch"}, features{"features"}, classes{"classes"};

struct mlp {
  static constexpr void define(auto& g) {
    auto x = g.input("x", {batch, features(8)});
    auto label = g.input("label", {batch}, dtype::i32);
    auto logits = x | linear{32} | relu{} | named("head", linear{.out = 8, .to = classes});
    g.output("logits", logits);
    g.output("loss", all(logits, label) | cross_entropy{});
  }
};

/// Sample i is a one at place i + shift, and its class is that place.
host_batch ones(i64 samples, u64 shift) {
  host_batch b{{"x", host_tensor::reals({samples, 8}, std::vector<float>(static_cast<std::size_t>(samples) * 8))},
               {"label", host_tensor::integers({samples}, std::vector<std::int32_t>(static_cast<std::size_t>(samples)))}};
  for (std::size_t i = 0; i < b["label"].index.size(); ++i) {
    std::size_t const place = (i + shift) % 8;
    b["x"].real[i * 8 + place] = 1;
    b["label"].index[i] = static_cast<std::int32_t>(place);
  }
  return b;
}

// [quoted: resume]
/// Trains up to so many steps, from where the last run was saved. Batches and rates follow from the step alone.
template <class Run> void train(Run& run, u64 steps, std::string const& folder) {
  rate_schedule const rates = warm_up_cosine{.peak = 0.5, .warm_up = 5, .total = 200, .last = 0.01};
  if (found_checkpoint const found = latest_checkpoint(folder)) load_checkpoint(run, found.path);
  else run.initialise(1);                                              // a fresh start
  while (run.steps() < steps) {
    run.step(ones(16, run.steps()), rate(rates, run.steps()));
    if (run.steps() % 50 == 0) save_checkpoint(run, folder);           // keeps the 2 newest; a third argument changes that
  }
}
// [end]

int main() {
  using trainer = executor<compute::eigen<float>, comm::threads>;
  scratch_folder const scratch;
  std::string const folder = scratch.path() + "/run";
  computation_graph const whole = lower(typed<mlp>, {batch = 16}), half = lower(typed<mlp>, {batch = 8});
  training_options halves;
  halves.micro_batches = 2;
  {
    trainer run(differentiate(whole), one_device_plan(whole));
    train(run, 100, folder);
  }
  trainer run(differentiate(half, halves), one_device_plan(half, halves));   // gradients of two micro-batches added up
  train(run, 200, folder);

  // [quoted: use]
  forward_pass<compute::eigen<float>> net(lower(typed<mlp>, {batch = 4}));   // a batch of its own, on one device of this process
  net.take_parameters(run);                                                  // by name; again after further steps
  host_batch const data = ones(4, 3);                                        // every input, the labels too
  net.run(data);
  std::vector<float> const logits = net.output("logits");                    // [4, 8], row by row
  // [end]
  int right = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    auto const row = logits.begin() + static_cast<std::ptrdiff_t>(i * 8);
    right += std::max_element(row, row + 8) - row == data.at("label").index[i];
  }
  std::printf("%llu steps, loss %.4f, %d of 4 right\n", static_cast<unsigned long long>(run.steps()),
              static_cast<double>(net.output("loss")[0]), right);
  return right == 4 ? 0 : 1;
}
