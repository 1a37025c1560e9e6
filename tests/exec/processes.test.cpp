// tests/exec/processes.test.cpp - executors that each drive some of the devices are one run: here by threads that play processes
#include <tensorpar/exec/processes.hpp>
#include <doctest/doctest.h>

#include "support/scratch_folder.hpp"
#include "support/spine.hpp"
#include <tensorpar/exec/checkpoint.hpp>
#include <thread>

using namespace tests;

namespace {

/// One process of several: the ranks with rank % processes == own, all over one hub of threads.
struct part_hub {
  struct {
    comm::threads_hub* hub;
    int own, processes;
  } at;
  static thread_local inline decltype(at) next{};
  explicit part_hub(int n) : at(next) { REQUIRE(at.hub->size() == n); }
  void fail(std::exception_ptr e, int rank) { at.hub->fail(std::move(e), rank); }
  std::exception_ptr failure() const { return at.hub->failure(); }
  int failed_rank() const { return at.hub->failed_rank(); }
  std::vector<int> local() const {
    std::vector<int> r;
    for (int i = at.own; i < at.hub->size(); i += at.processes) r.push_back(i);
    return r;
  }
  // the first ranks of all processes, 0 to processes - 1, meet for them
  template <class Call> void together(Call call) {
    comm::threads c(*at.hub, at.own);
    std::vector<int> members;
    for (int i = 0; i < at.processes; ++i) members.push_back(i);
    call(c, c.make_group({members.data(), at.processes}));
  }
  void share(int rank, void* p, std::size_t bytes) {
    together([&](comm::threads& c, auto const& g) { c.broadcast(g, rank % at.processes, static_cast<char*>(p), static_cast<i64>(bytes)); });
  }
  void add_up(double* x, int n) {
    together([&](comm::threads& c, auto const& g) { c.all_reduce(g, x, x, n); });
  }
};
struct part : comm::threads {
  using hub = part_hub;
  part(hub& h, int rank) : comm::threads(*h.at.hub, rank) {}
};
static_assert(spans_processes<part_hub>);
static_assert(!spans_processes<comm::threads_hub>, "all its ranks are threads of one process");
struct no_sum : part_hub { void add_up(double*, int) = delete; };
static_assert(!spans_processes<no_sum>);
static_assert(full_communicator<part, float>);

/// work(process) on a thread per process. What they threw, by process.
template <class Work> std::vector<std::string> run_processes(comm::threads_hub& hub, int processes, Work const& work) {
  std::vector<std::string> said(static_cast<std::size_t>(processes));
  std::vector<std::thread> all;
  for (int i = 0; i < processes; ++i)
    all.emplace_back([&, i] {
      part_hub::next = {&hub, i, processes};
      try {
        work(i);
      } catch (std::exception const& e) {
        said[static_cast<std::size_t>(i)] = e.what();
        hub.fail(std::current_exception(), i);
      }
    });
  for (std::thread& t : all) t.join();
  return said;
}

}  // namespace

TEST_CASE("a hub of one process has all ranks, and nothing to share") {
  comm::threads_hub h(3);
  CHECK(detail::local_ranks(h, 3) == std::vector<int>{0, 1, 2});
  std::vector<double> x{1, 2};
  detail::add_up(h, x);
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

    comm::threads_hub hub(n), second(n);
    std::vector<char> good(static_cast<std::size_t>(processes), 0);
    CHECK(run_processes(hub, processes, [&](int process) {
            executor<compute::eigen<prime_field>, part> mine(differentiate(g), p);
            bool right = train(mine, 2) == want && mine.copies_agree();
            for (int d = 0; d < n; ++d)
              right = right && mine.allocated_bytes()[static_cast<std::size_t>(d)] ==
                                   (d % processes == process ? mine.program().arena[static_cast<std::size_t>(d)] : 0);
            good[static_cast<std::size_t>(process)] = right;
          }) == std::vector<std::string>(static_cast<std::size_t>(processes)));
    CHECK(run_processes(second, processes, [&](int process) {
            executor<compute::eigen<double>, part> mine(differentiate(g), p);
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
  for (node_choice& n : p.nodes) n.spread = {0, {{'0', 2, 1}}};
  comm::threads_hub hub(2);
  std::vector<char> before(2), after(2);
  CHECK(run_processes(hub, 2, [&](int process) {
          executor<compute::eigen<float>, part> mine(differentiate(g), p);
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
    comm::threads_hub hub(4);
    CHECK(run_processes(hub, 2, [&](int process) {
            std::mt19937 draw(how == 0 ? static_cast<unsigned>(process) : 1);
            training_options o;
            o.optimizer.kind = optimizer_kind::adamw;
            if (how == 1 && process) o.optimizer.beta1 = 0.5;
            computation_graph const& mine = how == 2 && process ? h : g;
            plan p = random_plan(mine, 4, draw);
            p.optimizer = o.optimizer;
            executor<compute::eigen<float>, part>(differentiate(mine, o), p);
          }) == std::vector<std::string>{want, want});
  }
}

TEST_CASE("a failure tells every process the device and its task") {
  computation_graph const g = residual_mlp();
  std::mt19937 draw(5);
  plan const p = random_plan(g, 4, draw);
  comm::threads_hub hub(4);
  host_batch b = random_batch(g, 1, 1);
  b["labels"].index[3] = 99;
  auto const said = run_processes(hub, 2, [&](int) {
    executor<compute::eigen<float>, part> mine(differentiate(g), p);
    mine.initialise(1);
    try {
      mine.step(b, 0.1);
    } catch (...) {
      if (!mine.failed()) throw std::runtime_error("the step failed, the executor says it did not");
      throw;
    }
  });
  for (std::string const& s : said) {
    CAPTURE(s);
    CHECK(s.find("99") != s.npos);
    CHECK(s.find(" in task ") != s.npos);
    CHECK(s.find("(loss:cross_entropy)") != s.npos);
  }
}

namespace {
struct broken : compute::eigen<float> {
  void run(kernel_call const& c) const {
    if (c.op->is<cross_entropy>()) throw std::runtime_error("the user's own words");
    compute::eigen<float>::run(c);
  }
};
}  // namespace

TEST_CASE("so does an exception that is none of the library's") {
  computation_graph const g = residual_mlp();
  plan p = serial_plan(g);
  p.cluster = devices(4);                                  // the first one alone computes
  comm::threads_hub hub(4);
  auto const said = run_processes(hub, 2, [&](int) {
    executor<broken, part> mine(differentiate(g), p);
    mine.initialise(1);
    mine.step(random_batch(g, 1, 1), 0.1);
  });
  for (std::string const& s : said) CHECK(s.starts_with("the user's own words (at device 0 in task "));
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
  comm::threads_hub hub(4), other(3);
  std::vector<std::vector<std::vector<float>>> saved(2);
  std::vector<std::string> paths(2), refused(2);
  CHECK(run_processes(hub, 2, [&](int process) {
          auto const i = static_cast<std::size_t>(process);
          executor<compute::eigen<float>, part> mine(differentiate(g, o), p);
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
          executor<compute::eigen<float>, part> mine(differentiate(g, o), q);
          load_checkpoint(mine, there);
          same[static_cast<std::size_t>(process)] = mine.steps() == 2 && parameters_of(mine) == saved[1];
        }) == std::vector<std::string>(3));
  CHECK(same == std::vector<char>(3, 1));
}
