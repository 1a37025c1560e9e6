// bench/checking.cpp - how long an executor checks its program, beside how long it takes to be made
#include "../examples/standard_output.hpp"
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstring>
#include <iostream>
#include <sys/mman.h>
#include <tensorpar/check/check.hpp>
#include <tensorpar/core/json.hpp>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/exec/comm/threads.hpp>
#include <tensorpar/exec/executor.hpp>
#include <tensorpar/exec/teams/teams.hpp>
#include <tensorpar/ir/machine/machine_presets.hpp>
#include <tensorpar/search/plan_training.hpp>
#include <tensorpar/zoo/registry.hpp>

using namespace tensorpar;

namespace {

/// host_memory; or, for arenas that fit no machine of this size, pages that are zeroed as host_memory's are and
/// given back at once. They are zero when they are read, so executors can be made in it, and not run.
struct pages : exec::host_memory {
  static inline bool given_back = false, zeroed = true;       // by case
  static constexpr i64 piece = i64{64} << 20;
  std::byte* allocate(i64 n) const {
    if (!given_back) return exec::host_memory::allocate(n);
    void* const all =
        mmap(nullptr, static_cast<std::size_t>(n), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED) throw error("no addresses for an arena", "bench checking", std::to_string(n) + " bytes");
    auto* const p = static_cast<std::byte*>(all);
    madvise(all, static_cast<std::size_t>(n), MADV_HUGEPAGE);
    for (i64 at = 0; zeroed && at < n; at += piece) {
      auto const some = static_cast<std::size_t>(std::min(piece, n - at));
      std::memset(p + at, 0, some);
      madvise(p + at, some, MADV_DONTNEED);
    }
    return p;
  }
  void release(std::byte* p, i64 n) const {
    if (given_back) munmap(p, static_cast<std::size_t>(n));
    else exec::host_memory::release(p, n);
  }
};

struct teams_in_pages : compute::teams<float, exec::host_teams<>, op::op_set<>, bfloat16> {
  using memory = pages;
  memory device_memory() const { return {}; }
};
struct threads_in_pages : comm::threads {
  using memory = pages;
  using comm::threads::threads;
};

double since(std::chrono::steady_clock::time_point t) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - t).count();
}
double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

/// A planned model: its check alone beside an executor made of graph and plan without it: unrolled, its arenas
/// zeroed, its tasks ready. In turn, so that noise hits both.
void measure(std::string const& name, planned_step const& step, int times, double limit = 0.05) {
  std::vector<double> checking, making;
  i64 bytes = 0;
  planned_step unchecked = exec::detail::ready<teams_in_pages>(exec::already_checked{{step.graph, step.plan}});
  for (int k = 0; k < times; ++k) {
    auto t = std::chrono::steady_clock::now();
    require_correct(unchecked.graph, unchecked.plan, unchecked.program, "bench checking");
    checking.push_back(since(t));
    planned_step fresh{step.graph, step.plan};
    t = std::chrono::steady_clock::now();
    executor<teams_in_pages, threads_in_pages> made(exec::already_checked{std::move(fresh)});
    making.push_back(since(t));
    bytes = 0;
    for (i64 b : made.allocated_bytes()) bytes += b;
  }
  core::json line{{"bench", "checking"}, {"case", name}, {"metric", "check"}, {"value", median(checking)}, {"unit", "s"},
                  {"reference", median(making)}, {"ratio", median(checking) / median(making)},
                  {"tasks", unchecked.program.tasks.size()}, {"arenas GB", static_cast<double>(bytes) / 1e9},
                  {"in", pages::given_back ? pages::zeroed ? "pages given back" : "pages not touched" : "memory"}};
  if (limit > 0) line["limit"] = {{"ratio", limit}};
  std::cout << line.dump() << std::endl;
}

planned_step planned_for(std::string const& model, i64 samples, std::string const& machine, precision numbers) {
  training_problem const problem{.graph = zoo::make(model, samples), .precision = numbers};
  return plan_training(problem, preset(machine), cost::analytical{}, {.effort = effort::quick}).step;
}

}  // namespace

int main(int argc, char** argv) {
  int times = 5;
  bool quick = false;
  CLI::App app("Checking a program beside making its executor.");
  app.add_option("--times", times, "of each")->check(CLI::Range(1, 1000));
  app.add_flag("--quick", quick, "the smallest case alone");
  CLI11_PARSE(app, argc, argv);
  if (quick) {
    std::string const small = "gpt3_1b3:layers=2,hidden=64,heads=2,wide=128,seq=32,vocab=128";
    measure("a small gpt on 4", planned_for(small, 4, "logical:4", precision::f32), 1, 0);
    return 0;
  }
  std::string const gpt2 = "gpt3_1b3:layers=12,hidden=768,heads=12,wide=3072,vocab=50257";
  measure("gpt2 on 4", planned_for(gpt2, 4, "logical:4", precision::f32), times);
  measure("resnet50 on 4", planned_for("resnet50", 64, "logical:4", precision::f32), times);
  pages::given_back = true;
  planned_step const large = planned_for("llama3_8b", 64, "dgx-h100:8", precision::bf16);
  measure("llama3_8b on 64", large, 1);                                       // minutes: terabytes are zeroed
  pages::zeroed = false;
  measure("llama3_8b on 64, arenas not zeroed", large, times, 0);
}
