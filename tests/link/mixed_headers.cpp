// tests/link/mixed_headers.cpp - the other unit, which has headers alone: it reads the plan and unrolls it, and finds the same program
#include <tensorpar/plan/plan_file.hpp>
#include <tensorpar/program/planned.hpp>
#include <tensorpar/program/program_hash.hpp>
#include <tensorpar/program/step_of.hpp>
#include <tensorpar/program/training_problem.hpp>
#include <tensorpar/tensorpar.hpp>
#include <tensorpar/typed/lower.hpp>
#ifdef TENSORPAR_COMPILED
#error "this unit is to compile what it uses"
#endif

#include <cstdio>

using namespace tensorpar;
planned planned_in_library(training_problem const& p, bool slow);
void write_in_library(plan const& p, std::string const& file);

namespace {
constexpr axis batch{"batch"}, features{"features"}, classes{"classes"};
struct mlp {
  static constexpr void define(auto& g) {
    auto x = g.input("x", {batch, features(64)});
    auto label = g.input("label", {batch}, dtype::i32);
    g.output("loss", all(x | linear{2048} | relu{} | linear{.out = 16, .to = classes}, label) | cross_entropy{});
  }
};
}  // namespace

int main(int count, char** words) {
  if (count < 2) return 2;
  training_problem const problem{.graph = lower(typed<mlp>, {batch = 1}), .samples = 64};
  planned const fast = planned_in_library(problem, false), slow = planned_in_library(problem, true);
  write_in_library(fast.plan, words[1]);
  plan const p = read_plan(words[1]);
  planned_step const here = step_of(graph_of(problem.graph, p, 64), p);
  bool const same_plan = p == fast.plan;
  bool const same_program = passes::task_hash(here.program) == passes::task_hash(fast.step.program);
  bool const own_model = slow.seconds() > fast.seconds();
  std::printf("plans %s, programs %s, a model of one's own %s\n", same_plan ? "agree" : "differ", same_program ? "agree" : "differ",
              own_model ? "counts" : "is ignored");
  return same_plan && same_program && own_model ? 0 : 1;
}
