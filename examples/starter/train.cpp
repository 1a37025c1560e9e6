// train.cpp - `train [file]`: trains the model under a plan that was written before
#include "model.hpp"

#include <cstdio>
#include <exception>
#include <tensorpar/run.hpp>

using namespace tensorpar;

int main(int count, char** words) try {
  trainer<compute::eigen<float>, comm::threads> run(problem(), read_plan(count > 1 ? words[1] : "plan.json"));
  run.initialise(1);
  double loss = 0;
  for (unsigned step = 0; step < 100; ++step) {
    loss = run.step(samples(step), 0.05).loss;
    if (step % 20 == 0) std::printf("step %3u  loss %.4f\n", step, loss);
  }
  std::printf("step 100  loss %.4f on %d devices\n", loss, run.devices());
  return loss < 0.5 ? 0 : 1;                                   // it learns, or something is wrong
} catch (std::exception const& e) {
  std::fprintf(stderr, "train: %s\n", e.what());
  return 1;
}
