// tests/search/phase_options.test.cpp - what each phase is asked follows from the problem and the effort
#include <doctest/doctest.h>
#include <tensorpar/ir/machine/machine_presets.hpp>
#include <tensorpar/search/phase_options.hpp>

using namespace tensorpar;
using namespace tensorpar::search;

TEST_CASE("schedules: those that are asked for; else two, and none of a quick search") {
  CHECK(tensorpar::detail::schedules_of({.effort = effort::quick}).empty());
  CHECK(tensorpar::detail::schedules_of({}) == std::vector{schedule_kind::one_f_one_b, schedule_kind::zb_h1});
  CHECK(tensorpar::detail::schedules_of({.effort = effort::quick, .schedules = std::vector{schedule_kind::gpipe}}) == std::vector{schedule_kind::gpipe});
}

TEST_CASE("shardings and stages get the problem's loss, optimizer and numbers") {
  training_problem asked{.graph = {}, .samples = 64, .loss = "distance", .optimizer = {.kind = optimizer_kind::adamw}, .name = "net"};
  asked.scratch.scalar_bytes = 8;
  planning_options o{.effort = effort::quick, .threads = 3};
  o.knobs.shardings.grain = 2;
  search_options const s = tensorpar::detail::search_of(asked, o);
  CHECK(s.model == "net");
  CHECK(s.loss == "distance");
  CHECK(s.optimizer == asked.optimizer);
  CHECK(s.scalar_bytes == 8);
  CHECK(s.threads == 3);
  CHECK(s.grain == 2);
  CHECK(!s.fewer_devices);
  CHECK(tensorpar::detail::search_of(asked, {}).fewer_devices);
  machine const on = preset("dgx-h100:2");
  for (bool const saving : {false, true}) {
    graph_stage_options const g = tensorpar::detail::stages_of(asked, o, on, s, 64, saving);
    CHECK(g.mini_batch == 64);
    CHECK(g.loss == "distance");
    CHECK(g.scalar_bytes == 8);
    CHECK(g.max_tensor == 8);                                        // as many as the innermost links join
    CHECK(g.recompute == saving);
    CHECK(g.shard_optimizer == saving);
  }
  o.knobs.max_tensor = 4;
  CHECK(tensorpar::detail::stages_of(asked, o, on, s, 64, false).max_tensor == 4);
}

TEST_CASE("degrees: pipelines unless 1F1B is not among the schedules asked for, no savings where memory is not saved, more of them with more effort") {
  search_options s;
  CHECK(tensorpar::detail::degrees_of({}, s, false).max_pipeline == 0);
  CHECK(tensorpar::detail::degrees_of({}, s, true).max_pipeline == 1);
  CHECK(tensorpar::detail::degrees_of({}, s, true).max_tensor == 1);
  CHECK(tensorpar::detail::degrees_of({.effort = effort::quick}, s, false).max_pipeline == 0);
  CHECK(tensorpar::detail::degrees_of({.effort = effort::quick, .schedules = std::vector<schedule_kind>{}}, s, false).max_pipeline == 1);
  CHECK(tensorpar::detail::degrees_of({.schedules = std::vector{schedule_kind::gpipe}}, s, false).max_pipeline == 1);
  CHECK(tensorpar::detail::degrees_of({.micro_batches = {2, 4}}, s, false).micro_batches == std::vector{2, 4});
  CHECK(tensorpar::detail::degrees_of({}, s, false).sharding.size() == 4);
  CHECK(tensorpar::detail::degrees_of({.effort = effort::quick}, s, false).simulated < tensorpar::detail::degrees_of({}, s, false).simulated);
  // so that the candidates of normal are among those of thorough
  CHECK(tensorpar::detail::degrees_of({.effort = effort::thorough}, s, false).simulated == tensorpar::detail::degrees_of({}, s, false).simulated);
  s.save_memory = false;
  CHECK(tensorpar::detail::degrees_of({}, s, false).sharding == std::vector{ir::zero_stage::none});
  CHECK(tensorpar::detail::degrees_of({}, s, false).recompute == std::vector{recomputation::none});
}
