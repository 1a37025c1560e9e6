// plan.cpp - `plan [file]`: finds the fastest plan for the model on this machine, and writes it
#include "model.hpp"

#include <cstdio>
#include <exception>
#include <tensorpar/plan.hpp>
#include <tensorpar/plan/plan_file.hpp>

using namespace tensorpar;

int main(int count, char** words) try {
  char const* const file = count > 1 ? words[1] : "plan.json";
  machine const on = preset("logical:4");                     // four devices of this machine; or read_cluster("cluster.json")
  planned const found = plan_training(problem(), on, cost::analytical{});
  if (!found.feasible()) throw error(text_of(*found.infeasible), "planning", "more memory or more devices");
  write_plan(found.plan, file);
  std::printf("%s: %s, predicted %.3g s a step\n", file, found.best().what.c_str(), found.seconds());
} catch (std::exception const& e) {
  std::fprintf(stderr, "plan: %s\n", e.what());
  return 1;
}
