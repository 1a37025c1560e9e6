// tests/exec/nccl/nccl.test.cpp - comm::nccl on a library that stands in for NCCL: laws, whole plans, and every way to go wrong ends in an
// error
#include <tensorpar/exec/nccl/endpoint.hpp>
#include <tensorpar/exec/nccl/world.hpp>
#include <tensorpar/exec/nccl/library.hpp>
#include <tensorpar/exec/nccl/mail.hpp>
#include <tensorpar/exec/nccl/rank.hpp>
#include <tensorpar/exec/nccl/running.hpp>
#include <tensorpar/exec/step/queue_lanes.hpp>
#include <tensorpar/exec/profile.hpp>
#include <tensorpar/exec/step/task_errors.hpp>
#include <tensorpar/exec/step/task_times.hpp>
#include <tensorpar/exec/teams/teams.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <tensorpar/program/passes/pipeline_pass.hpp>

#include "support/effort.hpp"
#include "support/fake_nccl.hpp"
#include "support/laws/communicator.hpp"
#include "support/laws/memory.hpp"
#include "support/laws/queues.hpp"
#include "support/link_levels.hpp"
#include "support/random_pipeline.hpp"
#include "support/spine.hpp"
#include "support/teams_once.hpp"

using namespace tests;

static_assert(tensorpar::exec::queued_memory<queued_host> && !tensorpar::exec::queued_memory<tensorpar::exec::host_memory>);
static_assert(tensorpar::exec::collective_library<fake_nccl, queued_host> && tensorpar::exec::shrinking_library<fake_nccl>);

namespace {

using ranks = comm::basic_nccl<fake_nccl, queued_host>;
static_assert(tensorpar::exec::full_communicator<ranks, float> && tensorpar::exec::full_communicator<ranks, prime_field>);

/// Every call is waited for, so the host's laws can be asked of it.
struct waiting : ranks {
  using ranks::ranks;
  template <class E> void all_reduce(group const& g, E const* in, E* out, i64 n) { ranks::all_reduce(g, in, out, n); drain(); }
  template <class E> void reduce_scatter(group const& g, E const* in, E* out, i64 n) { ranks::reduce_scatter(g, in, out, n); drain(); }
  template <class E> void all_gather(group const& g, E const* in, E* out, i64 n) { ranks::all_gather(g, in, out, n); drain(); }
  template <class E> void all_to_all(group const& g, E const* in, E* out, i64 n) { ranks::all_to_all(g, in, out, n); drain(); }
  template <class E> void broadcast(group const& g, int root, E* data, i64 n) { ranks::broadcast(g, root, data, n); drain(); }
  template <class E> void send(int to, int tag, E const* data, i64 n) { ranks::send(to, tag, data, n); queue().wait(); }
  template <class E> void receive(int from, int tag, E* data, i64 n) { ranks::receive(from, tag, data, n); queue().wait(); }
};

std::vector<int> first(int n) {
  std::vector<int> r;
  for (int i = 0; i < n; ++i) r.push_back(i);
  return r;
}
tensorpar::core::slice<int> view(std::vector<int> const& v) { return {v.data(), static_cast<int>(v.size())}; }

/// Each rank's work in a thread of its own, after `prepare`. What every rank's exception says, "" where there is none.
template <class End, class Work> std::vector<std::string> on_ranks(ranks::world& h, tensorpar::exec::traffic const& t, Work work) {
  std::vector<std::string> said(static_cast<std::size_t>(h.size()));
  std::vector<std::unique_ptr<End>> ends;
  for (int r = 0; r < h.size(); ++r) ends.push_back(std::make_unique<End>(h, r, queued_host{}));
  {
    std::vector<std::jthread> threads;
    for (int r = 0; r < h.size(); ++r)
      threads.emplace_back([&, r] {
        End& c = *ends[static_cast<std::size_t>(r)];
        try {
          c.prepare(t);
          work(c);
          c.drain();
        } catch (std::exception const& e) {
          said[static_cast<std::size_t>(r)] = e.what();
          h.fail(std::current_exception(), r);
          c.abandon();
        }
      });
  }
  return said;
}
std::string joined(std::vector<std::string> const& all) {
  std::string r;
  for (auto const& s : all) r += s.empty() ? "" : s + "\n";
  return r;
}
bool all_say(std::vector<std::string> const& said, std::vector<std::string> const& parts) {
  for (auto const& s : said)
    for (auto const& p : parts) if (s.find(p) == s.npos) { MESSAGE(s); return false; }
  return true;
}

template <class Element> std::string laws_on(int n, std::vector<i64> const& counts) {
  ranks::world h(n, launch{});
  tensorpar::exec::traffic t;
  if (n > 1) t.groups.push_back(first(n));
  for (int from = 0; from < n; ++from)                     // as broken_message_laws sends
    for (int to = 0; to < n; ++to)
      for (int turn = 0; turn < 2; ++turn)
        for (int tag : {7, 9}) if (from != to) t.messages.push_back({from, to, tag, counts.back(), sizeof(Element)});
  std::vector<std::string> found(static_cast<std::size_t>(n));
  auto const said = on_ranks<waiting>(h, t, [&](waiting& c) {
    std::string& mine = found[static_cast<std::size_t>(c.rank())];
    auto const g = c.make_group(view(first(n)));
    for (i64 k : counts) mine += broken_collective_laws<Element>(c, g, k, static_cast<u64>(k));
    for (int step = 0; step < 3; ++step) mine += broken_message_laws<Element>(c, counts.back(), 5);
  });
  return joined(said) + joined(found);
}

template <class S> using on_queues = executor<compute::teams<S, queued_teams>, ranks>;
/// Makes the world of ranks that are threads of this process, whatever has started it.
struct in_one_process {
  std::chrono::milliseconds deadline = std::chrono::seconds(60);
  ranks::world operator()(int n) const { return ranks::world(n, launch{}, deadline); }
};

/// For the length of a test.
struct tidy {
  ~tidy() {
    queued_host::slow_writes = 0;
    CHECK(fake_nccl::forbidden == std::vector<std::string>{});
    CHECK(fake_nccl::reset() == 0);
  }
};
std::string number(int n) { return std::to_string(n); }

}  // namespace

