// tests/exec/comm/agreement.test.cpp - processes that go on from other steps, seeds, rates or values, or of which one fails: all are told
#include <doctest/doctest.h>
#include <latch>
#include <limits>
#include <tensorpar/exec/comm/agreement.hpp>

#include "played_processes.hpp"
#include "support/effort.hpp"
#include "support/scratch_folder.hpp"
#include <tensorpar/exec/comm/departure.hpp>
#include <tensorpar/exec/files/parameters_file.hpp>
#include <tensorpar/exec/step/given_values.hpp>
#include <tensorpar/exec/step/joined_run.hpp>

using namespace tests;

namespace {

using run = executor<compute::eigen<float>, played_rank>;

training_options options() {
  training_options o;
  o.optimizer.kind = optimizer_kind::momentum;
  return o;
}
plan any_plan(computation_graph const& g, int ranks, std::mt19937& draw) {
  plan p = random_plan(g, ranks, draw);
  p.optimizer = options().optimizer;
  return p;
}
/// f(run of one process, on one device).
template <class F> void alone(computation_graph const& g, F const& f) {
  comm::threads_world world(1);
  CHECK(run_processes(world, 1, [&](int) {
          plan p = serial_plan(g);
          p.optimizer = options().optimizer;
          run r(differentiate(g, options()), p);
          f(r);
        }) == std::vector<std::string>(1));
}
/// What f throws.
template <class F> std::string words_of(F const& f) {
  try { f(); } catch (std::exception const& e) { return e.what(); }
  return {};
}
bool all_same(std::vector<std::string> const& said) {
  return std::all_of(said.begin(), said.end(), [&](std::string const& s) { return s == said[0]; });
}
int value_of(run const& r, value_role role) {
  for (buffer const& b : r.program().buffers)
    if (b.persistent && r.graph().graph.value(b.value).role == role) return b.value;
  return -1;
}
std::vector<float> filled(run const& r, int value, float with) {
  return std::vector<float>(static_cast<std::size_t>(r.graph().graph.type(value).elements()), with);
}

}  // namespace

