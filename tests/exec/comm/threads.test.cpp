// tests/exec/comm/threads.test.cpp - collectives over threads: laws for every group, and every way to go wrong ends in an error on all
// ranks
#include "support/laws/communicator.hpp"
#include <atomic>
#include <stdexcept>
#include <tensorpar/exec/comm/threads.hpp>
#include <tensorpar/exec/step/worker_tasks.hpp>

using namespace tensorpar;
using comm::threads;

namespace {

std::vector<int> first(int n) { std::vector<int> r; for (int i = 0; i < n; ++i) r.push_back(i); return r; }
core::slice<int> view(std::vector<int> const& v) { return {v.data(), static_cast<int>(v.size())}; }

/// Runs the laws on the whole world and returns what any rank found broken.
template <class Element> std::string laws_on(int ranks, std::vector<i64> const& counts) {
  threads::world h(ranks);
  std::vector<std::string> found(static_cast<std::size_t>(ranks));
  comm::run_ranks(h, [&](threads& c) {
    std::string& mine = found[static_cast<std::size_t>(c.rank())];
    auto const g = c.make_group(view(first(ranks)));
    for (i64 n : counts) mine += tests::broken_collective_laws<Element>(c, g, n, static_cast<u64>(n));
    mine += tests::broken_message_laws<Element>(c, counts.back(), 5);
  });
  CHECK(h.undelivered() == 0);
  std::string r;
  for (auto const& s : found) r += s;
  return r;
}

/// What every rank's exception says, in order of ranks; "" where none was thrown.
template <class Work> std::vector<std::string> errors_of(threads::world& h, Work work) {
  std::vector<std::string> said(static_cast<std::size_t>(h.size()));
  CHECK_THROWS(comm::run_ranks(h, [&](threads& c) {
    try {
      work(c);
    } catch (std::exception const& e) {
      said[static_cast<std::size_t>(c.rank())] = e.what();
      throw;
    }
  }));
  return said;
}
bool all_say(std::vector<std::string> const& said, std::vector<std::string> const& parts) {
  for (auto const& s : said) {
    if (s != said[0]) return false;
    for (auto const& p : parts) if (s.find(p) == s.npos) { MESSAGE(s); return false; }
  }
  return true;
}

}  // namespace

TEST_CASE("collectives keep their laws for groups of 1 to 8") {
  for (int ranks = 1; ranks <= 8; ++ranks) {
    CHECK(laws_on<float>(ranks, {0, 1, 5, 700}) == "");
    CHECK(laws_on<prime_field>(ranks, {3, 600}) == "");
  }
  CHECK(laws_on<double>(3, {2000}) == "");
  CHECK(laws_on<std::int32_t>(4, {9}) == "");
}

TEST_CASE("disjoint and overlapping groups work side by side") {
  threads::world h(6);
  std::vector<std::string> found(6);
  comm::run_ranks(h, [&](threads& c) {
    std::vector<int> const row = c.rank() < 3 ? std::vector<int>{0, 1, 2} : std::vector<int>{3, 4, 5},
                           column{c.rank() % 3, c.rank() % 3 + 3};
    auto const a = c.make_group(view(row)), b = c.make_group(view(column)), everyone = c.make_group(view(first(6)));
    for (u64 turn = 0; turn < 20; ++turn) {
      auto& mine = found[static_cast<std::size_t>(c.rank())];
      mine += tests::broken_collective_laws<float>(c, a, 33, turn);
      mine += tests::broken_collective_laws<float>(c, b, 7, turn);
      if (turn % 5 == 0) mine += tests::broken_collective_laws<double>(c, everyone, 4, turn);
    }
  });
  for (auto const& s : found) CHECK(s == "");
}

TEST_CASE("group and endpoint know themselves; wrong members are refused") {
  threads::world h(4);
  threads c(h, 2);
  CHECK(c.rank() == 2);
  CHECK(c.size() == 4);
  auto const g = c.make_group(view({1, 2}));
  CHECK(g.size() == 2);
  CHECK(g.index() == 1);
  CHECK(g.member(0) == 1);
  for (std::vector<int> const& wrong : {std::vector<int>{0, 1}, {2, 1}, {2, 2}, {2, 4}, {-1, 2}, {}})
    CHECK_THROWS_AS((void)c.make_group(view(wrong)), error);
  CHECK_THROWS_AS(threads(h, 4), error);
  CHECK_THROWS_AS(threads(h, -1), error);
  CHECK_THROWS_AS(threads::world(0), error);
  float x = 0;
  CHECK_THROWS_AS(c.send(4, 0, &x, 1), error);
  CHECK_THROWS_AS(c.receive(-1, 0, &x, 1), error);
}

