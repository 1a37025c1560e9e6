// tests/exec/mpi/collectives.cpp - the laws of a communicator, by the processes of an MPI run
#include "session.hpp"
#include "support/laws/communicator.hpp"
#include <tensorpar/exec/comm/mpi.hpp>
#include <tensorpar/exec/comm/processes.hpp>

using namespace tensorpar;
using tests::mpi;

namespace {
std::vector<int> ranks(int from, int to, int step = 1) {
  std::vector<int> r;
  for (int i = from; i < to; i += step) r.push_back(i);
  return r;
}
core::slice<int> view(std::vector<int> const& v) { return {v.data(), static_cast<int>(v.size())}; }

template <class Element> std::string laws(std::vector<i64> const& counts) {
  comm::mpi_world h(mpi().size());
  comm::mpi c(h, h.rank());
  auto const g = c.make_group(view(ranks(0, c.size())));
  std::string broken;
  for (i64 n : counts) broken += tests::broken_collective_laws<Element>(c, g, n, static_cast<u64>(n));
  return broken + tests::broken_message_laws<Element>(c, counts.back(), 5);
}
}  // namespace

static_assert(exec::full_communicator<comm::mpi, float> && exec::full_communicator<comm::mpi, prime_field> &&
              exec::spans_processes<comm::mpi_world>);

TEST_CASE("collectives keep their laws for any element, in few bytes and many") {
  CHECK(laws<float>({0, 1, 5, 700, 30000}) == "");
  CHECK(laws<double>({3, 600, 20001}) == "");
  CHECK(laws<prime_field>({1, 2, 999}) == "");
  CHECK(laws<std::int32_t>({9, 4000}) == "");
}

TEST_CASE("disjoint and overlapping groups work side by side") {
  comm::mpi_world h(mpi().size());
  comm::mpi c(h, h.rank());
  auto const everyone = c.make_group(view(ranks(0, c.size())));
  auto const mine = ranks(h.rank() % 2, c.size(), 2);
  auto const half = c.make_group(view(mine)), alone = c.make_group(view({h.rank()}));
  CHECK(half.size() == static_cast<int>(mine.size()));
  CHECK(half.member(half.index()) == h.rank());
  CHECK(alone.size() == 1);
  std::string broken;
  for (u64 turn = 0; turn < 10; ++turn) {
    broken += tests::broken_collective_laws<float>(c, half, 33, turn);
    broken += tests::broken_collective_laws<float>(c, alone, 7, turn);
    if (turn % 3 == 0) broken += tests::broken_collective_laws<double>(c, everyone, 4, turn);
    if (h.rank() == 0 || h.rank() + 1 == c.size()) {                          // a group that some are in
      std::vector<int> const ends = c.size() > 1 ? std::vector<int>{0, c.size() - 1} : std::vector<int>{0};
      broken += tests::broken_collective_laws<std::int32_t>(c, c.make_group(view(ends)), 5, turn);
    }
  }
  CHECK(broken == "");
}

TEST_CASE("what one process knows is shared, and sums of numbers that one has each are exact") {
  comm::mpi_world h(mpi().size());
  CHECK(h.local() == std::vector<int>{h.rank()});
  for (int from = 0; from < h.size(); ++from) {
    double x[3]{1.0 * h.rank(), 2, 3.5 + h.rank()};
    h.share(from, x, sizeof x);
    CHECK(x[0] == from);
    CHECK(x[2] == 3.5 + from);
  }
  std::vector<double> own(static_cast<std::size_t>(h.size()), 0);
  own[static_cast<std::size_t>(h.rank())] = 0.1 * (h.rank() + 1);
  h.add_up(own.data(), h.size());
  for (int i = 0; i < h.size(); ++i) CHECK(own[static_cast<std::size_t>(i)] == 0.1 * (i + 1));
}

TEST_CASE("wrong ranks, groups, tags and sizes are refused by who asks for them") {
  comm::mpi_world h(mpi().size());
  comm::mpi c(h, h.rank());
  int const n = h.size(), other = h.rank() + 1;
  CHECK_THROWS_WITH_AS(comm::mpi(h, other), doctest::Contains("is another process's"), error);
  CHECK_THROWS_WITH_AS(comm::mpi_world(n + 1), doctest::Contains("one process per device: mpirun -n"), error);
  CHECK_THROWS_WITH_AS(c.make_group(view({n})), doctest::Contains("ascending ranks"), error);
  CHECK_THROWS_WITH_AS(c.make_group(view({})), doctest::Contains("must be a member"), error);
  float x = 1;
  CHECK_THROWS_WITH_AS(c.send(n, 0, &x, 1), doctest::Contains("no such rank"), error);
  CHECK_THROWS_WITH_AS(c.receive(0, -1, &x, 1), doctest::Contains("tag -1"), error);
  CHECK_THROWS_WITH_AS(c.send(0, 0, &x, i64{1} << 30), doctest::Contains("1073741824 elements"), error);
  CHECK_THROWS_WITH_AS(c.receive(0, 0, &x, i64{1} << 30), doctest::Contains("at most 536870911"), error);
  char** none = nullptr;
  int zero = 0;
  CHECK_THROWS_WITH_AS(comm::mpi_session(zero, none), doctest::Contains("started before"), error);
  CHECK(!h.failure());
  c.barrier(c.make_group(view(ranks(0, n))));                                 // all of that was nobody else's business
}
