// tensorpar/check/geometry.hpp - the checker's own meaning of operands, results and reshards: who has, makes
// and gives which box
#pragma once
#include <tensorpar/check/facts.hpp>

namespace tensorpar::detail::check {

inline reading facts::work_out_reading(int run, std::size_t k, int layout) {
  reading r;
  std::vector<char> seen(idx(placed_[idx(layout)].shares), 0);
  std::vector<place> const& at = places_of(layout);
  sharding_work const& w = work_of(run);
  for (std::size_t i = 0; i < w.devices.size(); ++i) {
    int const device = w.devices[i];
    box const& need = w.in(i, k);
    place const* p = on(at, device);
    if (!p) return {{fault::not_written, device, "is not there"}, {}};
    if (!(p->at == need))
      return {{fault::block, device,
               sentence("is needed in part ", spell(need, rank_of(layout)), ", there is ",
                        spell(p->at, rank_of(layout)))},
              {}};
    seen[idx(p->sum)] = 1;
  }
  for (std::size_t i = 0; i < seen.size(); ++i) if (seen[i]) r.shares.push_back(static_cast<i64>(i));
  return r;
}

inline writing facts::work_out_writing(int run, std::size_t k, int layout) {
  writing r;
  std::vector<place> const& at = places_of(layout);
  sharding_work const& w = work_of(run);
  auto wrong = [](fault f, int device, auto const&... what) {
    return writing{{f, device, sentence(what...)}, {}};
  };
  if (w.devices.size() != at.size())
    return wrong(fault::devices, -1, "is written on ", w.devices.size(), " devices, its buffer is on ",
                 at.size());
  r.share.assign(idx(placed_[idx(layout)].shares), -1);
  for (std::size_t i = 0; i < w.devices.size(); ++i) {
    int const device = w.devices[i];
    box const& made = w.out(i, k);
    place const* p = on(at, device);
    if (!p) return wrong(fault::devices, device, "is written where its buffer is not");
    if (!(p->at == made))
      return wrong(fault::block, device, "is left in part ", spell(made, rank_of(layout)),
                   ", its buffer states ", spell(p->at, rank_of(layout)));
    i64& share = r.share[idx(p->sum)];
    if (share >= 0 && share != w.share(i, k))
      return wrong(fault::partial, device, "is left in another share than on its copies");
    share = w.share(i, k);
  }
  std::vector<int> times(idx(w.shares[k]), 0);
  for (i64 share : r.share) if (share >= 0) ++times[idx(share)];
  for (int n : times) {
    if (n > 1) return wrong(fault::added_twice, -1, "is left with a contribution twice");
    if (n < 1) return wrong(fault::missing, -1, "is left without all of its contributions");
  }
  return r;
}

/// Collects what every device holds after a reshard, and compares it with what the buffer states.
class arrivals {
  std::vector<place> const& after_;
  i64 before_shares_;
  int rank_;

