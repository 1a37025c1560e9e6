// tensorpar/exec/step/joined_run.hpp - a run as one of its processes sees it: its world, its devices, and
// what all of them must have alike
#pragma once
#include <exception>
#include <string>
#include <tensorpar/exec/comm/agreement.hpp>
#include <tensorpar/exec/comm/departure.hpp>
#include <tensorpar/exec/comm/processes.hpp>
#include <tensorpar/exec/step/given_values.hpp>
#include <tensorpar/exec/step/step_check.hpp>
#include <tensorpar/exec/step/task_errors.hpp>
#include <vector>

namespace tensorpar::exec::detail {

/// Part of an executor, which says in its own words what these do. Where there is one process alone nobody is
/// asked.
template <class World> struct joined_run {
  World world;
  std::vector<int> local;                           // the devices of this process
  int devices;                                      // of all
  detail::departure<World> departure{world, local[0]};
  // where there are several processes: what this one was given
  given_values content;
  u64 steps = 0, seed = 0;
  std::exception_ptr failure;                       // the first

  /// Throws `error` unless the world joins so many ranks.
  template <class Make>
  joined_run(int ranks, Make const& make)
      : world(make(ranks)), local(local_ranks(world, ranks)), devices(ranks) {}

  bool alone() const { return static_cast<int>(local.size()) == devices; }

  /// Calls f() on every process, see `executor::together`. `g`: whose parameters and states the facts name.
  template <class F>
  void together(computation_graph const& g, std::string const& where, F const& f, bool anew) {
    if (alone()) return void(f());
    std::vector<shared_fact> all;
    std::exception_ptr mine;
    departure.together(false);
    try { all = f(); } catch (...) { mine = std::current_exception(); }
    if (!anew) all.insert(all.begin(), {{"step", steps}, {"seed", seed}});
    u64 const digest = core::hasher{}.add(digest_of(all)).add(anew ? 0 : content.digest()).value();
    departure.together(true);
    agree(world, {local, devices}, mine, digest, [&] {
      if (!anew) for (shared_fact& x : content.facts(g)) all.push_back(std::move(x));
      return all;
    }, where);
    departure.together(false);
  }
  /// The bytes of the process that leads replace everybody's.
  void hear_leader(void* p, std::size_t bytes) {
    departure.together(true);
    share(world, 0, p, bytes);
  }
  /// What every process asks before it runs anything. Where it throws all are as they were, unless the world
  /// itself has failed.
  template <class F> void begin(computation_graph const& g, char const* where, F const& check) {
    require_alive(failure);
    try { together(g, where, check, false); } catch (...) {
      if (world.failure()) failure = std::current_exception();
      throw;
    }
  }
  /// Another process may fail in this.
  template <class F> void attempt(F const& f) {
    try { f(); } catch (...) {
      failure = std::current_exception();
      world.fail(failure, local[0]);                         // the others may wait for this one
      throw;
    }
  }
  /// Throws what has stopped the tasks. `harmless`: nothing that is kept has changed, and the world was well
  /// before; the run goes on then where it is of one process and its world can recover.
  [[noreturn]] void throw_failure(program const& q, std::vector<worker_place> const& at, bool harmless) {
    int first = -1;
    if constexpr (requires { world.failed_rank(); }) first = world.failed_rank();
    std::exception_ptr const all = world.failure();
    bool recovered = false;
    if constexpr (requires { world.recover(); })
      if ((recovered = harmless && alone())) world.recover();
    try { rethrow_with_tasks(q, all, first, at); } catch (...) {
      if (!recovered) failure = std::current_exception();
      throw;
    }
  }
};

}  // namespace tensorpar::exec::detail
