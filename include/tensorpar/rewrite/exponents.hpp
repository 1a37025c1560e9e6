// tensorpar/rewrite/exponents.hpp - degrees that satisfy what the spreads of a rule require
#pragma once
#include <tensorpar/rewrite/spread_system.hpp>

namespace tensorpar {
namespace detail {

/// A random solution of the requirements with unknowns in [0, most], parameters in [least, most]: depth first; a requirement of which one
/// unknown is left open decides or bounds it. Mostly as small as may be. nullopt: there is none, or none was found within `steps`.
class exponent_search {
  spread_system const& s_;
  int least_, most_, steps_;
  std::vector<int> x_, trail_;           // -1: open; in which order they were given values

  int low(std::size_t i) const { return s_.unknowns[i].kind == term_kind::parameter ? least_ : 0; }
  bool give(std::size_t i, int v) {
    if (v < low(i) || v > most_) return false;
    x_[i] = v;
    trail_.push_back(static_cast<int>(i));
    return true;
  }
  bool propagate() {
    for (bool changed = true; changed;) {
      changed = false;
      for (degree_requirement const& q : s_.requirements) {
        int least = 0, greatest = 0, open = 0, c_open = 0, known = 0;
        std::size_t which = 0;
        for (std::size_t i = 0; i < x_.size(); ++i) {
          int const c = q.form.at(i);
          if (!c) continue;
          if (x_[i] >= 0) { known += c * x_[i]; continue; }
          ++open;
          which = i;
          c_open = c;
          least += c * (c > 0 ? low(i) : most_);
          greatest += c * (c > 0 ? most_ : low(i));
        }
        if (known + greatest < 0 || (q.equal && known + least > 0)) return false;
        if (!q.equal || open != 1) continue;
        if (known % c_open || !give(which, -known / c_open)) return false;
        changed = true;
      }
    }
    return true;
  }
  bool search(auto& draw) {
    std::size_t const mark = trail_.size();
    auto undo = [&] { while (trail_.size() > mark) { x_[static_cast<std::size_t>(trail_.back())] = -1; trail_.pop_back(); } };
    if (!propagate()) { undo(); return false; }
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < x_.size(); ++i) if (x_[i] < 0) open.push_back(i);
    if (open.empty()) return true;
    std::size_t const i = open[draw() % open.size()];
    int const choices = most_ - low(i) + 1;
    int const first = draw() % 5 < 3 || choices == 1 ? 0 : 1 + static_cast<int>(draw() % static_cast<unsigned>(choices - 1));
    for (int k = 0; k < choices && --steps_ > 0; ++k) {
      std::size_t const here = trail_.size();
      give(i, low(i) + (first + k) % choices);
      if (search(draw)) return true;
      while (trail_.size() > here) { x_[static_cast<std::size_t>(trail_.back())] = -1; trail_.pop_back(); }
    }
    undo();
    return false;
  }

 public:
  exponent_search(spread_system const& s, int least, int most, int steps)
      : s_(s), least_(least), most_(most), steps_(steps), x_(s.unknowns.size(), -1) {}
  std::optional<std::vector<int>> run(auto& draw) {
    if (!search(draw)) return std::nullopt;
    return x_;
  }
};
inline std::optional<std::vector<int>> random_exponents(spread_system const& s, int least, int most, auto& draw, int steps = 400) {
  return exponent_search(s, least, most, steps).run(draw);
}

}  // namespace detail
}  // namespace tensorpar
