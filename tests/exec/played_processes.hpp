// tests/exec/played_processes.hpp - threads that play the processes of a run, over one world of threads
#pragma once
#include "support/spine.hpp"
#include <map>
#include <mutex>
#include <tensorpar/exec/comm/processes.hpp>
#include <thread>

namespace tests {

/// Who has left behind how many operations of all processes, and how many the others have begun.
struct played_departures {
  std::mutex m;
  std::map<int, int> begun, left;
  std::exception_ptr why;
  bool waits_for_nobody() const {
    for (auto const& [gone, last] : left) for (auto const& [process, n] : begun) if (n > last) return true;
    return false;
  }
};

/// One process of several: the ranks with rank % processes == own, all over one world of threads.
struct played_world {
  struct {
    comm::threads_world* world;
    int own, processes;
    played_departures* departures;
  } at;
  static thread_local inline decltype(at) next{};
  explicit played_world(int n) : at(next) { REQUIRE(at.world->size() == n); }
  void fail(std::exception_ptr e, int rank) { at.world->fail(std::move(e), rank); }
  void recover() { at.world->recover(); }                    // asked of a process that has all ranks
  void leave(std::exception_ptr e, int rank, bool behind) {
    if (!behind) return fail(std::move(e), rank);
    std::lock_guard lock(at.departures->m);
    at.departures->left[at.own] = at.departures->begun[at.own];
    if (!at.departures->why) at.departures->why = std::move(e);
    if (at.departures->waits_for_nobody()) fail(at.departures->why, rank);
  }
  std::exception_ptr failure() const { return at.world->failure(); }
  int failed_rank() const { return at.world->failed_rank(); }
  std::vector<int> local() const {
    std::vector<int> r;
    for (int i = at.own; i < at.world->size(); i += at.processes) r.push_back(i);
    return r;
  }
  // the first ranks of all processes, 0 to processes - 1, meet for them
  template <class Call> void together(Call call) {
    {
      std::lock_guard lock(at.departures->m);
      ++at.departures->begun[at.own];
      if (at.departures->waits_for_nobody()) fail(at.departures->why, at.own);
    }
    comm::threads c(*at.world, at.own);
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
struct played_rank : comm::threads {
  using world = played_world;
  played_rank(world& h, int rank) : comm::threads(*h.at.world, rank) {}
};

/// work(process) on a thread per process. What they threw, by process.
template <class Work> std::vector<std::string> run_processes(comm::threads_world& world, int processes, Work const& work) {
  std::vector<std::string> said(static_cast<std::size_t>(processes));
  played_departures departures;
  std::vector<std::thread> all;
  for (int i = 0; i < processes; ++i)
    all.emplace_back([&, i] {
      played_world::next = {&world, i, processes, &departures};
      try {
        work(i);
      } catch (std::exception const& e) {
        said[static_cast<std::size_t>(i)] = e.what();
        world.fail(std::current_exception(), i);
      }
    });
  for (std::thread& t : all) t.join();
  return said;
}

}  // namespace tests
