// tensorpar/search/intra/machine_parts.hpp - neighbouring devices of a machine as a machine of their own, and
// which of them are worth a search
#pragma once
#include <algorithm>
#include <tensorpar/core/index.hpp>
#include <tensorpar/cost/ask.hpp>
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/ir/machine/machine.hpp>
#include <tensorpar/plan/pipeline.hpp>

namespace tensorpar::search::detail {

/// Devices first .. first + count - 1 alone, numbered from 0. A level whose groups they do not respect is
/// left out, so that prices are those of the next slower one.
inline machine part_of(machine const& on, device_range d) {
  machine r{on.name, on.kinds, {}, {}, on.lane_per_link};
  r.device.assign(on.device.begin() + d.first, on.device.begin() + d.first + d.count);
  for (link_level l : on.links) {
    bool const whole = d.first / l.group == (d.first + d.count - 1) / l.group;
    if (!whole && d.first % l.group) continue;
    if (whole) l.group = d.count;
    r.links.push_back(l);
    if (whole) break;
  }
  return r;
}

/// The whole machine first, then, where it has devices of several kinds, the neighbours of one kind; where
/// these are few, also those of some kinds. Parts that look alike are named once. O(devices + parts).
inline std::vector<device_range> ranges_by_kind(machine const& on) {
  std::vector<device_range> runs;
  for (int d = 0; d < on.size(); ++d)
    if (d > 0 && on.device[idx(d)] == on.device[idx(d) - 1])
      ++runs.back().count;
    else runs.push_back({d, 1});
  std::size_t const together = runs.size() <= 4 ? runs.size() : 1;
  std::vector<device_range> r{{0, on.size()}};
  std::vector<machine> seen;
  for (std::size_t n = together; n > 0 && runs.size() > 1; --n)
    for (std::size_t i = 0; i + n <= runs.size() && n < runs.size(); ++i) {
      device_range const g{runs[i].first, runs[i + n - 1].first + runs[i + n - 1].count - runs[i].first};
      machine m = part_of(on, g);
      if (std::find(seen.begin(), seen.end(), m) != seen.end()) continue;
      seen.push_back(std::move(m));
      r.push_back(g);
    }
  return r;
}

/// Fewer of the devices from the first one on, most first: powers of two, halves of halves, 3, one whole
/// group of links of every level, and where a level has up to 16 of them any number of groups.
inline std::vector<int> fewer_than(machine const& on, device_range all) {
  std::vector<int> r;
  for (int k = 2; k < all.count; k *= 2) r.push_back(k);
  for (int k = all.count; k % 2 == 0 && k > 4; k /= 2) r.push_back(k / 2);
  for (link_level const& l : on.links)
    if (l.group > 1 && l.group < all.count && all.first % l.group == 0) {
      bool const few = all.count <= 16 * l.group;
      for (i64 n = l.group; n < all.count && (few || n == l.group); n += l.group)
        r.push_back(static_cast<int>(n));
    }
  if (all.count > 3) r.push_back(3);
  std::sort(r.begin(), r.end(), std::greater<>{});
  r.erase(std::unique(r.begin(), r.end()), r.end());
  return r;
}

/// Seconds of all operators of a step on one device of each kind.
template <class M>
std::vector<double> seconds_alone(training_graph const& t, machine const& on, M const& model,
                                  int micro_batches, i64 scalar_bytes) {
  std::vector<double> r;
  std::vector<shape> in, out;
  for (device_kind const& k : on.kinds) {
    double& sum = r.emplace_back(0);
    for (graph_node const& n : t.graph.nodes) {
      in.clear();
      out.clear();
      for (int x : n.in) in.push_back(t.graph.type(x));
      for (int x : n.out) out.push_back(t.graph.type(x));
      double const s = cost::detail::ask(model, cost::compute_query{n.op,
                                                {in.data(), static_cast<int>(in.size())},
                                                {out.data(), static_cast<int>(out.size())},
                                                scalar_bytes,
                                                k});
      sum += (n.phase == step_phase::update ? 1 : micro_batches) * s;
    }
  }
  return r;
}
/// Seconds of a step if its operators were shared so that no device ever waits: with fewer devices it takes
/// longer.
inline double shared_evenly(std::vector<double> const& alone, machine const& on, device_range d) {
  double rate = 0;
  for (int k = d.first; k < d.first + d.count; ++k)
    rate += 1 / alone[idx(on.device[idx(k)])];
  return 1 / rate;
}

/// What no step of these operators is below, whatever its stages, its micro-batches and what it recomputes:
/// all that they compute on the whole batch, shared so that no device ever waits. Precondition: neither more
/// devices nor more micro-batches make an operator take less of their time together.
template <class M>
double work_bound(training_graph const& whole_batch, machine const& on, M const& model, i64 scalar_bytes) {
  std::vector<double> const alone = seconds_alone(whole_batch, on, model, 1, scalar_bytes);
  return shared_evenly(alone, on, {0, on.size()}) * (1 - 1e-9);
}

}  // namespace tensorpar::search::detail
