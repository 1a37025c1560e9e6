// examples/evaluate.cpp - outputs of a trained model, under its plan or for batches of any size, and its weights as a file
#include "scratch_folder.hpp"
#include "standard_output.hpp"
#include <cstdio>
#include <tensorpar/exec/comm/threads.hpp>
#include <tensorpar/exec/cpu/eigen.hpp>
#include <tensorpar/exec/executor.hpp>
#include <tensorpar/exec/files/parameters_file.hpp>
#include <tensorpar/exec/forward_pass.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/program/training.hpp>
#include <tensorpar/typed/typed.hpp>

using namespace tensorpar;

constexpr axis batch{"batch"}, classes{"classes"};
struct net {
  static constexpr void define(auto& g) {
    auto x = g.input("x", {batch, 2});
    auto label = g.input("label", {batch}, dtype::i32);
    auto hidden = x | named("first", linear{32}) | tanh_{};
    auto logits = hidden | named("last", linear{.out = 2, .to = classes});
    g.output("hidden", hidden);                            // an activation is read where it is an output
    g.output("logits", logits);
    g.output("loss", all(logits, label) | cross_entropy{});
  }
};

/// Points of the plane, and whether they lie in a circle.
host_batch points(i64 n, u64 from) {
  host_batch b{{"x", {{n, 2}, {}, {}}}, {"label", {shape({n}, dtype::i32), {}, {}}}};
  for (u64 i = from; i < from + static_cast<u64>(n); ++i) {
    float const x = static_cast<float>(core::mix(2 * i) % 1000) / 500 - 1, y = static_cast<float>(core::mix(2 * i + 1) % 1000) / 500 - 1;
    b["x"].real.insert(b["x"].real.end(), {x, y});
    b["label"].index.push_back(x * x + y * y < 0.6f);
  }
  return b;
}

int parameter(computation_graph const& g, std::string const& name) {
  int x = 0;
  while (g.value(x).name != name) ++x;
  return x;
}

int main() {
  scratch_folder const folder;
  std::string const file = folder.path() + "/evaluate.safetensors";
  training_options o;
  o.optimizer.kind = optimizer_kind::adamw;
  computation_graph const graph = lower(typed<net>, {batch = 128});
  executor<compute::eigen<float>, comm::threads> run(differentiate(graph, o), one_device_plan(graph, o));
  run.initialise(1);
  for (u64 k = 0; k < 300; ++k) run.step(points(128, 128 * k), 0.01);

  // [quoted: under the plan]
  double const before = run.evaluate(points(128, 1000000));                     // the mean loss of a batch like a step's; nothing changes
  auto const found = run.evaluate(points(128, 1000000), {"logits", "loss"});    // outputs by name, whole, on every process
  std::printf("loss %.3f, the first logits %.3f and %.3f\n", before, static_cast<double>(found.at("logits")[0]),
              static_cast<double>(found.at("logits")[1]));
  // [end]

  // [quoted: evaluate]
  forward_pass<compute::eigen<float>> pass(lower(typed<net>, {batch = 50}));    // another batch size, one device, nothing dropped out
  pass.take_parameters(run);                                                    // again after further steps
  host_batch const unseen = points(50, 1000000);
  pass.run(unseen);
  std::vector<float> const logits = pass.output("logits");                      // by row: 50 times 2
  int right = 0;
  for (std::size_t i = 0; i < 50; ++i) right += (logits[2 * i + 1] > logits[2 * i]) == (unseen.at("label").index[i] == 1);
  std::printf("%d of 50 right, loss %.3f\n", right, static_cast<double>(pass.output("loss")[0]));
  // [end]

  // [quoted: weights]
  save_parameters(run, file);                                                   // "first.0", "first.1", "last.0", "last.1"
  forward_pass<compute::eigen<float>> served(lower(typed<net>, {batch = 50}));  // no executor, no plan
  load_parameters(served, file);                                                // or a file that numpy has written; an executor, too
  // [end]
  served.run(unseen);
  bool const same = served.output("hidden") == pass.output("hidden");

  exec::stored_tensors header;                                                        // a file with names of another program
  for (std::string const name : {"first", "last"})
    for (int k : {0, 1}) {
      shape const& s = graph.type(parameter(graph, name + (k ? ".1" : ".0")));
      header.tensors.push_back({"model." + name + (k ? ".bias" : ".weight"), exec::stored_type::f32, {s.d[0].n}, 0, 0});
      if (s.rank == 2) header.tensors.back().extents.push_back(s.d[1].n);
    }
  exec::safetensors_writer out(file, header);
  for (char const* name : {"first.0", "first.1", "last.0", "last.1"}) out.write(run.fetch(parameter(graph, name)));
  out.finish();
  // [quoted: names]
  load_parameters(served, file, [](std::string const& parameter) {              // "first.0" is "model.first.weight" there
    return "model." + parameter.substr(0, parameter.size() - 1) + (parameter.back() == '0' ? "weight" : "bias");
  });
  // [end]
  served.run(unseen);
  return right > 40 && same && served.output("hidden") == pass.output("hidden") ? 0 : 1;
}
