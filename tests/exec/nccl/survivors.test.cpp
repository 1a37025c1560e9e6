// tests/exec/nccl/survivors.test.cpp - a rank is lost, and the others go on without it: on the library that stands in for NCCL
#include <tensorpar/exec/nccl/survivors.hpp>
#include <tensorpar/exec/comm/world_maker.hpp>
#include <tensorpar/exec/nccl/endpoint.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <mutex>
#include <tensorpar/exec/comm/threads.hpp>
#include <tensorpar/exec/files/checkpoint.hpp>
#include <tensorpar/exec/teams/teams.hpp>

#include "support/fake_nccl.hpp"
#include "support/scratch_folder.hpp"
#include "support/training.hpp"
#include "support/teams_once.hpp"

using namespace tests;

namespace {

using nccl = comm::basic_nccl<fake_nccl, queued_host>;
using status = fake_nccl::status;
using std::chrono::milliseconds;
template <class S> using run_on = executor<compute::teams<S, queued_teams>, nccl>;
static_assert(tensorpar::exec::world_maker<tensorpar::exec::detail::own_world<nccl>, nccl> &&
              !tensorpar::exec::world_maker<tensorpar::exec::detail::own_world<nccl>, comm::threads>);

/// Makes the world of ranks that are threads of this process, whatever has started it.
nccl::world in_one_process(int ranks) { return nccl::world(ranks, launch{}); }

/// For the length of a test: nothing is left over, and nothing was done that NCCL forbids.
struct tidy {
  tidy() { fake_nccl::reset(); }
  ~tidy() {
    CHECK(fake_nccl::forbidden == std::vector<std::string>{});
    CHECK(fake_nccl::reset() == 0);
  }
};

/// Samples over all devices: they meet in all-reduces.
plan data_parallel(computation_graph const& g, int n) {
  plan p = serial_plan(g);
  p.cluster = devices(n);
  for (op_strategy& c : p.nodes) c.sharding = {0, {{'0', n, 1}}};
  return p;
}
/// A group of all n, and messages.
plan mixed(computation_graph const& g, int n) {
  std::mt19937 draw(static_cast<unsigned>(40 + n));
  for (;;) {
    plan const p = random_plan(g, n, draw);
    tensorpar::exec::traffic const t = tensorpar::exec::traffic_of(unroll(differentiate(g), p));
    if (t.messages.empty()) continue;
    for (auto const& group : t.groups) if (static_cast<int>(group.size()) == n) return p;
  }
}
using planner = plan (*)(computation_graph const&, int);

/// Who makes the world of process number `rank`.
auto started(int rank, int port, milliseconds deadline) {
  return [=](int ranks) { return nccl::world(ranks, launch{rank, ranks, rank, "here", port, "torchrun"}, deadline); };
}

/// Who dies in which step, in the order of the ranks of the first world: there the second operation of that rank fails, as others wait for
/// it; and its process is gone.
struct deaths {
  struct one { int rank; u64 step; };
  std::vector<one> all;
  std::atomic<int> dying[4] = {}, begun[4] = {};
  explicit deaths(std::vector<one> const& who) : all(who) {
    fake_nccl::on_run = [this](std::string const&, int rank, int) {
      return dying[rank] && ++begun[rank] >= 2 ? status::remote : status::done;
    };
  }
};
struct gone {};

/// One process's part of a run, and what it alone knows.
template <class S> struct process {
  computation_graph const& g;
  planner plan_by;
  std::string folder;
  deaths& fate;
  int born, rank;
  std::size_t lost_so_far = 0;
  std::vector<std::string> said{};

  auto batch(run_on<S> const& run) {
    for (auto const& d : fate.all) if (d.rank == born && d.step == run.steps()) fate.dying[born] = 1;
    return random_batch(g, run.plan_value().micro_batches, run.steps());
  }
  /// As a launcher would say it: in the numbers of the present world.
  std::vector<int> who_is_lost(error const& e) {
    said.push_back(e.what());
    int number = fate.all[lost_so_far].rank;
    if (number == born) throw gone{};
    for (std::size_t k = 0; k < lost_so_far; ++k) number -= fate.all[k].rank < fate.all[lost_so_far].rank;
    ++lost_so_far;
    rank -= number < rank;
    return {number};
  }
  void train(std::optional<run_on<S>>& run, u64 steps) {
    auto const plan_for = [&](int devices) { return plan_by(g, devices); };
    // [quoted: survivors]
    while (run->steps() < steps) try {
        run->step(batch(*run), 0.125);
        if (run->steps() % 2 == 0) save_checkpoint(*run, folder);
      } catch (error const& e) {
        std::vector<int> const lost = who_is_lost(e);            // a launcher, MPI or a health check knows
        auto left = run->world().survivors(lost);
        plan const smaller = plan_for(left.size());              // a search, for so many devices
        run.reset();                                             // its memory is free before the next run's is taken
        run.emplace(differentiate(g), smaller, [&](int) { return nccl::world(std::move(left)); });
        load_checkpoint(*run, folder);
      }
    // [end]
  }
};
bool says(std::string const& text, std::vector<std::string> const& parts) {
  for (auto const& p : parts) if (text.find(p) == text.npos) { MESSAGE(text); return false; }
  return true;
}
/// work(rank) in n threads that play processes, and what each of them threw.
template <class Work> std::vector<std::string> in_processes(int n, Work const& work) {
  std::vector<std::string> said(static_cast<std::size_t>(n));
  std::vector<std::jthread> all;
  for (int r = 0; r < n; ++r)
    all.emplace_back([&, r] {
      try {
        work(r);
      } catch (error const& e) {
        said[static_cast<std::size_t>(r)] = e.what();
      }
    });
  all.clear();
  return said;
}

/// A run of 4 processes through the deaths and three steps on from the last checkpoint before the last of them; then a fresh run of as many
/// as are left, from that checkpoint.
template <class S> void lose(std::vector<deaths::one> const& who, planner plan_by, milliseconds deadline, int port) {
  tidy const at_the_end;
  scratch_folder const folder;
  computation_graph const g = residual_mlp();
  deaths fate(who);
  u64 const from = who.back().step / 2 * 2, steps = from + 3;
  std::vector<std::vector<std::vector<S>>> got(4);
  std::vector<std::vector<std::string>> said(4);
  auto const wrong = in_processes(4, [&](int r) {
    auto const k = static_cast<std::size_t>(r);
    process<S> me{g, plan_by, folder.path(), fate, r, r};
    std::optional<run_on<S>> run;
    run.emplace(differentiate(g), plan_by(g, 4), started(r, port, deadline));
    run->initialise(7);
    try {
      me.train(run, steps);
      CHECK(run->local_devices() == std::vector<int>{me.rank});
      CHECK(run->copies_agree());
      got[k] = parameters_of(*run);
    } catch (gone) {
    }
    said[k] = me.said;
  });
  CHECK(wrong == std::vector<std::string>(4));
  fake_nccl::on_run = nullptr;
  int const left = 4 - static_cast<int>(who.size());
  run_on<S> fresh(differentiate(g), plan_by(g, left), in_one_process);
  load_checkpoint(fresh, folder / ("step-" + std::to_string(from)));
  while (fresh.steps() < steps) fresh.step(random_batch(g, fresh.plan_value().micro_batches, fresh.steps()), 0.125);
  auto const want = parameters_of(fresh);
  for (int r = 0; r < 4; ++r) {
    auto const k = static_cast<std::size_t>(r);
    auto const mine = std::find_if(who.begin(), who.end(), [&](auto const& d) { return d.rank == r; });
    auto const lived_through = static_cast<std::size_t>(mine - who.begin());
    CHECK(said[k].size() == lived_through + (mine != who.end()));
    if (mine == who.end()) CHECK(got[k] == want);
    std::string const limit = " for more than " + std::to_string(deadline.count()) + " ms";
    for (std::size_t i = 0; i < std::min(lived_through, said[k].size()); ++i)
      CHECK(says(said[k][i], {"rank ", " waits in ", plan_by == data_parallel ? "of group {" : "", " number ", limit, "in task "}));
    if (mine != who.end() && !said[k].empty()) CHECK(says(said[k].back(), {"NCCL says: remote process exited", "in task "}));
  }
}

}  // namespace