TEST_CASE("a device of queues keeps the laws of memories, and its marks their order") {
  queued_host const m;
  check_bytes(m, 3);
  check_boxes<float>(m, 4);
  check_marks(m, 200);
}

TEST_CASE("collectives and messages keep their laws, for 1 to 6 ranks, ready at once or after a while") {
  for (int polls : {0, 3}) {
    fake_nccl::polls = polls;
    for (int n = 1; n <= 6; ++n) {
      CHECK(laws_on<float>(n, {1, 5, 70}) == "");
      CHECK(laws_on<prime_field>(n, {3, 60}) == "");
    }
    CHECK(laws_on<double>(3, {2000}) == "");
    CHECK(laws_on<std::int32_t>(4, {9}) == "");
    CHECK(fake_nccl::reset() == 0);
  }
}

TEST_CASE("whole plans in queues give the numbers of a run on threads") {
  tidy const at_the_end;
  std::mt19937 draw(21);
  int collectives = 0, levels = 0;
  for (computation_graph const& g : {residual_mlp(), small_cnn(), small_transformer()})
    for (auto const& [devices, link_lanes] : {std::pair{1, false}, {2, false}, {4, false}, {6, false}, {4, true}, {6, true}}) {
      plan p = random_plan(g, devices, draw);
      if (link_lanes) p.cluster = on_link_levels(p.cluster);
      on_queues<prime_field> a(differentiate(g), p, in_one_process{});
      executor_of<prime_field> b(differentiate(g), p);
      CHECK(train(a, 2) == train(b, 2));
      CHECK(a.copies_agree());
      CHECK(a.allocated_bytes() == a.program().arena);
      for (task const& t : a.program().tasks) collectives += t.kind == task_kind::reshard;
      timeline record;
      queued_host::ranges = 0;
      a.step(random_batch(g, p.micro_batches, 5), 0.125, &record);
      std::size_t spans = 0;
      for (task const& t : a.program().tasks) spans += t.devices.size();
      CHECK(record.spans.size() == spans);
      CHECK(static_cast<std::size_t>(queued_host::ranges) == spans);
      for (std::size_t k = 0; k < record.spans.size(); ++k) {
        span const &now = record.spans[k], &before = record.spans[k ? k - 1 : 0];
        CHECK(now.start >= 0);
        CHECK(now.end >= now.start);
        bool const one_queue = k && now.device == before.device && now.where == before.where && now.link == before.link;
        if (one_queue) CHECK(now.start >= before.end);                                                       // a queue does one thing
        levels += now.link > 0;
      }
      on_queues<double> x(differentiate(g), p, in_one_process{});
      executor_of<double> y(differentiate(g), p);
      CHECK(distance(train(x, 2), train(y, 2)) < 1e-9);
    }
  CHECK(collectives > 30);
  CHECK(levels > 30);
}

