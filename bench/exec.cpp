// bench/exec.cpp - seconds of a training step: MLP 4 x 4096, batch 256, float; one device against PyTorch, four against one
#include "../examples/standard_output.hpp"
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <tensorpar/core/json.hpp>
#include <tensorpar/exec/comm/threads.hpp>
#include <tensorpar/exec/cpu/eigen.hpp>
#include <tensorpar/exec/executor.hpp>
#include <tensorpar/typed/typed.hpp>

using namespace tensorpar;

namespace {

constexpr axis batch{"batch"}, features{"features"};
struct model {
  static constexpr void define(auto& g) {
    auto x = g.input("x", {batch, features(4096)});
    auto y = g.input("y", {batch, features(4096)});
    auto z = x | linear{4096} | relu{} | linear{4096} | relu{} | linear{4096} | relu{} | linear{4096};
    g.output("loss", all(z, y) | mean_squared_error{});
  }
};

/// A step with samples split over the devices; how long the last one took.
class bench {
 public:
  bench(int devices, i64 rows) : run_(make(devices, rows)) {
    run_.initialise(1);
    for (char const* name : {"x", "y"}) {
      host_tensor t{{dim(rows), dim(4096)}, std::vector<float>(static_cast<std::size_t>(rows * 4096)), {}};
      for (std::size_t i = 0; i < t.real.size(); ++i) t.real[i] = static_cast<float>((i * 2654435761u) % 1024) / 1024 - 0.5f;
      data_[name] = std::move(t);
    }
  }
  double step() { return run_.step(data_, 1e-3).seconds; }

 private:
  using executor_type = executor<compute::eigen<float>, comm::threads>;
  executor_type run_;
  host_batch data_;
  static executor_type make(int devices, i64 rows) {
    computation_graph const g = lower(typed<model>, {batch = rows});
    plan p;
    p.graph = g.hash();
    p.cluster = make_cluster("threads", {"core", 1e10, 1e10, i64{8} << 30, 0}, devices, devices, {"memory", devices, 0, 1e10}, {});
    for (int v = 0; v < g.node_count(); ++v) p.nodes.push_back({{0, {{'0', devices, 1}}}});
    return executor_type(differentiate(g), p);
  }
};

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

/// limit: what the ratio to the reference may be; 0: there is nothing to compare with.
void row(std::string const& name, double value, double reference, double limit) {
  core::json line{{"bench", "exec"}, {"case", name}, {"metric", "median step"}, {"value", value}, {"unit", "s"}, {"reference", reference}};
  line["ratio"] = reference > 0 ? value / reference : 0.0;
  if (limit > 0) line["limit"] = {{"ratio", limit}};
  std::cout << line.dump() << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
  int steps = 7;
  i64 rows = 256;
  std::string python;
  CLI::App app("Training step of an MLP 4 x 4096 in float.");
  app.add_option("--steps", steps, "timed steps of each")->check(CLI::Range(1, 1000));
  app.add_option("--rows", rows, "samples per step")->check(CLI::Range(4, 65536));
  app.add_option("--torch", python, "a python that has PyTorch; default: TENSORPAR_TORCH_PYTHON; neither: no comparison")
      ->envname("TENSORPAR_TORCH_PYTHON");
  CLI11_PARSE(app, argc, argv);
  bench one(1, rows), four(4, rows);
  one.step();
  four.step();
  std::vector<double> a, b;
  for (int k = 0; k < steps; ++k) { a.push_back(one.step()); b.push_back(four.step()); }     // in turn: noise hits both
  if (python.empty()) {
    row("1 device", median(a), 0, 0);
  } else {
    std::string const command =
        "'" + python + "' '" + TENSORPAR_BENCH_DIR + "/exec_torch.py' " + std::to_string(rows) + " " + std::to_string(steps);
    double torch = 0;
    char version[64] = {};
    FILE* const answer = popen(command.c_str(), "r");
    bool const answered = answer && std::fscanf(answer, "%lf %63s", &torch, version) == 2;
    if (!answer || pclose(answer) != 0 || !answered || torch <= 0) {
      std::cerr << "bench exec: PyTorch failed: " << command << "\n"; return 1;
    }
    for (int k = 0; k < steps; ++k) a.push_back(one.step());                                    // before and after PyTorch's turn
    row(std::string("1 device, against PyTorch ") + version + " on 1 thread", median(a), torch, 1.5);
  }
  row("4 in-process devices, against 1 device with the same batch", median(b), median(a), 1.15);
}