TEST_CASE("one rank's error stops all others with that same error") {
  for (int where = 0; where < 3; ++where) {
    threads::world h(5);
    auto const said = errors_of(h, [&](threads& c) {
      auto const g = c.make_group(view(first(5)));
      c.barrier(g);
      if (c.rank() == 3) throw std::domain_error("kernel 17 broke");
      float x[2] = {};
      if (where == 0) c.all_reduce(g, x, x, 2);
      else if (where == 1) c.receive(3, 1, x, 2);
      else for (;;) c.send(c.rank(), 0, x, 1);                 // never waits, yet is stopped
    });
    CHECK(all_say(said, {"kernel 17 broke"}));
    CHECK(h.failed_rank() == 3);
    threads late(h, 0);
    CHECK_THROWS_AS(late.barrier(late.make_group(view({0}))), std::domain_error);
  }
}

TEST_CASE("calls that do not fit each other are an error on every member") {
  auto mismatch = [](auto odd, auto even, std::vector<std::string> const& parts) {
    threads::world h(3);
    auto const said = errors_of(h, [&](threads& c) {
      auto const g = c.make_group(view(first(3)));
      std::vector<float> x(64), y(64);
      c.barrier(g);
      if (c.rank() == 1) odd(c, g, x.data(), y.data());
      else even(c, g, x.data(), y.data());
    });
    CHECK(all_say(said, parts));
  };
  auto reduce8 = [](threads& c, threads::group const& g, float* x, float* y) { c.all_reduce(g, x, y, 8); };
  mismatch([](threads& c, threads::group const& g, float* x, float* y) { c.all_gather(g, x, y, 8); }, reduce8,
           {"operation number 2 of group {0,1,2}", "rank 0 calls all_reduce of 8", "rank 1 calls all_gather of 8"});
  mismatch([](threads& c, threads::group const& g, float* x, float* y) { c.all_reduce(g, x, y, 9); }, reduce8,
           {"all_reduce of 8", "all_reduce of 9"});
  mismatch(
      [](threads& c, threads::group const& g, float*, float*) {
        double d[8] = {};
        c.all_reduce(g, d, d, 8);
      },
      reduce8, {"of 4 bytes", "of 8 bytes"});
  mismatch([](threads& c, threads::group const& g, float* x, float*) { c.broadcast(g, 1, x, 4); },
           [](threads& c, threads::group const& g, float* x, float*) { c.broadcast(g, 0, x, 4); }, {"from member 0", "from member 1"});
  // another group, and one operation missing: nobody can go on, which is seen at once
  mismatch(
      [](threads& c, threads::group const&, float* x, float* y) {
        c.all_reduce(c.make_group(view({0, 1})), x, y, 8);
      },
      reduce8, {"every rank waits", "{0,1}", "{0,1,2}"});
  mismatch([](threads& c, threads::group const&, float* x, float*) { c.receive(0, 5, x, 1); }, reduce8,
           {"every rank waits", "from rank 0 with tag 5"});
}

TEST_CASE("a message of another size than expected is an error") {
  threads::world h(2);
  auto const said = errors_of(h, [&](threads& c) {
    float x[4] = {};
    if (c.rank() == 0) { c.send(1, 3, x, 4); c.barrier(c.make_group(view(first(2)))); }
    else c.receive(0, 3, x, 2);
  });
  CHECK(all_say(said, {"rank 0 sends 4 elements of 4 bytes with tag 3, but rank 1 expects 2"}));
}

TEST_CASE("a member that never comes: the deadline names who waited, in what, and which one") {
  threads::world h(3, std::chrono::milliseconds(60));
  auto const said = errors_of(h, [&](threads& c) {
    auto const g = c.make_group(view(first(3)));
    c.barrier(g);
    float x = 0;
    if (c.rank() != 2) c.all_reduce(g, &x, &x, 1);             // rank 2 goes home
  });
  CHECK(said[0] == said[1]);
  CHECK(said[2] == "");
  for (char const* part : {"waits in all_reduce number 2 of group {0,1,2} for more than 60 ms"})
    CHECK(said[0].find(part) != std::string::npos);
}

TEST_CASE("many small operations under load stay correct") {
  threads::world h(4);
  std::atomic<int> wrong{0};
  comm::run_ranks(h, [&](threads& c) {
    auto const g = c.make_group(view(first(4)));
    std::vector<double> x(1024);
    for (int turn = 0; turn < 300; ++turn) {
      double s = c.rank() + turn;
      c.all_reduce(g, &s, &s, 1);
      if (s != 6 + 4 * turn) ++wrong;
      int const next = (c.rank() + 1) % 4, before = (c.rank() + 3) % 4;
      double out = c.rank(), in = -1;
      c.send(next, turn, &out, 1);
      c.receive(before, turn, &in, 1);
      if (in != before) ++wrong;
      for (double& e : x) e = c.rank();
      c.all_reduce(g, x.data(), x.data(), 1024);
      for (double e : x) if (e != 6) ++wrong;
    }
  });
  CHECK(wrong == 0);
}
