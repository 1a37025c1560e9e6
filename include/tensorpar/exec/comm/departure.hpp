// tensorpar/exec/comm/departure.hpp - a process that leaves a run by an exception tells the others, who would
// wait for it
#pragma once
#include <exception>
#include <string>
#include <tensorpar/exec/comm/processes.hpp>

namespace tensorpar::exec::detail {

/// A member of what takes part in a run of several processes, made after its world. Where it ends because an
/// exception passes through, or behind one that all processes got and this one caught, and the world has
/// `leave` (exec/comm/processes.hpp), the others are told at once: those that go on alone would wait for it.
/// Where all of them leave at the same operation nobody hears of it.
template <class World> class departure {
  World& world_;
  int rank_;
  int before_ = std::uncaught_exceptions();
  bool together_ = false;

 public:
  departure(World& h, int rank) : world_(h), rank_(rank) {}
  departure(departure const&) = delete;
  departure& operator=(departure const&) = delete;
  /// Would all processes throw what is thrown from now on?
  void together(bool all) { together_ = all; }
  ~departure() {
    if constexpr (requires(std::exception_ptr e) { world_.leave(e, 0, true); })
      if ((together_ || std::uncaught_exceptions() > before_) && !world_.failure()) try {
          world_.leave(std::make_exception_ptr(error(
                         "an exception has ended the part of rank " + std::to_string(rank_) + " in the run",
                         "executor",
                         together_ ? "all leave after a failure of all, or all go on"
                                   : "its own words are in what its process has written")),
                     rank_, together_);
      } catch (...) {                              // the others find out by their deadlines
      }
  }
};

}  // namespace tensorpar::exec::detail