TEST_CASE("sharded weights that were just stored, and are gathered first of all") {
  tidy const at_the_end;
  queued_host::slow_writes = 1000;
  std::mt19937 draw(8);
  int shards = 0;
  for (int trial = 0; trial < 6; ++trial) {
    computation_graph const g = trial % 2 ? small_transformer() : residual_mlp();
    plan p = random_plan(g, 4, draw);
    for (op_strategy& n : p.nodes) n = {n.sharding, tensorpar::ir::zero_stage::weights, false};
    on_queues<prime_field> a(differentiate(g), p, in_one_process{});
    executor_of<prime_field> b(differentiate(g), p);
    auto const want = train(b, 1);
    CHECK(train(a, 1) == want);
    CHECK(train(a, 1) == want);                              // stored anew, over what is there
    task const& first = a.program().tasks.front();
    shards += first.kind == task_kind::reshard;
  }
  CHECK(shards > 0);
}

TEST_CASE("pipelines, whose messages pass one another, in queues") {
  tidy const at_the_end;
  std::mt19937 draw(5);
  int halves = 0;
  for (computation_graph const& g : {residual_mlp(), small_cnn()})
    for (int trial = 0; trial < test_effort::cases(10); ++trial) {
      plan p = random_pipeline(g, {.devices = 2 + trial % 5}, 1, i64{1} << (trial % 4), draw);
      if (trial % 3 == 1) p.cluster = on_link_levels(p.cluster);
      planned_step const s = tensorpar::passes::pipeline_pass(g, p);
      on_queues<prime_field> a(s, in_one_process{});
      executor_of<prime_field> b(s);
      auto const run = [&](auto& e) {
        e.initialise(7);
        for (u64 k = 0; k < 2; ++k) e.step(random_batch(g, static_cast<int>(p.pipeline.mini_batch / p.pipeline.unit), k), 0.125);
        return parameters_of(e);
      };
      CHECK(run(a) == run(b));
      for (task const& t : a.program().tasks) halves += t.kind == task_kind::send;
    }
  CHECK(halves > 30);
}

TEST_CASE("one rank in each of several processes: all get the same answers") {
  tidy const at_the_end;
  std::mt19937 draw(9);
  for (int n : {2, 3, 4}) {
    computation_graph const g = small_transformer();
    plan const p = random_plan(g, n, draw);
    on_queues<double> whole(differentiate(g), p, in_one_process{});
    auto const want = train(whole, 2);
    std::vector<std::vector<std::vector<double>>> got(static_cast<std::size_t>(n));
    std::vector<double> loss(got.size());
    std::vector<std::map<std::string, std::vector<double>>> seen(got.size());
    std::vector<char> agree(got.size());
    {
      std::vector<std::jthread> processes;
      for (int r = 0; r < n; ++r)
        processes.emplace_back([&, r] {
          auto const k = static_cast<std::size_t>(r);
          launch const how{r, n, r, "here", 1000 + n, "torchrun"};
          on_queues<double> e(differentiate(g), p, [&](int all) { return ranks::world(all, how); });
          CHECK(e.local_devices() == std::vector<int>{r});
          got[k] = train(e, 2);
          seen[k] = e.evaluate(random_batch(g, p.micro_batches, 8), {"loss"});
          loss[k] = e.step(random_batch(g, p.micro_batches, 9), 0.125).loss;
          agree[k] = e.copies_agree();
        });
    }
    auto const evaluated = whole.evaluate(random_batch(g, p.micro_batches, 8), {"loss"});
    double const wanted = whole.step(random_batch(g, p.micro_batches, 9), 0.125).loss;
    for (std::size_t k = 0; k < got.size(); ++k) {
      CHECK(got[k] == want);
      CHECK(seen[k] == evaluated);
      CHECK(loss[k] == wanted);
      CHECK(agree[k]);
    }
  }
}