 public:
  moving m;
  arrivals(std::vector<place> const& after, i64 shares_after, i64 shares_before, int rank)
      : after_(after), before_shares_(shares_before), rank_(rank) {
    m.from.resize(idx(shares_after));
  }
  bool refuse(fault f, int device, std::string text) {
    if (!m.wrong) m.wrong = {f, device, std::move(text)};
    return false;
  }
  /// Shares that are added up in one place: ascending, or refused if one is there twice.
  bool apart(int device, std::vector<i64>& shares) {
    std::sort(shares.begin(), shares.end());
    return std::adjacent_find(shares.begin(), shares.end()) == shares.end() ||
           refuse(fault::added_twice, device, "is added up with a contribution twice");
  }
  /// This device has this box now, the sum of these shares: ascending, each once.
  bool have(int device, box const& at, std::vector<i64> const& shares) {
    place const* p = on(after_, device);
    if (!p) return refuse(fault::devices, device, "arrives where its buffer is not");
    if (!(p->at == at))
      return refuse(fault::block, device,
                    sentence("arrives as ", spell(at, rank_), ", its buffer states ", spell(p->at, rank_)));
    std::vector<i64>& known = m.from[idx(p->sum)];
    if (!known.empty() && known != shares)
      return refuse(fault::partial, device, "arrives in another share than on its copies");
    if (known.empty()) known = shares;
    return true;
  }
  moving finish() {
    if (m.wrong) return std::move(m);
    std::vector<int> times(idx(before_shares_), 0);
    for (auto const& list : m.from) for (i64 s : list) ++times[idx(s)];
    for (int n : times) {
      if (n > 1) refuse(fault::added_twice, -1, "arrives with a contribution twice");
      if (n < 1) refuse(fault::missing, -1, "arrives without all of its contributions");
    }
    return std::move(m);
  }
};

inline moving facts::work_out_moving(ir::reshard_step const& m, int before, int after) {
  std::vector<place> const a = places_of(before), &b = places_of(after);
  arrivals to(b, placed_[idx(after)].shares, placed_[idx(before)].shares, rank_of(after));
  if (m.kind == ir::reshard_kind::slice) keep(a, b, to);
  else if (m.kind == ir::reshard_kind::exchange) exchange(a, b, to);
  else if (!collective(m, a, before, to)) return std::move(to.m);
  return to.finish();
}

/// Every device keeps a part of what it has. Nothing moves.
inline void facts::keep(std::vector<place> const& before, std::vector<place> const& after, arrivals& to) {
  for (place const& p : after) {
    place const* has = on(before, p.device);
    if (!has || !(common(has->at, p.at) == p.at)) {
      to.refuse(has ? fault::reshard : fault::not_written, p.device, "is to be kept where it is not");
      return;
    }
    if (!to.have(p.device, p.at, {has->sum})) return;
  }
}

/// The general exchange: from every (box, share of the sum) one holder's copy reaches every receiver whose
/// box meets it.
inline void facts::exchange(std::vector<place> const& before, std::vector<place> const& after, arrivals& to) {
  std::map<std::pair<box, i64>, std::vector<int>> sources;    // with those who hold it, ascending
  for (place const& p : before) sources[{p.at, p.sum}].push_back(p.device);
  for (place const& p : after) {
    // share -> elements of the wanted box that it reaches
    std::map<i64, i64> covered;
    for (auto const& [what, holders] : sources) {
      i64 const n = common(what.first, p.at).volume();
      if (n == 0) continue;
      covered[what.second] += n;
      if (!std::binary_search(holders.begin(), holders.end(), p.device))
        to.m.elements = std::max(to.m.elements, n);
    }
    std::vector<i64> shares;
    for (auto const& [share, n] : covered) {
      if (n != p.at.volume()) {
        to.refuse(fault::missing, p.device, "does not reach all of its box");
        return;
      }
      shares.push_back(share);
    }
    if (!to.have(p.device, p.at, shares)) return;
  }
}

/// Groups of devices that differ along the group axes alone, members in order of their digits, major first.
inline bool facts::collective(ir::reshard_step const& m, std::vector<place> const& before, int layout,
                              arrivals& to) {
  i64 n = 1;
  for (ir::group_axis const& a : m.group)
    n *= a.degree >= 1 && a.degree <= devices_ && n <= devices_ ? a.degree : 0;
  if (n < 1 || n > devices_) return to.refuse(fault::reshard, -1, "moves in a group that means nothing");
  ir::layout const& from = layout_[idx(layout)].first;
  struct member { i64 first, position; place const* at; };
  std::vector<member> all;
  all.reserve(before.size());
  std::vector<i64> const turns = turns_of(from.axes);
  for (place const& p : before) {
    i64 first = p.device, position = 0;
    for (ir::group_axis const& a : m.group) {
      i64 digit = -1;
      for (std::size_t j = 0; j < from.axes.size() && digit < 0; ++j) {
        ir::layout_axis const& l = from.axes[j];
        if (l.stride > 0 && a.stride >= l.stride && a.stride % l.stride == 0 &&
            a.stride * a.degree <= l.stride * l.degree)
          digit = p.index / turns[j] % l.degree / (a.stride / l.stride) % a.degree;
      }
      if (digit < 0)
        return to.refuse(fault::reshard, p.device, "moves in a group that is no part of its layout");
      first -= digit * a.stride;
      position = position * a.degree + digit;
    }
    all.push_back({first, position, &p});
  }
  std::sort(all.begin(), all.end(), [](member const& a, member const& b) {
    return a.first != b.first ? a.first < b.first : a.position < b.position;
  });
  bool const reduces = m.kind == ir::reshard_kind::all_reduce || m.kind == ir::reshard_kind::reduce_scatter;
  bool const divides = m.kind == ir::reshard_kind::reduce_scatter || m.kind == ir::reshard_kind::all_to_all;
  for (std::size_t start = 0, end = 0; start < all.size(); start = end) {
    while (end < all.size() && all[end].first == all[start].first) ++end;
    int const first = static_cast<int>(all[start].first);
    bool whole = static_cast<i64>(end - start) == n;
    for (std::size_t i = start; whole && i < end; ++i) whole = all[i].position == static_cast<i64>(i - start);
    if (!whole)
      return to.refuse(fault::reshard, first,
                       sentence("moves in a group of ", end - start, " devices instead of ", n));
    box const& one = all[start].at->at;
    box joined = one;
    if (!reduces) joined.n[m.from_dim] *= n;
    std::vector<i64> shares;
    for (std::size_t i = start; i < end; ++i) {
      place const& p = *all[i].at;
      if (!reduces && p.sum != all[start].at->sum)
        return to.refuse(fault::partial, first,
                         sentence("is joined of parts of different sums in the group of device ", first));
      if (!(p.at == (reduces ? one : part(joined, m.from_dim, all[i].position, n))))
        return to.refuse(fault::reshard, p.device, "is joined of parts that do not belong together");
      if (reduces || shares.empty()) shares.push_back(p.sum);
    }
    if (!to.apart(first, shares)) return false;
    if (divides && joined.n[m.to_dim] % n)
      return to.refuse(fault::reshard, first, sentence("cannot be divided in ", n));
    for (std::size_t i = start; i < end; ++i)
      if (!to.have(all[i].at->device, divides ? part(joined, m.to_dim, all[i].position, n) : joined, shares))
        return false;
  }
  return true;
}

}  // namespace tensorpar::detail::check
