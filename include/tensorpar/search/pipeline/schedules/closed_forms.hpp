// tensorpar/search/pipeline/schedules/closed_forms.hpp - what each schedule's bubble and memory are known to
// be
#pragma once
#include <algorithm>
#include <vector>

namespace tensorpar::search {

/// Bubble in seconds: idle time of the busiest group, within the iteration or (`of_span`) within the longest
/// span from a group's first pass to its last. Activations by group, in micro-batches of a group's whole
/// share.
struct schedule_form {
  double bubble = 0;
  bool of_span = false;
  std::vector<double> activations;
};

/// A chain of equal stages on p groups, v chunks on each; m micro-batches of one size; seconds F, B, W of a
/// group's whole share.
struct even_chain {
  int p = 1, m = 1, v = 1, k = 1;
  double forward = 1, backward = 1, weights = 0;
  double whole() const { return forward + backward + weights; }
};

namespace detail {
template <class F> std::vector<double> by_group(int p, F const& f) {
  std::vector<double> r;
  for (int s = 0; s < p; ++s) r.push_back(f(s));
  return r;
}
}  // namespace detail

/// GPipe (arXiv 1811.06965): everything is in flight.
inline schedule_form gpipe_form(even_chain const& c) {
  return {(c.p - 1) * c.whole(), false, detail::by_group(c.p, [&](int) { return double(c.m); })};
}
/// 1F1B (arXiv 2104.04473).
inline schedule_form one_f_one_b_form(even_chain const& c) {
  return {(c.p - 1) * c.whole(), false,
          detail::by_group(c.p, [&](int s) { return double(std::min(c.p - s, c.m)); })};
}
/// kFkB with warm-up k(p-s) (arXiv 2303.01675), k dividing m.
inline schedule_form k_f_k_b_form(even_chain const& c) {
  return {(c.p - 1) * c.whole(), false,
          detail::by_group(c.p, [&](int s) { return double(std::min(c.k * (c.p - s), c.m)); })};
}
/// Interleaved 1F1B (arXiv 2104.04473 and 2205.05198), p dividing m.
inline schedule_form interleaved_form(even_chain const& c) {
  return {(c.p - 1) * c.whole() / c.v, false, detail::by_group(c.p, [&](int s) {
            return double(std::min(2 * (c.p - 1 - s) + (c.v - 1) * c.p + 1, c.m * c.v)) / c.v;
          })};
}
/// ZB-H1 (arXiv 2401.10241). Pre: W <= B, p <= m.
inline schedule_form zb_h1_form(even_chain const& c) {
  return {(c.p - 1) * (c.forward + c.backward - c.weights), false,
          detail::by_group(c.p, [&](int) { return double(c.p); })};
}
/// ZB-H2 (the same). Pre: W <= B, 2W <= F + B, 2p - 1 <= m.
inline schedule_form zb_h2_form(even_chain const& c) {
  return {(c.p - 1) * (c.forward + c.backward - 2 * c.weights), true,
          detail::by_group(c.p, [&](int) { return double(2 * c.p - 1); })};
}
/// ZB-V (the same). Pre: F = B = W, 2p <= m.
inline schedule_form zb_v_form(even_chain const& c) {
  return {0, true, detail::by_group(c.p, [&](int) { return double(c.p); })};
}

}  // namespace tensorpar::search