TEST_CASE("a process with another plan, graph or rate of clipping is told of on all of them, before the first step") {
  tidy const at_the_end;
  std::mt19937 draw(10);
  computation_graph const g = residual_mlp();
  plan const p = random_plan(g, 3, draw);
  for (int odd : {0, 1, 2}) {
    std::vector<std::string> said(3);
    {
      std::vector<std::jthread> processes;
      for (int r = 0; r < 3; ++r)
        processes.emplace_back([&, r] {
          launch const how{r, 3, r, "here", 2000 + odd, "torchrun"};
          plan q = p;
          training_options o;
          if (r == odd && odd == 0) q.nodes[0] = q.nodes[0].sharding.size() ? op_strategy{} : op_strategy{{0, {{'b', 3, 1}}}};
          if (r == odd && odd > 0) q.optimizer.clip_norm = o.optimizer.clip_norm = 0.25;
          try {
            on_queues<double> e(differentiate(g, o), q, [&](int all) { return ranks::world(all, how, std::chrono::milliseconds(5000)); });
          } catch (error const& e) {
            said[static_cast<std::size_t>(r)] = e.what();
          }
        });
    }
    std::string const others = odd == 0 ? "ranks 1, 2" : "ranks " + std::to_string(odd);
    CHECK_MESSAGE(all_say(said, {"other programs than rank 0's on " + others + " (at executor"}), odd);
  }
}

TEST_CASE("processes that would go on from other steps, or of which one has a bad batch, are all told, and go on when they are mended") {
  tidy const at_the_end;
  std::mt19937 draw(12);
  computation_graph const g = small_transformer();
  plan const p = random_plan(g, 3, draw);
  on_queues<double> whole(differentiate(g), p, in_one_process{});
  auto const want = train(whole, 3);
  auto const batch = [&](u64 k) { return random_batch(g, p.micro_batches, k); };
  std::vector<std::vector<std::string>> said(3);
  std::vector<std::vector<std::vector<double>>> got(3);
  {
    std::vector<std::jthread> processes;
    for (int r = 0; r < 3; ++r)
      processes.emplace_back([&, r] {
        launch const how{r, 3, r, "here", 3000, "torchrun"};
        on_queues<double> e(differentiate(g), p, [&](int all) { return ranks::world(all, how, std::chrono::milliseconds(5000)); });
        auto const k = static_cast<std::size_t>(r);
        auto const refuses = [&](auto const& f) {
          try { f(); } catch (error const& x) { return said[k].push_back(x.what()); }
          said[k].push_back("accepted");
        };
        e.initialise(7);
        e.step(batch(0), 0.125);
        if (r == 1) e.set_steps(9);
        refuses([&] { e.step(batch(1), 0.125); });
        e.set_steps(1);
        host_batch bad = batch(1);
        if (r == 2) bad["extra"] = {};
        refuses([&] { e.step(bad, 0.125); });
        refuses([&] { e.evaluate(bad, {"loss"}); });
        e.step(batch(1), 0.125);
        refuses([&] { e.step(batch(2), r == 0 ? 0.25 : 0.125); });
        e.step(batch(2), 0.125);
        got[k] = parameters_of(e);
      });
  }
  CHECK(said[1] == said[0]);
  CHECK(said[2] == said[0]);
  REQUIRE(said[0].size() == 4);
  CHECK(said[0][0] == "processes 0 and 2 have step 1, process 1 has step 9 (at step); valid: the same step on every process");
  for (std::size_t k : {std::size_t{1}, std::size_t{2}})
    CHECK(said[0][k].starts_with("the batch has 'extra', which is no input of the model (at batch, process 2); valid: '"));
  CHECK(said[0][3].starts_with("process 0 has learning rate 0.25, processes 1 and 2 have learning rate 0.125 (at step)"));
  for (auto const& x : got) CHECK(x == want);
}

TEST_CASE("a rank that never comes is an error past the deadline, and so are launchers that do not fit") {
  tidy const at_the_end;
  std::vector<std::string> said(2);
  {
    std::vector<std::jthread> processes;
    for (int r = 0; r < 2; ++r)
      processes.emplace_back([&said, r] {
        ranks::world h(3, launch{r, 3, r, "here", 7, "torchrun"}, std::chrono::milliseconds(200));
        try {
          ranks(h, r, queued_host{}).prepare({});
        } catch (error const& e) {
          said[static_cast<std::size_t>(r)] = e.what();
          h.fail(std::current_exception(), r);
        }
      });
  }
  CHECK(all_say(said, {"waits in joining all ranks for more than 200 ms", "every rank joins in time"}));
  CHECK_THROWS_WITH_AS(ranks::world(4, launch{0, 2, 0, "here", 7, "torchrun"}),
                       doctest::Contains("the plan is for 4 devices, but torchrun has started 2 processes"), error);
  CHECK_THROWS_WITH_AS(ranks::world(2, launch{0, 2, 0, "", 0, "Open MPI"}), doctest::Contains("nobody says where rank 0 is"), error);
  CHECK_THROWS_WITH_AS(ranks::world(0, launch{}), doctest::Contains("at least one rank"), error);
  ranks::world h(2, 1, fake_nccl::id{5});
  CHECK_THROWS_WITH_AS(ranks(h, 0, queued_host{}), doctest::Contains("rank 0 is not one of this process"), error);
}

