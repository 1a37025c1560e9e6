// tests/exec/comm/processes.test.cpp - executors that each drive some of the devices are one run: here by threads that play processes
#include <tensorpar/exec/comm/processes.hpp>
#include <doctest/doctest.h>

#include "played_processes.hpp"
#include "support/scratch_folder.hpp"
#include <tensorpar/exec/files/checkpoint.hpp>

using namespace tests;

namespace {

static_assert(exec::spans_processes<played_world>);
static_assert(!exec::spans_processes<comm::threads_world>, "all its ranks are threads of one process");
struct no_sum : played_world { void add_up(double*, int) = delete; };
static_assert(!exec::spans_processes<no_sum>);
static_assert(exec::full_communicator<played_rank, float>);

struct broken : compute::eigen<float> {
  static inline bool whole = false, foreign = false;       // is it not broken at all? Is what it throws none of the library's?
  void run(tensorpar::exec::kernel_call const& c) const {
    if (whole) return compute::eigen<float>::run(c);
    if (c.op->is<cross_entropy>() && foreign) throw std::runtime_error("the user's own words");
    if (c.op->is<cross_entropy>()) throw error("the kernel's own words", "here", "others");
    compute::eigen<float>::run(c);
  }
};

}  // namespace

TEST_CASE("a world of one process has all ranks, and nothing to share") {
  comm::threads_world h(3);
  CHECK(exec::detail::local_ranks(h, 3) == std::vector<int>{0, 1, 2});
  std::vector<double> x{1, 2};
  exec::detail::add_up(h, x);
  CHECK(x == std::vector<double>{1, 2});
}

TEST_CASE("processes that drive some devices each do together what one does") {
  computation_graph const g = small_transformer();
  std::mt19937 draw(3);
  for (int trial = 0; trial < 12; ++trial) {
    int const n = 2 + trial % 4, processes = 2 + trial % 2;
    if (processes > n) continue;
    plan const p = random_plan(g, n, draw);
    CAPTURE(trial);
    executor_of<prime_field> one(differentiate(g), p);
    auto const want = train(one, 2);
    executor_of<double> real(differentiate(g), p);
    real.initialise(1);
    double const loss = real.step(random_batch(g, 1, 1), 0.1).loss;
    auto const values = parameters_of(real);

    comm::threads_world world(n), second(n);
    std::vector<char> good(static_cast<std::size_t>(processes), 0);
    CHECK(run_processes(world, processes, [&](int process) {
            executor<compute::eigen<prime_field>, played_rank> mine(differentiate(g), p);
            bool right = train(mine, 2) == want && mine.copies_agree();
            for (int d = 0; d < n; ++d)
              right = right && mine.allocated_bytes()[static_cast<std::size_t>(d)] ==
                                   (d % processes == process ? mine.program().arena[static_cast<std::size_t>(d)] : 0);
            good[static_cast<std::size_t>(process)] = right;
          }) == std::vector<std::string>(static_cast<std::size_t>(processes)));
    CHECK(run_processes(second, processes, [&](int process) {
            executor<compute::eigen<double>, played_rank> mine(differentiate(g), p);
            mine.initialise(1);
            bool const same = mine.step(random_batch(g, 1, 1), 0.1).loss == loss && parameters_of(mine) == values;
            good[static_cast<std::size_t>(process)] = good[static_cast<std::size_t>(process)] && same;
          }) == std::vector<std::string>(static_cast<std::size_t>(processes)));
    CHECK(good == std::vector<char>(static_cast<std::size_t>(processes), 1));
  }
}

TEST_CASE("copies that differ on another process are seen by all") {
  computation_graph const g = residual_mlp();
  std::mt19937 draw(1);
  plan p = serial_plan(g);
  p.cluster = random_plan(g, 2, draw).cluster;
  for (op_strategy& n : p.nodes) n.sharding = {0, {{'0', 2, 1}}};
  comm::threads_world world(2);
  std::vector<char> before(2), after(2);
  CHECK(run_processes(world, 2, [&](int process) {
          executor<compute::eigen<float>, played_rank> mine(differentiate(g), p);
          mine.initialise(1);
          before[static_cast<std::size_t>(process)] = mine.copies_agree();
          for (buffer const& b : mine.program().buffers) {
            if (!b.persistent || process == 0) continue;
            mine.store(b.value, std::vector<float>(static_cast<std::size_t>(b.type.elements()), 0.25f));   // here alone
            break;
          }
          after[static_cast<std::size_t>(process)] = mine.copies_agree();
        }) == std::vector<std::string>(2));
  CHECK(before == std::vector<char>{1, 1});
  CHECK(after == std::vector<char>{0, 0});
}

TEST_CASE("processes of another plan, graph or optimizer are found when the run is made, on all of them") {
  std::string const want = "other programs than rank 0's on ranks 1, 3 (at executor); valid: the same graph, options and plan on every "
                           "process: one plans, and the others read its plan";
  computation_graph const g = residual_mlp(), h = small_transformer();
  for (int how = 0; how < 3; ++how) {
    comm::threads_world world(4);
    CHECK(run_processes(world, 2, [&](int process) {
            std::mt19937 draw(how == 0 ? static_cast<unsigned>(process) : 1);
            training_options o;
            o.optimizer.kind = optimizer_kind::adamw;
            if (how == 1 && process) o.optimizer.beta1 = 0.5;
            computation_graph const& mine = how == 2 && process ? h : g;
            plan p = random_plan(mine, 4, draw);
            p.optimizer = o.optimizer;
            executor<compute::eigen<float>, played_rank>(differentiate(mine, o), p);
          }) == std::vector<std::string>{want, want});
  }
}