TEST_CASE("one of four processes dies in a collective: three go on, as three would that begin at the checkpoint") {
  lose<prime_field>({{2, 3}}, data_parallel, milliseconds(1500), 1);
  lose<double>({{0, 5}}, data_parallel, milliseconds(1500), 2);
}
TEST_CASE("another one dies after that: two go on; messages are under way") {
  lose<prime_field>({{1, 3}, {3, 5}}, mixed, milliseconds(1500), 3);
}

namespace {
/// Where the devices of a process are made, while it lives.
struct seats {
  std::mutex lock;
  std::vector<std::pair<int, int>> taken;                           // device, and place in the process
  seats() {
    queued_teams::on_make = [this](tensorpar::exec::device_place at) { std::lock_guard held(lock); taken.push_back({at.device,
        at.nth}); return 0; };
  }
  ~seats() { queued_teams::on_make = nullptr; }
};
}  // namespace

TEST_CASE("ranks of one process: one fails, the others keep their devices and go on; and again, with a library that takes its time") {
  for (int polls : {0, 3}) {
    tidy const at_the_end;
    fake_nccl::polls = polls;
    scratch_folder const folder;
    computation_graph const g = residual_mlp();
    std::optional<run_on<prime_field>> run;
    seats made;
    run.emplace(differentiate(g), mixed(g, 4), in_one_process);
    run->initialise(7);
    auto const step = [&] { run->step(random_batch(g, run->plan_value().micro_batches, run->steps()), 0.125); };
    step();
    save_checkpoint(*run, folder.path());
    struct { int of_first, number; std::vector<std::pair<int, int>> seats; } const losses[] = {
        {1, 1, {{0, 0}, {1, 2}, {2, 3}}}, {2, 1, {{0, 0}, {1, 3}}}, {0, 0, {{0, 3}}}};
    for (auto const& loss : losses) {
      fake_nccl::on_run = [&](std::string const&, int rank, int) { return rank == loss.of_first ? status::remote : status::done; };
      CHECK_THROWS_WITH_AS(step(), doctest::Contains("NCCL says: remote process exited"), error);
      fake_nccl::on_run = nullptr;
      CHECK_THROWS_WITH_AS(step(), doctest::Contains("has failed before"), error);
      auto left = run->world().survivors({loss.number});
      CHECK(left.lost() == std::vector<int>{loss.number});
      plan const smaller = left.size() > 1 ? mixed(g, left.size()) : serial_plan(g);
      run.reset();
      made.taken.clear();
      run.emplace(differentiate(g), smaller, [&](int) { return nccl::world(std::move(left)); });
      CHECK(made.taken == loss.seats);
      load_checkpoint(*run, folder.path());
      step();
      step();
      executor<compute::teams<prime_field>, comm::threads> host(differentiate(g), smaller);
      load_checkpoint(host, folder.path());
      while (host.steps() < run->steps()) host.step(random_batch(g, smaller.micro_batches, host.steps()), 0.125);
      CHECK(parameters_of(*run) == parameters_of(host));
    }
  }
}

