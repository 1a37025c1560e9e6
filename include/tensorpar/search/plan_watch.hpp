// tensorpar/search/plan_watch.hpp - who looks on while `plan_training` searches: what it looks at, and every
// plan that it compares
#pragma once
#include <cstddef>
#include <string>
#include <tensorpar/program/planned.hpp>
#include <utility>
#include <vector>

namespace tensorpar::search {

/// Told of a search while it goes on, by the thread that called `plan_training`. The order is the same for
/// any number of threads. What it throws ends the search.
class plan_watch {
 public:
  virtual ~plan_watch() = default;
  /// The search turns to this: "shardings, 4 micro-batches". `left`: kinds of plans that come after it at
  /// most.
  virtual void looks_at(std::string const& what, std::size_t left) = 0;
  /// One more plan was compared. They are those of `planned::tried`, one after the other.
  virtual void tried(tried_plan const& one) = 0;
};

namespace detail {

/// Tells the watch, if there is one, and counts the kinds of plans that are left.
struct told_watch {
  plan_watch* watch = nullptr;
  std::size_t left = 0;
  void add(std::vector<tried_plan>& all, tried_plan one) const {
    all.push_back(std::move(one));
    if (watch) watch->tried(all.back());
  }
  void begins(std::string const& what) {
    if (left > 0) --left;
    goes_on(what);
  }
  void goes_on(std::string const& what) const {
    if (watch) watch->looks_at(what, left);
  }
};

}  // namespace detail

}  // namespace tensorpar::search
