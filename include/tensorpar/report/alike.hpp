// tensorpar/report/alike.hpp - operators that share a line: many of one kind with one sharding
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/report/summary.hpp>

namespace tensorpar::report {

/// Above this many operators, those that are alike share a line.
inline constexpr std::size_t explain_lines = 40;

namespace detail {

struct alike {
  operator_summary sum;            // of the first, with times and bytes of all
  std::vector<std::size_t> which;  // ascending
  std::string label() const {
    if (which.size() > 1) return std::to_string(which.size()) + " x";
    return sum.name.empty() ? "#" + std::to_string(sum.node) : sum.name;
  }
};
inline void accumulate(operator_summary& to, operator_summary const& o) {
  to.compute += o.compute;
  to.move += o.move;
  for (std::size_t k = 0; k < o.bytes.size(); ++k) to.bytes[k] += o.bytes[k];
}
inline bool same_choice(operator_summary const& a, operator_summary const& b) {
  return a.op == b.op && a.sharding == b.sharding && a.devices == b.devices;
}
/// Groups in order of their first member; same(i, j) is an equivalence. Without `join` every operator is
/// alone. O(operators * groups).
inline std::vector<alike> joined(std::vector<operator_summary> const& all, bool join, auto const& same) {
  std::vector<alike> r;
  for (std::size_t i = 0; i < all.size(); ++i) {
    alike* found = nullptr;
    if (join)
      for (alike& a : r)
        if (!found && same(a.which.front(), i)) found = &a;
    if (found)
      accumulate(found->sum, all[i]);
    else
      found = &r.emplace_back(alike{all[i], {}});
    found->which.push_back(i);
  }
  return r;
}

inline std::string moved_text(std::array<double, move_kinds> const& bytes) {
  std::string r;
  for (int k = 0; k < move_kinds; ++k)
    if (bytes[idx(k)] > 0)
      r += (r.empty() ? "" : ", ") + move_text(static_cast<ir::reshard_kind>(k)) + " " +
           bytes_text(bytes[idx(k)]);
  return r.empty() ? "-" : r;
}

}  // namespace detail

}  // namespace tensorpar::report