TEST_CASE("a failure that takes nobody: all go on, in a new world of the same ranks") {
  tidy const at_the_end;
  scratch_folder const folder;
  computation_graph const g = residual_mlp();
  plan const p = mixed(g, 3);
  auto const good = [&](u64 k) { return random_batch(g, p.micro_batches, k); };
  std::vector<std::vector<std::vector<prime_field>>> got(3);
  std::atomic<bool> failing[3]{};
  fake_nccl::on_run = [&](std::string const&, int rank, int) { return failing[rank] ? status::remote : status::done; };
  auto const said = in_processes(3, [&](int r) {
    std::optional<run_on<prime_field>> run;
    run.emplace(differentiate(g), p, started(r, 4, milliseconds(1500)));
    run->initialise(7);
    run->step(good(0), 0.125);
    save_checkpoint(*run, folder.path());
    failing[r] = true;
    CHECK_THROWS_AS(run->step(good(1), 0.125), error);
    failing[r] = false;
    auto left = run->world().survivors({});
    CHECK(left.size() == 3);
    run.reset();
    run.emplace(differentiate(g), p, [&](int) { return nccl::world(std::move(left)); });
    load_checkpoint(*run, folder.path());
    run->step(good(1), 0.125);
    got[static_cast<std::size_t>(r)] = parameters_of(*run);
  });
  fake_nccl::on_run = nullptr;
  CHECK(said == std::vector<std::string>(3));
  executor<compute::teams<prime_field>, comm::threads> host(differentiate(g), p);
  CHECK(got == std::vector(3, train(host, 2)));
}