TEST_CASE("one that goes on from something else is an error on all before anything is run, and all can be mended") {
  computation_graph const g = residual_mlp();
  char const* const named[] = {"step", "seed", "learning rate", "parameter '", "optimizer state '", "call", "outputs", "call",
                               "parameter '"};
  std::mt19937 draw(1);
  for (int trial = 0, n = test_effort::cases(27); trial < n; ++trial) {
    int const kind = trial % 9, ranks = 2 + static_cast<int>(draw() % 3);
    int const processes = 2 + static_cast<int>(draw() % static_cast<unsigned>(ranks - 1));
    std::vector<char> odd(static_cast<std::size_t>(processes));
    for (char& x : odd) x = static_cast<char>(draw() % 2);
    odd[draw() % odd.size()] = 1;
    odd[draw() % odd.size()] = 0;
    if (std::find(odd.begin(), odd.end(), 1) == odd.end()) odd[odd[0] == 0 ? 0 : 1] = 1;
    plan const p = any_plan(g, ranks, draw);
    CAPTURE(trial);
    comm::threads_world world(ranks), twin(ranks);
    std::vector<std::string> said(odd.size());
    std::vector<std::vector<std::vector<float>>> ended(odd.size()), wanted(odd.size());
    std::vector<std::string> const fine(odd.size());
    auto const undisturbed = [&](int process) {
      run r(differentiate(g, options()), p);
      r.initialise(3);
      for (u64 k = 0; k < 2; ++k) r.step(random_batch(g, 1, k), 0.125);
      wanted[static_cast<std::size_t>(process)] = parameters_of(r);
    };
    CHECK(run_processes(twin, processes, undisturbed) == fine);
    CHECK(run_processes(world, processes, [&](int process) {
            auto const i = static_cast<std::size_t>(process);
            run r(differentiate(g, options()), p);
            r.initialise(3);
            int const w = value_of(r, value_role::parameter), s = value_of(r, value_role::state);
            auto const first_w = r.fetch(w);
            r.step(random_batch(g, 1, 0), 0.125);
            auto const here_w = r.fetch(w), here_s = r.fetch(s);
            if (odd[i] && kind == 0) r.set_steps(7);
            if (odd[i] && kind == 1) r.set_seed(9);
            if (odd[i] && kind == 3) r.store(w, filled(r, w, 0.25f));
            if (odd[i] && kind == 4) r.store(s, filled(r, s, 0.25f));
            if (odd[i] && kind == 8) r.store(w, first_w);              // what it was given before the step
            host_batch const b = random_batch(g, 1, 1);
            said[i] = words_of([&] {
              if (kind == 5 && odd[i]) r.evaluate(b);
              else if (kind == 6) r.evaluate(b, odd[i] ? std::vector<std::string>{"loss", "loss"} : std::vector<std::string>{"loss"});
              else if (kind == 7 && odd[i]) save_parameters(r, "never written");
              else r.step(b, kind == 2 && odd[i] ? 0.25 : 0.125);
            });
            if (r.failed() || r.steps() != (kind == 0 && odd[i] ? 7 : 1)) throw std::runtime_error("the run was changed");
            r.set_steps(1);
            r.set_seed(3);
            r.store(w, here_w);
            r.store(s, here_s);
            r.step(b, 0.125);
            ended[i] = parameters_of(r);
          }) == fine);
    CHECK(all_same(said));
    CAPTURE(said[0]);
    CHECK(said[0].find(std::string(" ") + named[kind]) != said[0].npos);
    CHECK(said[0].find("on every process") != said[0].npos);
    for (std::size_t i = 0; i < odd.size() && kind != 5 && kind != 7; ++i) CHECK(said[0].find(std::to_string(i)) != said[0].npos);
    if (kind == 5) CHECK(said[0].find(odd[0] ? "process 0 calls evaluate, process " : "process 0 calls step, process ") == 0);
    if (kind == 7) CHECK(said[0].find("calls save_parameters") != said[0].npos);
    CHECK(ended == wanted);
  }
}

TEST_CASE("what is not alike is said process by process, in groups, and cut short where there are many") {
  exec::shared_fact const step{"step", 0};
  CHECK(exec::detail::who_has(step, {1, 3}, {0, 1}) == "process 0 has step 1, process 1 has step 3");
  CHECK(exec::detail::who_has(step, {1, 3, 3, 1}, {0, 1, 2, 0}) == "process 0 has step 1, processes 1 and 2 have step 3");
  CHECK(exec::detail::who_has({"learning rate", 0, tensorpar::exec::shared_fact::kind::real},
                              {exec::detail::fact_of(0.5), exec::detail::fact_of(0.25)}, {0, 1}) ==
        "process 0 has learning rate 0.5, process 1 has learning rate 0.25");
  CHECK(exec::detail::who_has({"hash", 0, tensorpar::exec::shared_fact::kind::hash}, {~u64{0}, 1}, {0, 1}) ==
        "process 0 has hash ffffffffffffffff, process 1 has hash 0000000000000001");
  std::vector<u64> values;
  std::vector<int> process;
  for (int i = 0; i < 40; ++i) values.push_back(static_cast<u64>(i % 20)), process.push_back(i);
  CHECK(exec::detail::who_has(step, values, process).ends_with("processes 7 and 27 have step 7, and so on"));
  std::fill(values.begin() + 1, values.end(), u64{5});
  CHECK(exec::detail::who_has(step, values, process) ==
        "process 0 has step 0, processes 1, 2, 3, 4, 5, 6, 7, 8 and 31 more have step 5");
}

