// tensorpar/search/joint/rewriting_knobs.hpp - which rules a joint search applies, and how far it goes
#pragma once
#include <vector>

namespace tensorpar::rewrite {
struct rule;
}

namespace tensorpar::search {

/// How far a joint search is.
struct joint_progress {
  int part = 0, parts = 0;               // that is being developed, of those that differ in place
  int candidates = 0;                    // graphs priced so far
  double least = 0;                      // seconds of the cheapest graph of this part so far
};

/// Is told before every graph that is priced, by the calling thread; where it says no, the best of those that
/// are there is mapped. The result is valid however early that is.
struct joint_watch {
  virtual ~joint_watch() = default;
  virtual bool go_on(joint_progress const&) = 0;
};

struct backtracking_options {
  // graphs that cost more than so many times the best known one are not developed (Unity, 5.1); 1 or more
  double alpha = 1.05;
  int priced = 200;                      // graphs priced per part, at most; 1 or more
  int growth = 2;                        // operators by which a graph may be larger than the first one
  // rules that do without a concatenation of two do without one of many in one go (distribution.hpp); growth
  // then counts from there
  bool distribute = false;
};

/// Which rules a joint search applies, and how far it goes. For experts.
struct rewriting_knobs {
  backtracking_options rewriting;
  int min_part = 8;                    // operators of a part, at least (Unity, 5.3: k)
  bool split = true;                     // false: the whole graph is one part
  // false: what parts and graphs have in common is worked out for each of them (to measure that)
  bool remember = true;
  std::vector<rewrite::rule> const* rules = nullptr;   // nothing: `substitution_rules()`
  joint_watch* watch = nullptr;          // nobody
};

}  // namespace tensorpar::search