TEST_CASE("who is told of a loss does not wait for the deadline") {
  std::atomic<bool> waits = false;                                 // queues write it as long as there is an executor
  tidy const at_the_end;
  computation_graph const g = residual_mlp();
  run_on<prime_field> run(differentiate(g), data_parallel(g, 3), in_one_process);
  run.initialise(7);
  fake_nccl::on_run = [&](std::string const&, int rank, int) {
    for (waits = true; rank == 1 && !run.world().failed();) std::this_thread::yield();
    return rank == 1 ? status::remote : status::done;
  };
  std::jthread const health_check([&] {
    while (!waits) std::this_thread::yield();
    run.world().fail(std::make_exception_ptr(error("GPU 1 has fallen off the bus", "health check", "")), 1);
  });
  CHECK_THROWS_WITH_AS(run.step(random_batch(g, 1, 0), 0.125), doctest::Contains("GPU 1 has fallen off the bus"), error);
  auto const left = run.world().survivors({1, 1});
  CHECK(left.size() == 2);
  CHECK(left.lost() == std::vector<int>{1});
}

namespace {
/// Runs in one process whose world has failed in a step, and what `survivors` says of these.
std::string refusal(std::vector<int> lost, bool fails = true) {
  computation_graph const g = residual_mlp();
  run_on<prime_field> run(differentiate(g), data_parallel(g, 4), in_one_process);
  run.initialise(7);
  fake_nccl::on_run = [=](std::string const&, int, int) { return fails ? status::remote : status::done; };
  try {
    run.step(random_batch(g, 1, 0), 0.125);
  } catch (error const&) {
  }
  fake_nccl::on_run = nullptr;
  try {
    run.world().survivors(std::move(lost));
  } catch (error const& e) {
    return e.what();
  }
  return "";
}
}  // namespace

