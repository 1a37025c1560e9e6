// tensorpar/tool/settings.hpp - what a command line says, and the subcommands with their examples
#pragma once
#include <string>
#include <tensorpar/core/config.hpp>
#include <vector>

namespace tensorpar::tools {

/// Of all subcommands together; what one does not know stays as it is here.
struct settings {
  std::string command;  // "plan"
  std::string typed;    // the whole command line, as one types it
  std::string model, cluster;
  i64 batch = 0;          // samples of a step; 0: the model's usual number on every device
  std::string precision;  // "": the format that the cluster's FLOP/s are of
  std::string optimizer = "adamw", moments = "f32", gradients = "f32", masters = "f32";
  std::string effort = "normal", what_if_effort;
  std::vector<int> micro_batches;
  std::vector<std::string> what_if;
  std::vector<std::string> files;  // plans to read
  std::string out_file, html, trace, date, word;
  int threads = 0;
  bool lane_per_link = false;  // beside what the cluster says
  int devices = 0, rounds = 9;  // of the demo; 0 devices: as many as suit the cores
  bool json = false, quiet = false, planners = false;
};

/// A subcommand: what it does in a sentence, and an example, which the tests run in this order.
struct subcommand {
  char const* name;
  char const* does;
  char const* example;
};
inline constexpr subcommand subcommands[] = {
    {"plan", "Finds the fastest plan for training a model on a cluster",
     "plan --model mlp_unify --cluster summit:1 --batch 768 --effort quick --out plan.json --what-if "
     "link:NVLink*2"},
    {"compare", "Compares the plan with what users of other trainers run, and says why one wins",
     "compare --model mlp_unify --cluster summit:1 --batch 768 --effort quick"},
    {"show", "Explains the plan in a file", "show plan.json"},
    {"diff", "Says in what two plans differ", "diff plan.json plan.json"},
    {"check", "Replays the evidence in a plan file: its rules, shardings, memory and program",
     "check plan.json"},
    {"simulate", "Runs a plan's step in virtual time", "simulate plan.json --trace trace.json"},
    {"run-demo", "Trains a small network on this machine under its plan and under others, and measures them",
     "run-demo --devices 2 --rounds 3"},
    {"rules", "Counts the rewrite rules that are shipped, by kind and by family", "rules matmul"}};

/// By order of `subcommands`.
inline std::vector<std::string> subcommand_names() {
  std::vector<std::string> r;
  for (subcommand const& s : subcommands) r.push_back(s.name);
  return r;
}

}  // namespace tensorpar::tools