TEST_CASE("late ranks are waited for; too late, missing and failing ones are errors with rank, operation and task") {
  computation_graph const g = residual_mlp();
  plan p = serial_plan(g);
  std::mt19937 draw(3);
  do p = random_plan(g, 4, draw);
  while (tensorpar::exec::traffic_of(unroll(differentiate(g), p)).groups.empty());
  enum { late, too_late, refused, broken };
  for (int trial = 0; trial < 8; ++trial) {
    int const how = trial % 4;
    bool const evaluates = trial >= 4;                    // whose outputs are read while operations are under way
    CAPTURE(trial);
    std::atomic<bool> over = false;                       // wakes a queue that sleeps; queues read it as long as there is an executor
    tidy const at_the_end;
    on_queues<prime_field> e(differentiate(g), p, in_one_process{std::chrono::milliseconds(how == late ? 60000 : 250)});
    e.initialise(7);
    auto const batch = random_batch(g, p.micro_batches, 1);
    e.step(batch, 0.125);
    using status = fake_nccl::status;
    if (how == refused)
      fake_nccl::on_call = [](std::string const&, int rank, int) { return rank == 2 ? status::internal : status::done; };
    else
      fake_nccl::on_run = [&](std::string const&, int rank, int) {
        if (rank != 2) return status::done;
        if (how == broken) return status::remote;
        for (int ms = 0; ms < (how == late ? 20 : 5000) && !over; ++ms) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return status::done;
      };
    std::string said;
    try {
      if (evaluates) e.evaluate(batch);
      else e.step(batch, 0.125);
    } catch (error const& x) {
      said = x.what();
    }
    over = true;
    if (how == late) {
      CHECK(said.empty());
      continue;
    }
    INFO(said);
    CHECK(said.find("in task ") != said.npos);
    if (how == too_late) {
      CHECK(said.find("waits in ") != said.npos);
      CHECK(said.find(" number ") != said.npos);
      CHECK(said.find("for more than 250 ms") != said.npos);
    } else {
      CHECK(said.find(how == refused ? "NCCL says: internal error" : "NCCL says: remote process exited") != said.npos);
      CHECK(said.find("rank 2") != said.npos);
    }
    CHECK(e.failed());
    CHECK_THROWS_WITH_AS(e.step(batch, 0.125), doctest::Contains("has failed before"), error);
  }
}

TEST_CASE("what a kernel meets stops every rank, with the rank's own words") {
  tidy const at_the_end;
  ranks::world h(3, launch{});
  tensorpar::exec::traffic const t{{{0, 1, 2}}, {}};
  auto const said = on_ranks<ranks>(h, t, [&](ranks& c) {
    tensorpar::exec::detail::arena_memory<queued_host> const room(4, c.queue());
    auto* const x = reinterpret_cast<float*>(room.data());
    if (c.rank() == 1) throw error("index 12 is out of range", "embedding", "0 to 7");
    c.all_reduce(c.make_group(view(first(3))), x, x, 1);
    c.drain();
  });
  CHECK(all_say(said, {"index 12 is out of range"}));
  CHECK(h.failed_rank() == 1);
}

TEST_CASE("messages of several widths, asked for in another order than they are sent in") {
  tidy const at_the_end;
  ranks::world h(2, launch{});
  tensorpar::exec::traffic const t{{}, {{0, 1, 4, 5, 2}, {0, 1, 5, 3, 8}, {0, 1, 6, 3, 4}}};
  auto const said = on_ranks<ranks>(h, t, [&](ranks& c) {
    bfloat16 a[5];
    double b[3];
    float d[3];
    bool const sends = c.rank() == 0;
    for (int i = 0; i < 5; ++i) a[i] = static_cast<float>(sends ? i + 1 : 0);
    for (int i = 0; i < 3; ++i) b[i] = sends ? i + 0.25 : 0, d[i] = sends ? static_cast<float>(i) + 0.5f : 0;
    if (sends) {
      CHECK_THROWS_WITH_AS(c.send(1, 4, d, 5), doctest::Contains("5 elements of 2 bytes with tag 4, which `prepare` was told of"), error);
      c.send(1, 4, a, 5);
      c.send(1, 5, b, 3);
      c.send(1, 6, d, 3);
    } else {
      c.receive(0, 6, d, 3);
      CHECK_THROWS_WITH_AS(c.receive(0, 4, d, 5), doctest::Contains("5 elements of 2 bytes with tag 4, but rank 1 expects 5 of 4"), error);
      c.receive(0, 5, b, 3);
      c.receive(0, 4, a, 5);
    }
    c.drain();
    for (int i = 0; i < 5; ++i) CHECK(static_cast<float>(a[i]) == static_cast<float>(i + 1));
    for (int i = 0; i < 3; ++i) { CHECK(b[i] == i + 0.25); CHECK(d[i] == static_cast<float>(i) + 0.5f); }
  });
  CHECK(joined(said) == "");
}