TEST_CASE("what cannot be gone on from is one error each") {
  tidy const at_the_end;
  CHECK(refusal({3, 1, 3}) == "");
  CHECK(says(refusal({1}, false), {"nothing has failed", "survivors of a run that has"}));
  CHECK(says(refusal({1, 4}), {"rank 4 is said to be lost", "ranks 0 to 3"}));
  CHECK(says(refusal({-1}), {"rank -1 is said to be lost", "ranks 0 to 3"}));
  CHECK(says(refusal({2, 0, 1, 3}), {"all 4 ranks are said to be lost", "at least one that is left"}));
  // of one process of several, alone: no world was ever joined
  nccl::world never(3, 1, fake_nccl::id{5}, milliseconds(100));
  never.fail(std::make_exception_ptr(error("no more data", "input", "")), 1);
  CHECK_THROWS_WITH_AS(never.survivors({1}), doctest::Contains("no rank of this process is left: rank 1 is itself among the lost"), error);
  CHECK_THROWS_WITH_AS(never.survivors({0}), doctest::Contains("rank 1 has left no world to go on from"), error);
  // asked for twice, and a plan for others than are left
  computation_graph const g = residual_mlp();
  run_on<prime_field> run(differentiate(g), data_parallel(g, 3), in_one_process);
  run.initialise(7);
  run.world().fail(std::make_exception_ptr(error("enough", "health check", "")), 0);
  CHECK_THROWS_AS(run.step(random_batch(g, 1, 0), 0.125), error);
  auto left = run.world().survivors({0});
  CHECK_THROWS_WITH_AS(run.world().survivors({0}), doctest::Contains("asked for once"), error);
  CHECK_THROWS_WITH_AS(run_on<prime_field>(differentiate(g), data_parallel(g, 3), [&](int) { return nccl::world(std::move(left)); }),
                       doctest::Contains("the plan is for 3 devices, but its world joins 2 ranks"), error);
}

TEST_CASE("survivors that do not come, disagree, or are refused end in an error, and nothing hangs") {
  enum { all_come, late, dead, disagree, refused, stuck, not_revoked };
  for (int how : {all_come, late, dead, disagree, refused, stuck, not_revoked}) {
    CAPTURE(how);
    tidy const at_the_end;
    if (how == late) fake_nccl::on_call = [](std::string const& what, int rank, int) {
      if (what == "shrink" && rank == 2) std::this_thread::sleep_for(milliseconds(100));
      return status::done;
    };
    if (how == refused || how == stuck) fake_nccl::on_call = [=](std::string const& what, int rank, int) {
      return what != "shrink" || rank != 2 ? status::done : how == refused ? status::internal : status::in_progress;
    };
    if (how == not_revoked) fake_nccl::on_call = [](std::string const& what, int, int) {
      return what == "revoke" ? status::internal : status::done;
    };
    // all compare their programs; then rank 3 fails
    fake_nccl::on_run = [](std::string const& what, int rank, int) {
      return rank == 3 && what != "all_gather" ? status::remote : status::done;
    };
    computation_graph const g = residual_mlp();
    auto const said = in_processes(4, [&](int r) {
      std::optional<run_on<prime_field>> run;
      run.emplace(differentiate(g), data_parallel(g, 4), started(r, 5 + how, milliseconds(400)));
      run->initialise(7);
      CHECK_THROWS_AS(run->step(random_batch(g, 1, 0), 0.125), error);
      if (r == 3 || (how == dead && r == 2)) return;
      auto left = run->world().survivors(how == disagree && r == 2 ? std::vector{3, 1} : std::vector{3});
      int const n = left.size();
      run.reset();
      run.emplace(differentiate(g), data_parallel(g, n), [&](int) { return nccl::world(std::move(left), milliseconds(300)); });
      run->initialise(7);
      run->step(random_batch(g, 1, 0), 0.125);
    });
    for (std::size_t r = 0; r < 3; ++r) {
      bool const well = how == all_come || how == late || (how == dead && r == 2);
      CAPTURE(r);
      CHECK(said[r].empty() == well);
      std::string const me = "rank " + std::to_string(r);
      if (well) continue;
      if (how == not_revoked) CHECK(says(said[r], {me + " has left no world to go on from"}));
      else if (how == refused && r == 2) CHECK(says(said[r], {"NCCL says: internal error", me + ", going on without ranks {3}"}));
      else if (how == disagree && r == 2)
        CHECK(says(said[r], {"rank 1 waits in going on without ranks {1,3} for more than 300 ms", "every rank joins in time"}));
      else CHECK(says(said[r], {me + " waits in going on without ranks {3} for more than 300 ms", "every rank joins in time"}));
    }
  }
}

