// tensorpar/search/intra/part_list.hpp - the parts of a machine that a search looks at, and those that its
// bound counts
#pragma once
#include <map>
#include <tuple>
#include <tensorpar/core/index.hpp>
#include <tensorpar/search/intra/machine_parts.hpp>

namespace tensorpar::search::detail {

/// On machines of at most so many devices every part is looked at.
inline constexpr int every_part_up_to = 16;

/// A part of a machine, as a machine of its own.
struct machine_part {
  // a plan for it is put here; of count 0: nowhere in a row, it is there for the bound
  device_range at;
  machine as;
  // else another part of as many devices, perhaps of the renumbered machine, is at least as fast
  bool counts = true;
};

/// All of the machine is not among them.
struct part_list {
  std::vector<machine_part> parts;
  // any devices at all are no faster than a part that counts: on one level of links, and of any two kinds one
  // is as fast in everything
  bool every = false;
  bool neighbours = false;      // all neighbours
  bool reordered = false;       // the machine is not numbered with the fastest devices of every group first
};

/// Devices of kind a before those of kind b: the faster ones first, as far as that can be said of kinds.
inline auto speed_of(device_kind const& k, double alone) {
  return std::tuple(alone, -k.flops, -k.memory_bandwidth, k.launch, -k.memory);
}
inline bool as_fast(device_kind const& a, device_kind const& b) {
  return a.flops >= b.flops && a.memory_bandwidth >= b.memory_bandwidth && a.launch <= b.launch &&
         a.memory >= b.memory;
}

/// The same machine numbered so that the faster devices of a group come first, and of equal levels the groups
/// with faster ones; groups that are not full stay where they are. Renumbered machines become the same one.
/// `alone`: seconds of a step by kind. O(devices log devices * levels).
inline machine fastest_first(machine on, std::vector<double> const& alone) {
  using block = std::vector<int>;                                   // ranks of kinds
  std::vector<int> by(on.kinds.size());
  for (std::size_t k = 0; k < by.size(); ++k) by[k] = static_cast<int>(k);
  auto const key = [&](int k) {
    return speed_of(on.kinds[idx(k)], alone[idx(k)]);
  };
  std::sort(by.begin(), by.end(), [&](int a, int b) { return std::pair(key(a), a) < std::pair(key(b), b); });
  std::vector<int> rank(by.size());
  for (std::size_t i = 0; i < by.size(); ++i) {
    bool const same = i > 0 && key(by[i]) == key(by[i - 1]);
    rank[idx(by[i])] =
        same ? rank[idx(by[i - 1])] : static_cast<int>(i);
  }
  std::vector<block> blocks;
  for (int k : on.device) blocks.push_back({rank[idx(k)]});
  std::size_t inner = 1;                                            // devices of a block
  std::vector<i64> groups;
  for (link_level const& l : on.links) groups.push_back(l.group);
  if (groups.empty() || groups.back() < on.size()) groups.push_back(on.size());
  for (i64 g : groups) {
    auto const size = idx(std::min<i64>(g, on.size()));
    if (size <= inner || size % inner) continue;
    std::size_t const each = size / inner;
    std::vector<block> outer;
    for (std::size_t i = 0; i < blocks.size(); i += each) {
      std::size_t const end = std::min(blocks.size(), i + each);
      std::sort(
          blocks.begin() + static_cast<std::ptrdiff_t>(i), blocks.begin() + static_cast<std::ptrdiff_t>(end),
          [](block const& a, block const& b) { return a.size() != b.size() ? a.size() > b.size() : a < b; });
      block& all = outer.emplace_back();
      for (std::size_t k = i; k < end; ++k) all.insert(all.end(), blocks[k].begin(), blocks[k].end());
    }
    blocks = std::move(outer);
    inner = size;
  }
  on.device.clear();
  for (block const& b : blocks) for (int r : b) on.device.push_back(by[idx(r)]);
  return on;
}

/// Equal shares of the groups of every level of a machine of equal devices: so many devices of a group, so
/// many groups of the next level, and so on, as machines. Nothing where groups are not full, and no share
/// that inner links, where faster, could join alike. O(result * levels^2).
inline std::vector<machine> equal_shares(machine const& on) {
  std::vector<i64> most;                                            // of a level: groups of the level before
  i64 before = 1;
  for (link_level const& l : on.links) {
    i64 const group = std::min<i64>(l.group, on.size());
    if (group < before || group % before || on.size() % group) return {};
    most.push_back(group / before);
    before = group;
  }
  if (before != on.size()) return {};
  bool faster = true;                                               // inner links
  for (std::size_t k = 1; k < on.links.size(); ++k)
    faster = faster && on.links[k - 1].bandwidth >= on.links[k].bandwidth &&
             on.links[k - 1].latency <= on.links[k].latency;
  std::vector<machine> r;
  std::vector<i64> take(most.size(), 1);
  for (std::size_t level = 0; level < take.size();) {
    machine m{on.name, on.kinds, {}, {}, on.lane_per_link};
    i64 n = 1;
    bool further_in = false;
    for (std::size_t k = 0; k < take.size(); ++k) {
      if (take[k] == 1) continue;
      for (std::size_t j = 0; j < k; ++j)
        further_in = further_in || (faster && take[j] == 1 && most[j] >= take[k]);
      m.links.push_back(on.links[k]);
      m.links.back().group = n *= take[k];
    }
    m.device.assign(idx(n), on.device.front());
    if (n > 1 && n < on.size() && !further_in) r.push_back(std::move(m));
    for (level = 0; level < take.size() && ++take[level] > most[level]; ++level) take[level] = 1;
  }
  return r;
}

/// What a search on a machine looks at besides. `alone`: seconds of a step by kind of device. Equal devices
/// come first, many first. Of up to 16 devices: all neighbours; of more: neighbours of a kind or some, and
/// fewer of them (`fewer_than`). `nested`: branches of the network fork again
/// (search/intra/nested_forks.hpp), so that of several kinds no order of devices stands for all others.
inline part_list parts_of(machine const& on, std::vector<double> const& alone, bool nested = false) {
  part_list r;
  int const n = on.size();
  auto const known = [&](machine const& m) {
    return std::any_of(r.parts.begin(), r.parts.end(), [&](machine_part const& p) { return p.as == m; });
  };
  auto const put = [&](device_range at, machine as, bool counts) {
    if (!known(as)) r.parts.push_back({at, std::move(as), counts});
  };
  auto const in_order = [&] {
    auto const place = [](machine_part const& p) {
      return std::tuple(!p.as.uniform(), -p.as.size(), !p.counts);
    };
    std::stable_sort(r.parts.begin(), r.parts.end(), [&](machine_part const& a, machine_part const& b) {
      return place(a) < place(b);
    });
  };
  if (n > every_part_up_to) {
    for (device_range const range : ranges_by_kind(on)) {
      if (range.count < n) put(range, part_of(on, range), true);
      for (int k : fewer_than(on, range)) put({range.first, k}, part_of(on, {range.first, k}), true);
    }
    in_order();
    return r;
  }
  r.neighbours = true;
  machine const sorted = fastest_first(on, alone);
  r.reordered = sorted.device != on.device;
  bool const one_level = on.links.size() <= 1 || on.links.front().group >= n;
  // the first n of `sorted` are as fast as any n
  bool ordered = one_level && (on.uniform() || !nested);
  for (int d = 1; d < n; ++d) ordered = ordered && as_fast(sorted.kind_of(d - 1), sorted.kind_of(d));
  r.every = ordered;
  if (on.uniform()) {
    for (int k = n - 1; k > 0; --k) put({0, k}, part_of(on, {0, k}), true);
    for (machine& m : equal_shares(on)) put({0, 0}, std::move(m), true);
    in_order();
    return r;
  }
  for (int k = n - 1; k > 0; --k)
    for (int first = 0; first + k <= n; ++first)
      put({first, k}, part_of(on, {first, k}), !ordered || (!r.reordered && first == 0));
  in_order();
  return r;
}

/// Looks at parts of a machine, one after another. `cost()`: seconds of the best plan there is, or
/// `infinity`. `least(part)`: seconds that no plan on a part is below, found quickly. `attempt(part, bar)`:
/// searches it for a plan of less than `bar` seconds, and returns a bound on all of them. Returns the least
/// bound of all parts (and of `bound`), as far as it is below `cost()`. `by_count`: of any so many devices,
/// where some parts do not count; what is known of the renumbered machine goes in.
template <class Cost, class Least, class Attempt>
double over_parts(part_list const& list, double bound, std::map<int, double>& by_count, Cost const& cost,
                  Least const& least, Attempt const& attempt) {
  for (machine_part const& p : list.parts) {
    double const bar = cost();
    auto const fastest = by_count.find(p.as.size());
    if (!p.counts && fastest != by_count.end() && fastest->second >= bar * (1 - 2e-9)) continue;
    double const quick = least(p);
    double const b = quick >= bar ? quick : attempt(p, bar);
    bound = std::min(bound, b);
    if (p.counts && p.at.count) by_count.try_emplace(p.as.size(), b);
  }
  return bound;
}

}  // namespace tensorpar::search::detail
