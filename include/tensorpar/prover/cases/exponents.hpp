// tensorpar/prover/cases/exponents.hpp - degrees that satisfy what the shardings of a rule require
#pragma once
#include <algorithm>
#include <cstdlib>
#include <random>
#include <tensorpar/core/index.hpp>
#include <tensorpar/prover/cases/sharding_system.hpp>

namespace tensorpar::prover {
namespace detail {

/// How often this prime divides any number of the requirements, at most.
inline int max_of_numbers(sharding_system const& s, i64 prime) {
  int most = 0;
  for (degree_requirement const& q : s.requirements) most = std::max(most, std::abs(q.form.of_number(prime)));
  return most;
}

/// A random solution of the requirements for one prime with unknowns in [0, most], parameters in [least,
/// most]: depth first; a requirement of which one unknown is left open decides or bounds it. Mostly as small
/// as may be. nullopt: there is none, or none was found within `steps`.
class exponent_search {
  sharding_system const& s_;
  int least_, most_, steps_;
  i64 prime_;
  bool numbers_;                         // count for this prime: bounds are worked out before a choice
  std::vector<int> x_, trail_;           // -1: open; in which order they were given values

  int low(std::size_t i) const { return s_.unknowns[i].kind == rewrite::term_kind::parameter ? least_ : 0; }
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
        int least = 0, greatest = 0, open = 0, c_open = 0, known = q.form.of_number(prime_);
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
  /// What each unknown may still be, as far as single requirements tell. false: nothing.
  bool tighten(std::vector<int>& low, std::vector<int>& high) const {
    for (std::size_t i = 0; i < x_.size(); ++i) {
      low[i] = x_[i] >= 0 ? x_[i] : this->low(i);
      high[i] = x_[i] >= 0 ? x_[i] : most_;
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (degree_requirement const& q : s_.requirements)
        for (int sign : {1, -1}) {         // sign * form >= 0
          if (sign < 0 && !q.equal) continue;
          int greatest = sign * q.form.of_number(prime_);
          for (std::size_t i = 0; i < x_.size(); ++i)
            if (int const c = sign * q.form.at(i)) greatest += c * (c > 0 ? high[i] : low[i]);
          if (greatest < 0) return false;
          for (std::size_t i = 0; i < x_.size(); ++i) {
            int const c = sign * q.form.at(i);
            int const least = c > 0 ? high[i] - greatest / c : low[i],
                      most = c < 0 ? low[i] + greatest / -c : high[i];
            if (least <= low[i] && most >= high[i]) continue;
            greatest = -1;                 // worked out again in the next round
            changed = true;
            low[i] = std::max(low[i], least);
            high[i] = std::min(high[i], most);
            if (low[i] > high[i]) return false;
            break;
          }
        }
    }
    return true;
  }
  bool satisfied(std::vector<int> const& x) const {
    for (degree_requirement const& q : s_.requirements) {
      int value = q.form.of_number(prime_);
      for (std::size_t i = 0; i < x.size(); ++i) value += q.form.at(i) * x[i];
      if (q.equal ? value != 0 : value < 0) return false;
    }
    return true;
  }
  bool search(auto& draw) {
    std::size_t const mark = trail_.size();
    auto undo = [&] {
      while (trail_.size() > mark) {
        x_[idx(trail_.back())] = -1;
        trail_.pop_back();
      }
    };
    if (!propagate()) { undo(); return false; }
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < x_.size(); ++i) if (x_[i] < 0) open.push_back(i);
    if (open.empty()) return true;
    std::vector<int> least(x_.size()), greatest(x_.size());
    if (numbers_ && !tighten(least, greatest)) { undo(); return false; }
    if (numbers_ && draw() % 4 == 0 && satisfied(least)) { x_ = std::move(least); return true; }
    std::size_t const i = open[draw() % open.size()];
    int const from = numbers_ ? least[i] : low(i), choices = (numbers_ ? greatest[i] : most_) - from + 1;
    int const first = draw() % 5 < 3 || choices == 1
                          ? 0
                          : 1 + static_cast<int>(draw() % static_cast<unsigned>(choices - 1));
    for (int k = 0; k < choices && --steps_ > 0; ++k) {
      std::size_t const here = trail_.size();
      give(i, from + (first + k) % choices);
      if (search(draw)) return true;
      while (trail_.size() > here) { x_[idx(trail_.back())] = -1; trail_.pop_back(); }
    }
    undo();
    return false;
  }

 public:
  exponent_search(sharding_system const& s, int least, int most, int steps, i64 prime)
      : s_(s),
        least_(least),
        most_(most),
        steps_(steps),
        prime_(prime),
        numbers_(max_of_numbers(s, prime) > 0),
        x_(s.unknowns.size(), -1) {}
  /// Is there a solution? With numbers the least bounds are tried first: a solution where every requirement
  /// bounds one unknown from below.
  bool any() {
    std::mt19937 draw(1);
    std::vector<int> least(x_.size()), greatest(x_.size());
    return (numbers_ && tighten(least, greatest) && satisfied(least)) || search(draw);
  }
  std::optional<std::vector<int>> run(auto& draw) {
    if (!search(draw)) return std::nullopt;
    return x_;
  }
};
inline std::optional<std::vector<int>> random_exponents(sharding_system const& s, int least, int most,
                                                        auto& draw, int steps = 400,
                                                        i64 prime = degree_form::any_other_prime) {
  return exponent_search(s, least, most, steps, prime).run(draw);
}
}  // namespace detail
}  // namespace tensorpar::prover