namespace {
/// As NCCL was before it could.
struct older_nccl : fake_nccl {
  int revoke, shrink;
};
using older = comm::basic_nccl<older_nccl, queued_host>;
static_assert(tensorpar::exec::collective_library<older_nccl, queued_host> && !tensorpar::exec::shrinking_library<older_nccl>);
}  // namespace

TEST_CASE("an older library ends its communicators at a failure, and says that it cannot go on; a new world by a new id can") {
  tidy const at_the_end;
  computation_graph const g = residual_mlp();
  std::vector<std::vector<std::vector<prime_field>>> got(3);
  fake_nccl::on_run = [](std::string const&, int rank, int nth) { return rank == 2 && nth > 2 ? status::remote : status::done; };
  auto const said = in_processes(3, [&](int r) {
    std::optional<executor<compute::teams<prime_field, queued_teams>, older>> run;
    run.emplace(differentiate(g), data_parallel(g, 3), [&](int n) { return older::world(n, r, fake_nccl::id{70}, milliseconds(400)); });
    run->initialise(7);
    CHECK_THROWS_WITH_AS(run->step(random_batch(g, 1, 0), 0.125), doctest::Contains("in task "), error);
    CHECK_THROWS_WITH_AS(run->world().survivors({2}), doctest::Contains("this library cannot revoke and shrink communicators"), error);
    run.reset();
    if (r == 2) return;
    run.emplace(differentiate(g), data_parallel(g, 2), [&](int n) { return older::world(n, r, fake_nccl::id{71}); });
    got[static_cast<std::size_t>(r)] = train(*run, 2);
  });
  CHECK(said == std::vector<std::string>(3));
  executor<compute::teams<prime_field>, comm::threads> host(differentiate(g), data_parallel(g, 2));
  auto const want = train(host, 2);
  CHECK(got[0] == want);
  CHECK(got[1] == want);
}

TEST_CASE("the stand-in refuses what NCCL refuses, and writes it down") {
  fake_nccl::reset();
  fake_nccl::id id{};
  fake_nccl::make_id(id);
  fake_nccl::comm one = nullptr, two = nullptr, child = nullptr;
  auto const ready = [](fake_nccl::comm const& c) {
    status s = status::in_progress;
    while (s == status::in_progress) fake_nccl::state(c, s);
    return s;
  };
  fake_nccl::init(one, 2, id, 0);
  fake_nccl::init(two, 2, id, 1);
  CHECK(ready(one) == status::done);
  CHECK(ready(two) == status::done);
  queued_host const q, other;
  std::byte bytes[16] = {};
  int const me = 0, her = 1;
  fake_nccl::all_gather(bytes, bytes, 1, fake_nccl::bytes, one, q);
  CHECK(fake_nccl::shrink(one, &her, 1, child) == status::invalid);            // an operation is under way
  CHECK(fake_nccl::revoke(one) == status::in_progress);
  CHECK(ready(one) == status::done);
  q.wait();
  CHECK(fake_nccl::all_gather(bytes, bytes, 1, fake_nccl::bytes, one, q) == status::invalid);
  CHECK(fake_nccl::revoke(one) == status::invalid);
  CHECK(fake_nccl::finalize(one) == status::invalid);
  CHECK(fake_nccl::shrink(one, &me, 1, child) == status::invalid);
  CHECK(fake_nccl::shrink(one, &her, 0, child) == status::invalid);
  CHECK(fake_nccl::shrink(one, &her, 1, child) == status::in_progress);
  CHECK(ready(one) == status::done);
  REQUIRE(child);
  CHECK(ready(child) == status::done);
  CHECK(fake_nccl::destroy(one) == status::done);
  CHECK(fake_nccl::destroy(one) == status::invalid);
  CHECK(fake_nccl::abort(one) == status::invalid);
  CHECK(fake_nccl::forbidden.size() == 7);
  CHECK(fake_nccl::reset() == 2);
}
