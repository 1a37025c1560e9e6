// tests/support/small_run.hpp - a training run without an executor: parameters and state that say which step they are of
#pragma once
#include <map>
#include <tensorpar/exec/files/checkpoint.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/program/unroll.hpp>

#include "small_graphs.hpp"

namespace tests {

/// The least that can be saved: values that follow from the step, so that a mixture of two steps shows.
struct small_run {
  using scalar = double;
  training_graph g;
  tensorpar::program prog;
  tensorpar::plan p;
  std::map<int, std::vector<double>> at;
  u64 step = 0, run_seed = 0;

  explicit small_run(optimizer_kind k = optimizer_kind::adamw, i64 width = 6) {
    computation_graph f;
    int const x = f.add_input("x", {4, 3});
    int v = f.add_with_weights(linear{width}, {x}, "fc");
    v = f.add_with_weights(mean_squared_error{}, {out(f, v), f.add_input("y", {4, width})}, "loss");
    f.add_output("loss", out(f, v));
    training_options o;
    o.optimizer.kind = k;
    g = differentiate(f, o);
    p = serial_plan(f);
    p.model = "small";
    p.optimizer = o.optimizer;
    p.scalar_bytes = 8;
    prog = unroll(g, p);
    set(0);
  }
  void set(u64 n) {
    step = n;
    run_seed = ~n;
    for (buffer const& b : prog.buffers)
      if (b.persistent)
        at[b.value] = std::vector<double>(static_cast<std::size_t>(b.type.elements()), static_cast<double>(n) + b.value / 64.0);
  }
  bool whole() const {
    for (auto const& [value, all] : at)
      for (double x : all)
        if (x != static_cast<double>(step) + value / 64.0) return false;
    return run_seed == ~step;
  }
  training_graph const& graph() const { return g; }
  tensorpar::program const& program() const { return prog; }
  tensorpar::plan const& plan_value() const { return p; }
  std::vector<double> fetch(int v) const { return at.at(v); }
  void store(int v, std::vector<double> const& all) { at.at(v) = all; }
  u64 steps() const { return step; }
  u64 seed() const { return run_seed; }
  void set_steps(u64 n) { step = n; }
  void set_seed(u64 n) { run_seed = n; }
};
}  // namespace tests