TEST_CASE("checkpoints of different steps, seeds or contents are found before any is loaded; one that cannot be read is all processes'") {
  computation_graph const g = residual_mlp();
  std::mt19937 draw(2);
  plan const p = any_plan(g, 3, draw);
  scratch_folder const dir;
  auto const made = [&](char const* name, u64 seed, u64 batch, int steps) {
    alone(g, [&](run& r) {
      r.initialise(seed);
      for (int k = 0; k < steps; ++k) r.step(random_batch(g, 1, batch), 0.125);
      save_checkpoint(r, dir / name);
    });
  };
  made("one", 1, 0, 1);
  made("three", 1, 0, 3);
  made("seed", 2, 0, 1);
  made("values", 1, 5, 1);
  made("damaged", 1, 0, 1);
  std::string const hurt = dir / "damaged/step-1/parameters.safetensors";
  std::string bytes = bytes_of_file(hurt);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write_bytes(hurt, bytes);
  std::pair<char const*, char const*> const cases[] = {
      {"three", "process 0 has step 1, process 1 has step 3 (at load_checkpoint)"},
      {"seed", "process 0 has seed 1, process 1 has seed 2 (at load_checkpoint)"},
      {"values", "process 0 has parameters.safetensors with hash "},
      {"damaged", "there is no complete checkpoint; the file is damaged"},
      {"nowhere", "there is no complete checkpoint"}};
  for (auto const& [other, words] : cases) {
    CAPTURE(other);
    comm::threads_world world(3);
    std::vector<std::string> said(2);
    CHECK(run_processes(world, 2, [&](int process) {
            run r(differentiate(g, options()), p);
            r.initialise(4);
            auto const before = parameters_of(r);
            said[static_cast<std::size_t>(process)] = words_of([&] { load_checkpoint(r, dir / (process ? other : "one")); });
            if (parameters_of(r) != before || r.seed() != 4 || r.steps() != 0 || r.failed())
              throw std::runtime_error("the run was changed");
            load_checkpoint(r, dir / "one");
            if (r.steps() != 1) throw std::runtime_error("the run was not loaded");
            r.step(random_batch(g, 1, 1), 0.125);
          }) == std::vector<std::string>(2));
    CHECK(all_same(said));
    CAPTURE(said[0]);
    CHECK(said[0].starts_with(words));
    if (said[0].starts_with("there")) CHECK(said[0].find(", process 1)") != said[0].npos);
  }
}

TEST_CASE("parameters of different files are found before the next step; a file that cannot be read is all processes'") {
  computation_graph const g = residual_mlp();
  std::mt19937 draw(3);
  plan const p = any_plan(g, 2, draw);
  scratch_folder const dir;
  std::string parameter;
  for (u64 seed : {u64{1}, u64{2}})
    alone(g, [&](run& r) {
      r.initialise(seed);
      save_parameters(r, dir / ("of" + std::to_string(seed)));
      parameter = r.graph().graph.value(detail::saved_values(r, 0)[0]).name;
    });
  comm::threads_world world(2);
  std::vector<std::string> missing(2), other(2), saved(2);
  CHECK(run_processes(world, 2, [&](int process) {
          auto const i = static_cast<std::size_t>(process);
          auto const own = [](std::string const& name) { return name; };
          run r(differentiate(g, options()), p);
          r.initialise(5);
          auto const before = parameters_of(r);
          missing[i] = words_of([&] { load_parameters(r, process ? dir / "of1" : dir / "none"); });
          if (parameters_of(r) != before) throw std::runtime_error("the run was changed");
          load_parameters(r, dir / (process ? "of1" : "of2"), own);
          other[i] = words_of([&] { r.step(random_batch(g, 1, 1), 0.125); });
          saved[i] = words_of([&] { save_checkpoint(r, dir / "checkpoints"); });
          load_parameters(r, dir / "of1");
          r.step(random_batch(g, 1, 1), 0.125);
        }) == std::vector<std::string>(2));
  CHECK(all_same(missing));
  CHECK(missing[0].find(", process 0)") != std::string::npos);
  CHECK(all_same(other));
  std::string const want = "process 0 has parameter '" + parameter + "' with hash ";
  CHECK_MESSAGE(other[0].starts_with(want), other[0]);
  CHECK(all_same(saved));
  CHECK(saved[0].find(want) == 0);
  CHECK_FALSE(std::filesystem::exists(dir / "checkpoints"));
}