TEST_CASE("a failure tells every process the device and its task") {
  computation_graph const g = residual_mlp();
  std::mt19937 draw(5);
  plan const p = random_plan(g, 4, draw);
  comm::threads_world world(4);
  auto const said = run_processes(world, 2, [&](int) {
    executor<broken, played_rank> mine(differentiate(g), p);
    mine.initialise(1);
    try {
      mine.step(random_batch(g, 1, 1), 0.1);
    } catch (error const& e) {
      if (!mine.failed()) throw std::runtime_error("the step failed, the executor says it did not");
      std::string const first = std::string("this executor has failed before: ") + e.problem();
      for (int again = 0; again < 2; ++again)
        try {
          again ? mine.evaluate(random_batch(g, 1, 1)) : mine.step(random_batch(g, 1, 1), 0.1).loss;
        } catch (error const& later) {
          if (!later.problem().starts_with(first)) throw std::runtime_error(later.what());
        }
      throw;
    }
  });
  for (std::string const& s : said) {
    CAPTURE(s);
    CHECK(s.starts_with("the kernel's own words (at here, device "));
    CHECK(s.find(" in task ") != s.npos);
    CHECK(s.find("(loss:cross_entropy)") != s.npos);
    CHECK(s.ends_with("; valid: others"));
  }
}

TEST_CASE("so does an exception that is none of the library's") {
  computation_graph const g = residual_mlp();
  plan p = serial_plan(g);
  p.cluster = devices(4);                                  // the first one alone computes
  comm::threads_world world(4);
  broken::foreign = true;
  auto const said = run_processes(world, 2, [&](int) {
    executor<broken, played_rank> mine(differentiate(g), p);
    mine.initialise(1);
    mine.step(random_batch(g, 1, 1), 0.1);
  });
  for (std::string const& s : said) CHECK(s.starts_with("the user's own words (at device 0 in task "));
}

TEST_CASE("an evaluation that fails in a kernel leaves an executor of one process as it was, those of several processes failed") {
  computation_graph const g = small_transformer();
  std::mt19937 draw(6);
  host_batch const b = random_batch(g, 1, 1);
  auto const told = [&](executor<broken, played_rank>& run) {
    try { run.evaluate(b); } catch (error const& e) {
      return e.problem() == "the kernel's own words" && e.where().find(" in task ") != std::string::npos;
    }
    return false;
  };
  broken::foreign = false;
  for (int trial = 0; trial < 4; ++trial) {
    plan const p = random_plan(g, 3, draw);
    comm::threads_world world(3), other(3);
    CHECK(run_processes(world, 1, [&](int) {
            executor<broken, played_rank> mine(differentiate(g), p), twin(differentiate(g), p);
            mine.initialise(1);
            twin.initialise(1);
            bool right = told(mine) && told(mine) && !mine.failed();
            broken::whole = true;
            right = right && mine.evaluate(b) == twin.evaluate(b);
            for (int k = 0; k < 2; ++k) right = right && mine.step(b, 0.1).loss == twin.step(b, 0.1).loss;
            broken::whole = false;
            CHECK((right && told(mine) && !mine.failed()));
          }) == std::vector<std::string>(1));
    run_processes(other, 2, [&](int) {
      executor<broken, played_rank> mine(differentiate(g), p);
      mine.initialise(1);
      CHECK((told(mine) && mine.failed()));
    });
  }
}

TEST_CASE("processes save together what any other number of them loads; what the writer cannot do all are told") {
  computation_graph const g = small_transformer();
  std::mt19937 draw(9);
  training_options o;
  o.optimizer.kind = optimizer_kind::adamw;
  plan p = random_plan(g, 4, draw), q = random_plan(g, 3, draw), s = serial_plan(g);
  p.optimizer = q.optimizer = s.optimizer = o.optimizer;
  scratch_folder const dir;
  std::string const there = dir / "run", blocked = dir / "file";
  std::ofstream(blocked) << "no folder";
  comm::threads_world world(4), other(3);
  std::vector<std::vector<std::vector<float>>> saved(2);
  std::vector<std::string> paths(2), refused(2);
  CHECK(run_processes(world, 2, [&](int process) {
          auto const i = static_cast<std::size_t>(process);
          executor<compute::eigen<float>, played_rank> mine(differentiate(g, o), p);
          CHECK(mine.leads() == (process == 0));
          saved[i] = train(mine, 2);
          paths[i] = save_checkpoint(mine, there);
          try { save_checkpoint(mine, blocked); } catch (error const& e) { refused[i] = e.what(); }
          mine.step(random_batch(g, 1, 1), 0.1);                               // and goes on
        }) == std::vector<std::string>(2));
  CHECK(paths[0] == paths[1]);
  CHECK(paths[0].ends_with("step-2"));
  CHECK(refused[0] == refused[1]);
  CHECK(refused[0].find("file") != std::string::npos);

  executor_of<float> alone(differentiate(g, o), s);
  CHECK(load_checkpoint(alone, there).path == paths[0]);
  CHECK(parameters_of(alone) == saved[0]);
  std::vector<char> same(3);
  CHECK(run_processes(other, 3, [&](int process) {
          executor<compute::eigen<float>, played_rank> mine(differentiate(g, o), q);
          load_checkpoint(mine, there);
          same[static_cast<std::size_t>(process)] = mine.steps() == 2 && parameters_of(mine) == saved[1];
        }) == std::vector<std::string>(3));
  CHECK(same == std::vector<char>(3, 1));
}
