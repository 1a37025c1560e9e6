// tests/tool/command_line.test.cpp - what is wrong with a command line is said in one line with what was meant, and ends with 2
#include <tensorpar/tool/command_line.hpp>

#include <doctest/doctest.h>
#include <fstream>
#include <tensorpar/tool/cli_door.hpp>
#include <tensorpar/tool/console.hpp>
#include <tensorpar/tool/settings.hpp>
#include <tensorpar/tool/subject.hpp>
#include <tensorpar/tool/words.hpp>

#include "tool_run.hpp"

using namespace tensorpar;
using namespace tests;

TEST_CASE("every subcommand has a help with an example and the exit codes") {
  for (tools::subcommand const& c : tools::subcommands) {
    CAPTURE(c.name);
    tool_run const r = run_tool({c.name, "--help"});
    CHECK(r.code == 0);
    CHECK(r.says(c.does));
    CHECK(r.says("Example: tensorpar " + std::string(c.example)));
    CHECK(r.says("2 wrong command line, 3 no plan fits"));
    CHECK(r.err.empty());
  }
  CHECK(run_tool({"--help"}).code == 0);
  CHECK(run_tool({"--help"}).says("compare"));
}

TEST_CASE("a wrong command line ends with 2, with one line that names what was meant") {
  std::pair<std::string, std::string> const wrong[] = {
      {"", "no subcommand"},
      {"pln", "did you mean \"plan\"?"},
      {"simulte x.json", "did you mean \"simulate\"?"},
      {"banana", "valid: plan, compare"},
      {"plan --modle x", "did you mean \"--model\"?"},
      {"plan --what_fi=x", "no flag --what_fi"},
      {"check x.json --html y", "no flag --html"},
      {"plan --cluster logical:4", "--model is required"},
      {"plan --model mlp_unfy --cluster logical:4", "did you mean \"mlp_unify\"?"},
      {"plan --model mlp_unify:layrs=2 --cluster logical:4", "did you mean \"layers\"?"},
      {"plan --model mlp_unify:layers=0 --cluster logical:4", "a whole number from 1"},
      {"plan --model mlp_unify --cluster lgical:4", "did you mean \"logical\"?"},
      {"plan --model mlp_unify --cluster logical:0", "the count is not a whole number"},
      {"plan --model mlp_unify --cluster logical:4 --precision bf61", "did you mean \"bf16\"?"},
      {"plan --model mlp_unify --cluster logical:4 --optimizer adam", "did you mean \"adamw\"?"},
      {"plan --model mlp_unify --cluster logical:4 --moments bf61", "did you mean \"bf16\"?"},
      {"plan --model mlp_unify --cluster logical:4 --gradients f23", "did you mean \"f32\"?"},
      {"plan --model mlp_unify --cluster logical:4 --gradients bf16", "--gradients bf16 for training in"},
      {"plan --model mlp_unify --cluster logical:4 --masters bf16", "--precision bf16 or fp8, or f32"},
      {"plan --model mlp_unify --cluster logical:4 --masters none", "f32, bf16"},
      {"plan --model mlp_unify --cluster logical:4 --effort thorogh", "did you mean \"thorough\"?"},
      {"plan --model mlp_unify --cluster logical:4 --batch 0", "--batch"},
      {"plan --model mlp_unify --cluster logical:4 --batch seven", "--batch"},
      {"plan --model mlp_unify --cluster logical:4 --batch 6 --micro-batches 4", "numbers that divide 6"},
      {"plan --model mlp_unify --cluster logical:4 --date today", "--date without --html"},
      {"plan --model mlp_unify --cluster logical:4 --what-if-effort quick", "without --what-if"},
      {"plan --model mlp_unify --cluster logical:4 --what-if memry*2", "did you mean \"memory\"?"},
      {"plan --model mlp_unify --cluster logical:4 --what-if link:memroy*2", "did you mean \"memory\"?"},
      {"show", "file"},
      {"diff x.json", "file"},
      {"run-demo --device 2", "did you mean \"--devices\"?"},
      {"run-demo --devices 0", "--devices"},
      {"run-demo --rounds 0", "--rounds"},
      {"rules bananas", "no rule is called"}};
  for (auto const& [line, says] : wrong) {
    CAPTURE(line);
    tool_run const r = run_line(line);
    CAPTURE(r.err);
    CHECK(r.code == 2);
    CHECK(r.complains(says));
    CHECK(r.out.empty());
    CHECK(std::count(r.err.begin(), r.err.end(), '\n') == 1);
    CHECK(r.err.starts_with("tensorpar: "));
  }
}

TEST_CASE("files that cannot be read or written end with 1 and the file's name") {
  for (std::string const line : {"show none.json", "check none.json", "simulate none.json", "diff none.json none.json",
                                 "plan --model mlp_unify --cluster none.json"}) {
    CAPTURE(line);
    tool_run const r = run_line(line);
    CHECK(r.code == 1);
    CHECK(r.complains("none.json"));
  }
  tool_run const r = run_line(plan_line("--out /nowhere/at/all/plan.json"));
  CHECK(r.code == 1);
  CHECK(r.complains("/nowhere/at/all/plan.json"));
  for (char const* flag : {"--out", "--html"}) {                                     // a full disk
    if (!std::ofstream("/dev/full")) continue;
    tool_run const full = run_line(plan_line(std::string(flag) + " /dev/full"));
    CHECK(full.code == 1);
    CHECK(full.complains("/dev/full"));
  }
}

TEST_CASE("the format of numbers is that of the cluster's FLOP/s, unless it is given") {
  CHECK(tools::usual_precision(preset("dgx-h100")) == precision::bf16);
  CHECK(tools::usual_precision(preset("summit")) == precision::f32);
  CHECK(tools::usual_precision(logical(2)) == precision::f32);
  tools::settings s;
  s.model = small_model;
  s.cluster = "dgx_h100:1";
  CHECK(tools::subject_of(s, {}).asked.precision == precision::bf16);
  CHECK(tools::subject_of(s, {}).asked.samples == 8 * 256);
  s.precision = "tf32";
  CHECK(tools::subject_of(s, {}).asked.precision == precision::tf32);
}