TEST_CASE("a store that one process refuses leaves it as it was, and all go on") {
  computation_graph const g = residual_mlp();
  std::mt19937 draw(4);
  plan const p = any_plan(g, 2, draw);
  comm::threads_world world(2);
  CHECK(run_processes(world, 2, [&](int process) {
          run r(differentiate(g, options()), p);
          r.initialise(5);
          int const w = value_of(r, value_role::parameter);
          if (process == 1) CHECK_THROWS_WITH_AS(r.store(w, std::vector<float>(1)), doctest::Contains("is given 1 elements"), error);
          r.step(random_batch(g, 1, 1), 0.125);
        }) == std::vector<std::string>(2));
}

namespace {
/// Its file loses its second half once so many tensors were stored.
struct cut_run : run {
  using run::run;
  std::string cut;
  int behind = 0;
  void store(int value, std::vector<float> const& all) {
    run::store(value, all);
    if (!cut.empty() && behind-- == 0) std::filesystem::resize_file(cut, std::filesystem::file_size(cut) / 2);
  }
};
}  // namespace

TEST_CASE("a file that breaks off on one process while it is read leaves no process that steps or saves, until all have values again") {
  computation_graph const g = residual_mlp();
  std::mt19937 draw(9);
  plan const p = any_plan(g, 2, draw);
  for (int trial = 0; trial < 8; ++trial) {
    CAPTURE(trial);
    scratch_folder const dir;
    bool const whole_checkpoint = trial % 2;
    int const breaks = trial / 2 % 2, behind = trial / 4;
    comm::threads_world world(2, std::chrono::seconds(600));
    std::vector<std::string> loads(2), steps = loads, saves = loads;
    CHECK(run_processes(world, 2, [&](int process) {
            auto const me = static_cast<std::size_t>(process);
            std::string const at = dir.path() + "/" + std::to_string(process);
            cut_run r(differentiate(g, options()), p);
            r.initialise(5);
            host_batch const b = random_batch(g, 1, 1);
            r.step(b, 0.125);
            for (int i = 0; i < 2; ++i) save_checkpoint(r, dir.path() + "/" + std::to_string(i));      // a folder for each
            std::string const found = at + "/step-1", file = found + "/parameters.safetensors";
            if (process == breaks) r.cut = whole_checkpoint ? found + "/optimizer.safetensors" : file, r.behind = behind;
            loads[me] = words_of([&] { whole_checkpoint ? void(load_checkpoint(r, at)) : load_parameters(r, file); });
            r.cut.clear();
            steps[me] = words_of([&] { r.step(b, 0.125); });
            saves[me] = words_of([&] { save_parameters(r, dir.path() + "/mixed"); });
            CHECK(words_of([&] { save_checkpoint(r, dir.path() + "/mixed"); }) != "");
            CHECK_FALSE(r.failed());
            r.initialise(5);
            r.step(b, 0.125);
          }) == std::vector<std::string>(2));
    CHECK(all_same(loads));
    CHECK(all_same(steps));
    CHECK(all_same(saves));
    CHECK(loads[0].find("process " + std::to_string(breaks)) != std::string::npos);
    CHECK(steps[0].find("has no values yet (at executor, process ") != std::string::npos);
    CHECK(saves[0].find("no values yet") != std::string::npos);
    CHECK_FALSE(std::filesystem::exists(dir.path() + "/mixed"));
  }
}

