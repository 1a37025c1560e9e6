// tests/exec/mpi/world.cpp - what holds an MPI run together, alone: session, waits, groups
#include "session.hpp"
#include "support/fake_nccl.hpp"
#include <doctest/doctest.h>
#include <tensorpar/exec/comm/mpi_session.hpp>
#include <tensorpar/exec/comm/mpi_watch.hpp>
#include <tensorpar/exec/comm/mpi_world.hpp>
#include <tensorpar/exec/comm/world_maker.hpp>
#include <tensorpar/exec/nccl/by_mpi.hpp>
#include <tensorpar/exec/nccl/endpoint.hpp>

using namespace tensorpar;
using tests::mpi;

TEST_CASE("a session knows its process and passes on what main returns; error codes speak MPI's words") {
  int rank = -1, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  CHECK(mpi().rank() == rank);
  CHECK(mpi().size() == size);
  CHECK(mpi().run([] { return 7; }) == 7);
  comm::detail::mpi_check(MPI_SUCCESS, "nothing");
  CHECK_THROWS_WITH_AS(comm::detail::mpi_check(MPI_ERR_RANK, "MPI_Send"), doctest::Contains("MPI says: "), error);
}

TEST_CASE("a wait says what for, and whom it expects") {
  std::vector<int> const some{0, 2, 5};
  comm::mpi_wait const group{"all_reduce", &some, 3, -1, 0}, message{"receive", nullptr, 0, 4, 9};
  CHECK(group.text(2) == "rank 2 waits in all_reduce number 3 of group {0,2,5}");
  CHECK(group.expected(2) == std::vector<int>{0, 5});
  CHECK(message.text(1) == "rank 1 waits in receive from rank 4 with tag 9");
  CHECK(message.expected(1) == std::vector<int>{4});
}

TEST_CASE("a watch waits until what it waits for is there") {
  mpi();
  comm::mpi_watch w(MPI_COMM_WORLD, std::chrono::seconds(20));
  CHECK(w.size() == mpi().size());
  std::vector<int> all;
  for (int i = 0; i < w.size(); ++i) all.push_back(i);
  int turns = 0;
  w.wait({"something", &all, 1, -1, 0}, [&] { return ++turns == 50; });
  CHECK(turns == 50);
  int version = 0, minor = 0;
  w.call("MPI_Get_version", [&] { return MPI_Get_version(&version, &minor); });
  CHECK(version >= 3);
  CHECK(!w.failure());
  CHECK(w.failed_rank() == -1);
}

TEST_CASE("a world makes a group once, counts its operations, and compares what members mean") {
  comm::mpi_world h(mpi().size());
  int const me = h.rank(), n = h.size();
  std::vector<int> all, own{me};
  for (int i = 0; i < n; ++i) all.push_back(i);
  auto& everyone = h.group_of({all.data(), n});
  auto& alone = h.group_of({own.data(), 1});
  CHECK(everyone.index == me);
  CHECK(&everyone == &h.group_of({all.data(), n}));
  CHECK(&alone == &h.group_of({own.data(), 1}));
  CHECK((&alone == &everyone) == (n == 1));
  u64 const before = everyone.sequence;
  h.open(everyone, comm::mpi_world::call::all_gather, 5, 4);
  CHECK(everyone.sequence == before + 1);
  if (n > 1) CHECK(everyone.calls == std::vector<std::array<i64, 4>>(static_cast<std::size_t>(n), {3, 5, 4, -1}));
  CHECK(comm::mpi_world::name_of(comm::mpi_world::call::all_gather) == std::string("all_gather"));
  CHECK(h.last_tag() >= 32766);
}

TEST_CASE("ranks of NCCL that MPI has started: one id for all, one rank in each process") {
  using nccl = comm::basic_nccl<tests::fake_nccl, tests::queued_host>;
  static_assert(exec::world_maker<comm::by_mpi<nccl>, nccl>);
  comm::by_mpi<nccl> const make{std::chrono::seconds(5)};
  int const rank = mpi().rank(), size = mpi().size();
  tests::fake_nccl::ids = static_cast<u64>(100 * (rank + 1));            // every process would choose another
  nccl::world h = make(size);
  CHECK(h.deadline() == std::chrono::seconds(5));
  CHECK(h.id().number == 101);
  CHECK(h.size() == size);
  CHECK(h.local() == std::vector<int>{rank});
  CHECK(nccl(h, rank, tests::queued_host{}).rank() == rank);
  CHECK_THROWS_WITH_AS(make(size + 1), doctest::Contains("one process per device"), error);
}
