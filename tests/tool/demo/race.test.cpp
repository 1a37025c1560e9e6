// tests/tool/demo/race.test.cpp - plans for this machine run in turns, train the same, and are told beside what was predicted
#include <tensorpar/tool/demo/race.hpp>

#include <doctest/doctest.h>
#include <support/executors_once.hpp>
#include <support/search_once.hpp>
#include <tensorpar/tool/demo/local_plans.hpp>
#include <tensorpar/tool/demo/network.hpp>

using namespace tensorpar;
using namespace tensorpar::tools;

namespace {

constexpr axis samples{"batch"}, hidden{"hidden"}, classes{"classes"};
struct small_net {
  static constexpr void define(auto& g) {
    auto x = g.input("x", {samples, 16});
    auto label = g.input("label", {samples}, dtype::i32);
    g.output("loss", all(x | linear{32} | relu{} | linear{.out = 8, .to = classes}, label) | cross_entropy{});
  }
};
training_problem small_problem(optimizer_kind kind = optimizer_kind::momentum) {
  return {.graph = lower(typed<small_net>, {samples = 1}),
          .samples = 8,
          .optimizer = {kind},
          .scratch = exec::scratch_of<demo_kernels>(),
          .name = "small"};
}
host_batch small_batch(int step) {
  std::vector<float> x;
  std::vector<std::int32_t> label;
  for (int i = 0; i < 8; ++i) {
    label.push_back((i + step) % 8);
    for (int k = 0; k < 16; ++k) x.push_back(k / 2 == label.back() ? 1.0f : 0.0f);
  }
  return {{"x", host_tensor::reals({8, 16}, x)}, {"label", host_tensor::integers({8}, label)}};
}
planning_options quick() { return {.effort = effort::quick, .micro_batches = {1}, .threads = 1}; }

}  // namespace

TEST_CASE("plans for this machine stand on its devices, and are predicted from operators measured here") {
  local_machine here(2);
  CHECK(here.on.size() == 2);
  local_plans const p = plans_for(small_problem(), here, quick());
  REQUIRE(p.all.size() == 4);
  CHECK(p.all[0].name == "chosen plan");
  CHECK(p.all[1].name == "data parallel");
  CHECK(p.all[2].name == "tensor parallel");
  CHECK(p.all[3].name == "one device");
  CHECK(p.all[1].devices() == 2);
  CHECK(p.all[3].devices() == 1);
  for (contender const& c : p.all) {
    CAPTURE(c.name);
    CHECK(c.expected.seconds > 0);
    CHECK(c.expected.seconds < 1);
    for (task const& t : c.step.program.tasks)       // the samples of data parallelism are split
      if (c.name == "data parallel" && t.kind == task_kind::compute) CHECK(t.devices.size() == 2);
  }
  CHECK(here.alone.size() > 0);
  for (auto const& [key, k] : here.alone.all()) CHECK(k.seconds > 0);
  CHECK_FALSE(here.measure(p.all[0].step.program));           // all of it is known
  cost::profile_table const known = here.alone;
  CHECK(operators_of(p.all[0].step.program, here.on, 1, known) == known);
}

TEST_CASE("devices beyond the cores take turns") {
  CHECK(usual_devices(1) == 1);
  CHECK(usual_devices(2) == 2);
  CHECK(usual_devices(6) == 4);
  CHECK(usual_devices(96) == 8);
  local_machine here(2);
  local_plans const p = plans_for(small_problem(), here, quick());
  double const before = simulate(p.all[0].step.program, here.on, here.prices(here.alone), {.overlap = false}).seconds;
  here.cores = 1;
  double const turns = simulate(p.all[0].step.program, here.on, here.prices(here.alone), {.overlap = false}).seconds;
  CHECK(turns > before);
  CHECK_THROWS_AS(local_machine(0), error);
}

TEST_CASE("a race measures every plan on the same steps, and all train the same") {
  local_machine here(2);
  local_plans const p = plans_for(small_problem(), here, quick());
  race_result const r = race(p.all, p.found.graph, small_batch, {.rounds = 4});
  REQUIRE(r.all.size() == 4);
  for (raced const& x : r.all) {
    CHECK(x.measured > 0);
    CHECK(x.loss == doctest::Approx(r.all.back().loss).epsilon(1e-4));
  }
  CHECK(r.differ < 1e-5);
  CHECK(r.against("chosen plan") == 1);
  CHECK(r.against("data parallel") == doctest::Approx(r.all[1].measured / r.all[0].measured));
  CHECK(r.against("none of this name") == 0);
  require_same_training(r, "here");
  core::json const line = race_json(r);
  CHECK(line["contenders"].size() == 4);
  CHECK(line["contenders"][3]["devices"] == 1);
  // learns: the same labels come again and again
  CHECK(race(p.all, p.found.graph, small_batch, {.rounds = 40, .rate = 0.2}).all[0].loss < 0.5 * r.all[0].loss);
}

TEST_CASE("a plan that trains otherwise is found") {
  local_machine here(2);
  local_plans const p = plans_for(small_problem(), here, quick()), q = plans_for(small_problem(optimizer_kind::sgd), here, quick());
  std::vector<contender> const other{p.all[0], q.all[3]};     // their updates differ from the second step on
  race_result const r = race(other, p.found.graph, small_batch, {.rounds = 1});
  CHECK(r.differ > float_noise);
  CHECK_THROWS_AS(require_same_training(r, "here"), error);
}

TEST_CASE("the words of a race follow from its numbers") {
  race_result r{{{"chosen plan", 2, 0.010, 0.011, 1}, {"data parallel", 2, 0.014, 0.0165, 1}, {"one device", 1, 0.02, 0.022, 1}}, 1e-7, 0.0};
  CHECK(race_text(r).find("1.50 times as fast as data parallel and 2.00 times as fast as one device") != std::string::npos);
  CHECK(race_text(r).find("its step took 10 % more than predicted") != std::string::npos);
  CHECK(race_text(r).find("held") != std::string::npos);
  CHECK(race_table(r).find("(+10 %)") != std::string::npos);
  r.all[0].measured = 0.02;
  CHECK(race_text(r).find("did not hold") != std::string::npos);
  r.others = 0.45;                                            // busy: no share of what was predicted is told
  CHECK(race_text(r).find("other programs used 45 %") != std::string::npos);
  CHECK(race_text(r).find("predicted") == std::string::npos);
  CHECK(race_table(r).find("%") == std::string::npos);
}