TEST_CASE("hosts do not wait for one another in a circle: what is sent early and asked for late") {
  tidy const at_the_end;
  ranks::world h(3, launch{}, std::chrono::seconds(5));
  tensorpar::exec::traffic const t{{}, {{0, 2, 1, 1, 4}, {0, 1, 2, 1, 4}, {1, 2, 3, 1, 4}}};
  auto const said = on_ranks<ranks>(h, t, [&](ranks& c) {
    float x[2] = {3, 0};
    if (c.rank() == 0) {
      c.send(2, 1, x, 1);
      c.send(1, 2, x, 1);
    } else if (c.rank() == 1) {
      c.receive(0, 2, x + 1, 1);
      c.send(2, 3, x + 1, 1);
    } else {
      c.receive(1, 3, x, 1);
      c.receive(0, 1, x + 1, 1);
    }
    c.drain();                                             // queues read and write x
    if (c.rank() == 2) CHECK((x[0] == 3 && x[1] == 3));
  });
  CHECK(joined(said) == "");
}

TEST_CASE("groups and messages that nobody announced, or that do not fit, are named") {
  tidy const at_the_end;
  ranks::world h(3, launch{});
  tensorpar::exec::traffic const t{{{0, 1}}, {{0, 1, 4, 2, 4}, {0, 1, 5, 2, 4}}};
  auto const said = on_ranks<ranks>(h, t, [&](ranks& c) {
    float x[4] = {};
    CHECK_THROWS_WITH_AS(c.make_group(view(first(3))), doctest::Contains(("rank " + number(c.rank()) + " has no group {0,1,2}").c_str()),
                         error);
    CHECK(c.make_group(view({c.rank()})).size() == 1);
    CHECK_THROWS_WITH_AS(c.send(7, 0, x, 1), doctest::Contains("no such rank: 7"), error);
    if (c.rank() == 0) {
      CHECK_THROWS_WITH_AS(c.send(2, 4, x, 2), doctest::Contains("sends 2 elements of 4 bytes with tag 4 to rank 2"), error);
      CHECK_THROWS_WITH_AS(c.send(1, 5, x, 2), doctest::Contains("2 elements of 4 bytes with tag 4, which `prepare` was told of"), error);
      CHECK_THROWS_WITH_AS(c.send(1, 4, x, 3), doctest::Contains("sends 3 elements of 4 bytes with tag 4 to rank 1"), error);
      c.send(1, 4, x, 2);
      c.send(1, 5, x, 2);
    } else if (c.rank() == 1) {
      c.receive(0, 5, x, 2);                              // the other one is kept
      CHECK_THROWS_WITH_AS(c.receive(0, 4, x, 1), doctest::Contains("sends 2 elements of 4 bytes with tag 4, but rank 1 expects 1 of 4"),
                           error);
      c.receive(0, 4, x, 2);
    } else {
      CHECK_THROWS_WITH_AS(c.receive(0, 4, x, 2), doctest::Contains("sends nothing with tag 4 to rank 2"), error);
    }
    c.drain();
  });
  CHECK(joined(said) == "");
}

TEST_CASE("operators of a device of queues are measured by its own clock") {
  computation_graph const g = residual_mlp();
  plan const p = serial_plan(g);
  program const q = unroll(differentiate(g), p, {&compute::teams<float, queued_teams>::workspace});
  tensorpar::cost::profile_table const t = measure_operators<compute::teams<float, queued_teams>>(q, p.cluster,
                                                                                                  {.warm_ups = 0, .samples = 3});
  CHECK(t.size() > 5);
  for (auto const& [key, measured] : t.all()) CHECK(measured.seconds > 0);
}