TEST_CASE("an exception that takes a process out of the run stops the others at once; one that all throw leaves the world as it was") {
  computation_graph const g = residual_mlp();
  std::mt19937 draw(5);
  plan const p = any_plan(g, 3, draw);
  scratch_folder const dir;
  for (int how = 0; how < 5; ++how) {
    CAPTURE(how);
    comm::threads_world world(3, std::chrono::seconds(600));   // nobody waits for the deadline
    std::vector<std::string> said(3);
    CHECK(run_processes(world, 3, [&](int process) {
            said[static_cast<std::size_t>(process)] = words_of([&] {
              run r(differentiate(g, options()), p);
              r.initialise(5);
              if (how == 0 && process == 1) throw std::runtime_error("no more data");
              if (how == 1 && process == 1) r.store(value_of(r, value_role::parameter), std::vector<float>(1));
              if (how == 2) load_checkpoint(r, dir.path());
              host_batch b = random_batch(g, 1, 1);
              if (how == 4) for (auto& [name, t] : b) std::fill(t.real.begin(), t.real.end(), std::numeric_limits<float>::quiet_NaN());
              r.step(b, how == 3 && process == 1 ? -1 : 0.125);
            });
          }) == std::vector<std::string>(3));
    CHECK((world.failure() != nullptr) == (how < 2));
    CHECK((said[1] == said[0]) == (how > 1));
    CHECK(said[2] == said[0]);
    if (how < 2) CHECK(said[0].starts_with("an exception has ended the part of rank 1 in the run (at executor"));
  }
}

TEST_CASE("after a failure that all processes got, those that go on are told at once that another has left, however it left") {
  computation_graph const g = residual_mlp();
  std::mt19937 draw(7);
  scratch_folder const dir;
  for (int trial = 0, n = test_effort::cases(24); trial < n; ++trial) {
    int const failure = trial % 4, leaves = trial / 4 % 3, next = trial / 12 % 2, ranks = 2 + trial % 2;
    CAPTURE(failure);
    CAPTURE(leaves);
    CAPTURE(next);
    plan const p = any_plan(g, ranks, draw);
    comm::threads_world world(ranks, std::chrono::seconds(600));   // nobody waits for the deadline
    std::vector<std::string> first(static_cast<std::size_t>(ranks)), then = first;
    std::latch caught(ranks
                      - 1);                            // by those that go on: threads have one world, and what fails it is seen by all
    CHECK(run_processes(world, ranks, [&](int process) {
            auto const me = static_cast<std::size_t>(process);
            bool const alone = process == ranks - 1;
            auto const part = [&] {
              run r(differentiate(g, options()), p);
              r.initialise(5);
              host_batch bad = random_batch(g, 1, 1);
              if (failure == 0)
                for (auto& [name, t] : bad) std::fill(t.real.begin(), t.real.end(), std::numeric_limits<float>::quiet_NaN());
              auto const fails = [&] {
                if (failure == 2) load_checkpoint(r, dir.path());
                if (failure == 3) save_checkpoint(r, "/dev/null/none");
                r.step(bad, failure == 1 ? -1 : 0.125);
              };
              if (alone && leaves == 0) fails();               // it goes through the executor's scope
              first[me] = words_of(fails);
              if (alone && leaves == 1) throw std::runtime_error("enough of it");
              if (alone) return;                               // as if nothing had happened
              caught.arrive_and_wait();
              then[me] = words_of([&] { next ? void(r.evaluate(random_batch(g, 1, 1))) : void(r.step(random_batch(g, 1, 1), 0.125)); });
            };
            std::string const last = words_of(part);
            if (alone && leaves == 0) first[me] = last;
          }) == std::vector<std::string>(static_cast<std::size_t>(ranks)));
    CHECK(first[0] != "");
    CHECK(all_same(first));
    for (int i = 0; i + 1 < ranks; ++i)
      CHECK_MESSAGE(then[static_cast<std::size_t>(i)].starts_with("an exception has ended the part of rank " + std::to_string(ranks - 1)),
                    then[static_cast<std::size_t>(i)]);
  }
}
