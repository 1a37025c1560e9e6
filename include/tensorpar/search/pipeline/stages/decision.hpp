// tensorpar/search/pipeline/stages/decision.hpp - is there a pipeline whose stages all meet a time per
// sample?
#pragma once
#include <algorithm>
#include <map>
#include <tensorpar/core/index.hpp>
#include <tensorpar/search/pipeline/stages/decision_state.hpp>
#include <tensorpar/search/pipeline/stages/joins.hpp>
#include <tensorpar/search/pipeline/stages/writer.hpp>
#include <vector>

namespace tensorpar::search::detail {

/// Algorithm 2's dynamic program (thesis, section 3.5) with the gaps of its listing filled. Series are solved
/// from the end, because what the second half keeps in flight is what it asks of the first. For a sub-tree
/// and the need of what follows, it finds all that are best in (devices, need upon what precedes). Stages
/// are, recursively also inside branches,
///  - runs of parts of a series;
///  - branches of a block together, whole;
///  - a run of up to 16 parts after a block, together with the end of one branch, with whole branches, or
///    (equal devices) with the ends of all equal branches. These are cut at one place, the earliest that fits
///    for a number of devices.
/// Equal sub-trees under equal needs are solved once. One object answers for one limit.
template <stage_model M> class stage_decision : stage_decision_state<M> {
  using lists = std::vector<std::vector<int>>;
  static constexpr int max_joined = 16;  // parts after a block that are joined with branches
  struct table { lists at; };             // of a block, by how many branches of each class are done
  using base = stage_decision_state<M>;
  using base::tree_, base::prices_, base::needs_, base::prepared_, base::devices_, base::pool_,
      base::uniform_;
  using base::end_of, base::batchings, base::fits, base::needless;
  std::map<std::pair<int, std::pair<int, int>>, lists> series_;
  std::map<std::pair<int, std::pair<int, int>>, std::vector<int>> fronts_;
  std::map<std::pair<int, std::pair<int, int>>, table> blocks_;

  /// All steps from the partial pipelines at position j of series e: as runs of parts that end there, and as
  /// the block that ends there.
  void advance(int e, lists& at, int j, int offset) {
    std::vector<int> const& partials = at[idx(j)];  // steps lead to positions before it
    auto const& parts = tree_.series(e);
    std::vector<stage_border> const& borders = tree_.runs_before(e, j);
    for (int id : partials) {
      partial_pipeline const l = pool_[id];
      int const left = devices_ - offset - l.devices;
      if (left < 1) continue;
      for (int r = 0; r < batchings(); ++r) {
        i64 const i = needs_.of(l.need, r);
        int const need = needs_.after(r, i);
        int const hi = tree_.hi(parts[idx(j) - 1]);
        int slow = 0;
        for (int from = j - 1; from >= 0; --from) {
          std::size_t const f = idx(from);
          leaf_interval const x{tree_.lo(parts[f]), hi, 1};
          if (needless(at[f], {&x, 1}, r, l.devices, need, left, &slow)) continue;
          stage_fit const fit = prices_.fit({&x, 1, &borders[idx(j - 1 - from)]}, r, i,
                                            l, left, end_of(offset + l.devices), 0, &slow);
          if (fit.choice >= 0)
            pool_.offer(at[f], {l.devices + fit.devices, need, id, -1, from, j, 0, fit.choice,
                                stage_step::run, l.area + fit.area});
          else if (fit.hopeless)
            break;
        }
      }
      int const part = parts[idx(j) - 1];
      if (!tree_.is_block(part)) continue;
      std::vector<int> const& ways = block(part, l.need, uniform_ ? 0 : offset + l.devices).at.back();
      for (int w : ways) {
        partial_pipeline const sub = pool_[w];
        if (!fits(l, sub, offset)) continue;
        pool_.offer(at[idx(j) - 1], {l.devices + sub.devices, sub.need, id, w, j - 1,
                                                          j, 0, -1, stage_step::part, l.area + sub.area});
      }
    }
  }

  struct ending {  // a stage that is still open towards a block
    int j, partial, batching;
    i64 in_flight;
  };
  /// Stages that hold what follows block p of series e, up to some part, and the end of one branch or whole
  /// branches of the block.
  void join(int e, lists& at, int p, int offset) {
    if (prepared_.states(tree_.series(e)[idx(p)]).in_order) return;
    for (auto const& [need, endings] : open_endings(e, at, p, offset)) {
      join_groups(e, at, p, offset, need, endings);
      join_ends(e, at, p, offset, need, endings);
    }
  }
  /// By need upon the block: stages that are still open towards it.
  std::map<int, std::vector<ending>> open_endings(int e, lists const& at, int p, int offset) {
    int const n = static_cast<int>(at.size()) - 1;
    std::map<int, std::vector<ending>> by_need;
    for (int j = p + 2; j <= n && j - p - 1 <= max_joined; ++j)
      for (int id : at[idx(j)])
        for (int q = 0; q < batchings(); ++q) {
          partial_pipeline const& l = pool_[id];
          i64 const i = needs_.of(l.need, q);
          int const left = devices_ - offset - l.devices;
          leaf_interval const x = tree_.run(e, p + 1, j);
          stage_border const nothing{};
          if (left < 1 || prices_.fit({&x, 1, &nothing}, q, i, l, left, end_of(offset + l.devices)).hopeless)
            continue;
          by_need[needs_.after(q, i)].push_back({j, id, q, i});
        }
    return by_need;
  }
  /// With whole branches.
  void join_groups(int e, lists& at, int p, int offset, int need, std::vector<ending> const& endings) {
    int const block_entry = tree_.series(e)[idx(p)];
    branch_states const& r = prepared_.states(block_entry);
    int const full = r.states - 1;
    block_joins const& joins = prepared_.joins(e, p);
    std::vector<block_joins::left> const& groups = prepared_.groups(e, p);
    for (int g = 1; g <= full; ++g) {
      int const group = r.group_of_state(g);
      std::vector<leaf_interval> intervals = r.groups[idx(group)].intervals;
      intervals.push_back({});
      for (ending const& x : endings) {
        partial_pipeline const l = pool_[x.partial];
        intervals.back() = tree_.run(e, p + 1, x.j);
        // at least one device for the other branches
        int const others = g < full, left = devices_ - offset - l.devices;
        int slow = 0;
        if (needless(at[idx(p)],
                     {intervals.data(), static_cast<int>(intervals.size())}, x.batching, l.devices + others,
                     need, left - others, &slow))
          continue;
        stage_border const border = joins.border(groups[idx(group)], x.j);
        stage_fit const fit = prices_.fit({intervals.data(), static_cast<int>(intervals.size()), &border},
                                          x.batching, x.in_flight, l, left, end_of(offset + l.devices));
        if (fit.choice < 0) continue;
        partial_pipeline so_far;
        so_far.devices = l.devices + fit.devices;
        so_far.area = l.area + fit.area;
        for (int w : block(block_entry, need, uniform_ ? 0 : offset + so_far.devices)
                         .at[idx(full - g)]) {
          partial_pipeline const sub = pool_[w];
          if (!fits(so_far, sub, offset)) continue;
          pool_.offer(at[idx(p)],
                      {so_far.devices + sub.devices, needs_.joined(need, sub.need), x.partial, w, p,
                       x.j, g, fit.choice, stage_step::join_group, so_far.area + sub.area});
        }
      }
    }
  }
  /// With the end of one branch, or of all that are equal.
  void join_ends(int e, lists& at, int p, int offset, int need, std::vector<ending> const& endings) {
    int const block_entry = tree_.series(e)[idx(p)];
    auto const& classes = tree_.classes(block_entry);
    branch_states const& r = prepared_.states(block_entry);
    int const full = r.states - 1;
    block_joins const& joins = prepared_.joins(e, p);
    int weight = 1;
    for (std::size_t c = 0; c < classes.size(); weight *= r.count[c] + 1, ++c) {
      int const child = classes[c].children.front(), m = static_cast<int>(tree_.series(child).size());
      if (m < 2) continue;
      if (uniform_ && r.count[c] > 1) join_all(e, at, p, static_cast<int>(c), weight, need, endings);
      std::vector<block_joins::left> const& ends = prepared_.ends(e, p, classes[c], false);
      lists inner(idx(m) + 1);
      for (ending const& x : endings) {
        partial_pipeline const l = pool_[x.partial];
        int const left = devices_ - offset - l.devices;
        int slow = 0;
        for (int q = m - 1; q > 0; --q) {
          leaf_interval const both[2] = {tree_.run(child, q, m), tree_.run(e, p + 1, x.j)};
          std::vector<int>& here = inner[idx(q)];
          if (needless(here, {both, 2}, x.batching, l.devices, need, left, &slow)) continue;
          stage_border const border = joins.border(ends[idx(q)], x.j);
          stage_fit const fit = prices_.fit({both, 2, &border}, x.batching, x.in_flight, l, left,
                                            end_of(offset + l.devices), 0, &slow);
          if (fit.hopeless) break;
          if (fit.choice >= 0)
            pool_.offer(here, {l.devices + fit.devices, need, x.partial, -1, p, x.j, q, fit.choice,
                               stage_step::join, l.area + fit.area});
        }
      }
      walk(child, inner, m - 1, offset);
      for (int id : inner[0]) {
        partial_pipeline const l = pool_[id];
        for (int w : block(block_entry, need, uniform_ ? 0 : offset + l.devices)
                         .at[idx(full - weight)]) {
          partial_pipeline const sub = pool_[w];
          if (!fits(l, sub, offset)) continue;
          pool_.offer(at[idx(p)],
                      {l.devices + sub.devices, needs_.joined(l.need, sub.need), id, w, p, 0,
                       static_cast<int>(c), -1, stage_step::rest, l.area + sub.area});
        }
      }
    }
  }

  /// The same with the ends of all branches of a class.
  void join_all(int e, lists& at, int p, int c, int weight, int need, std::vector<ending> const& endings) {
    int const block_entry = tree_.series(e)[idx(p)];
    branch_states const& r = prepared_.states(block_entry);
    int const child = tree_.classes(block_entry)[idx(c)].children.front(),
              times = r.count[idx(c)], m = static_cast<int>(tree_.series(child).size());
    block_joins const& joins = prepared_.joins(e, p);
    std::vector<block_joins::left> const& ends =
        prepared_.ends(e, p, tree_.classes(block_entry)[idx(c)], true);
    std::vector<int> const& others =
        block(block_entry, need, 0).at[idx(r.states - 1 - times * weight)];
    for (ending const& x : endings) {
      partial_pipeline const l = pool_[x.partial];
      int last = 0;
      for (int choice : prices_.of_batching(x.batching)) {
        int const d = prices_.choices()[idx(choice)].devices();
        if (d == last || l.devices + d + times > devices_) continue;
        last = d;
        stage_fit fit;
        int q = m;
        for (; q > 1; --q) {
          leaf_interval both[2] = {tree_.run(child, q - 1, m), tree_.run(e, p + 1, x.j)};
          both[0].times = times;
          stage_border const border = joins.border(ends[idx(q) - 1], x.j);
          stage_fit const f =
              prices_.fit({both, 2, &border}, x.batching, x.in_flight, l, devices_ - l.devices, devices_, d);
          if (f.choice < 0) break;
          fit = f;
        }
        if (fit.choice < 0) continue;
        for (int id : front(child, q, need)) {
          partial_pipeline const f = pool_[id];
          partial_pipeline const so_far{l.devices + fit.devices + times * f.devices,
                                   f.need,
                                   x.partial,
                                   id,
                                   p,
                                   x.j,
                                   q,
                                   fit.choice,
                                   stage_step::join_all,
                                   l.area + fit.area + times * f.area};
          if (!fits(so_far, {}, 0)) continue;
          int const joined = pool_.add(so_far);
          for (int w : others) {
            partial_pipeline const sub = pool_[w];
            if (fits(so_far, sub, 0))
              pool_.offer(at[idx(p)],
                          {so_far.devices + sub.devices, needs_.joined(f.need, sub.need), joined, w, p,
                           0, c, -1, stage_step::rest_all, so_far.area + sub.area});
          }
        }
      }
    }
  }
  /// Labels at the front of a series of which only the first `end` parts are there. Equal devices only.
  std::vector<int> const& front(int entry, int end, int need) {
    int const e = tree_.alike(entry);
    auto const it = fronts_.find({e, {end, need}});
    if (it != fronts_.end()) return it->second;
    lists at(idx(end) + 1);
    partial_pipeline start;
    start.need = need;
    at.back().push_back(pool_.add(start));
    walk(e, at, end, 0);
    return fronts_[{e, {end, need}}] = std::move(at.front());
  }

  /// From the partial pipelines at positions up to `last` of a series to those at its front.
  void walk(int e, lists& at, int last, int offset) {
    for (int j = last; j > 0; --j) {
      if (j < last && tree_.is_block(tree_.series(e)[idx(j) - 1]))
        join(e, at, j - 1, offset);
      advance(e, at, j, offset);
    }
  }

  /// Labels by position of a series, the last position being what follows it.
  lists const& series(int entry, int need, int offset) {
    int const e = tree_.alike(entry);
    auto const [it, fresh] = series_.try_emplace({e, {need, offset}}, lists{});
    if (!fresh) return it->second;
    int const n = static_cast<int>(tree_.series(e).size());
    lists at(idx(n) + 1);
    partial_pipeline start;
    start.need = need;
    at.back().push_back(pool_.add(start));
    walk(e, at, n, offset);
    return series_[{e, {need, offset}}] = std::move(at);  // the map may have grown meanwhile
  }

  table const& block(int entry, int need, int offset) {
    int const e = tree_.alike(entry);
    if (auto const it = blocks_.find({e, {need, offset}}); it != blocks_.end()) return it->second;
    auto const& classes = tree_.classes(e);
    branch_states const& r = prepared_.states(e);
    table t;
    t.at.resize(idx(r.states));
    partial_pipeline start;
    start.need = needs_.none();
    t.at[0].push_back(pool_.add(start));
    for (int s = 1; s < r.states; ++s)
      for (branch_states::move const& m : r.moves[idx(s)]) {
        std::vector<int> const& before = t.at[idx(m.before)];
        std::vector<int>& here = t.at[idx(s)];
        if (m.size == 1) {
          int const child = r.in_order ? r.ordered[idx(m.one)]
                                       : classes[idx(m.one)].children.front();
          for (int id : before) {
            partial_pipeline const l = pool_[id];
            std::vector<int> const& ways = series(child, need, uniform_ ? 0 : offset + l.devices).front();
            for (int w : ways) {
              partial_pipeline const sub = pool_[w];
              if (fits(l, sub, offset))
                pool_.offer(here, {l.devices + sub.devices, needs_.joined(l.need, sub.need), id, w,
                                   m.one, 0, 0, -1, stage_step::branch, l.area + sub.area});
            }
          }
          continue;
        }
        branch_group const& g = r.groups[idx(m.group)];
        for (int q = 0; q < batchings(); ++q) {
          i64 const i = needs_.of(need, q);
          int const after = needs_.after(q, i);
          for (int id : before) {
            partial_pipeline const l = pool_[id];
            stage_fit const fit =
                prices_.fit({g.intervals.data(), static_cast<int>(g.intervals.size()), &g.border}, q, i, l,
                            devices_ - offset - l.devices, end_of(offset + l.devices));
            if (fit.choice >= 0)
              pool_.offer(here, {l.devices + fit.devices, needs_.joined(l.need, after), id, -1, m.group,
                                 m.before, m.size, fit.choice, stage_step::group, l.area + fit.area});
          }
        }
      }
    return blocks_[{e, {need, offset}}] = std::move(t);
  }

 public:
  /// The limit is that of `prices`. `prepared` belongs to the tree and may serve many limits.
  stage_decision(stage_tree const& tree, stage_blocks& prepared, stage_prices<M>& prices,
                 in_flight_needs& needs)
      : base{tree, prepared, prices, needs} {}

  /// The best pipelines, none as good as another in devices and need, in the writer's order; empty: there
  /// is none.
  std::vector<std::vector<found_stage>> solve() {
    std::vector<int> const found = series(tree_.root(), needs_.nothing_follows(), 0).front();
    std::vector<std::vector<found_stage>> r;
    stage_writer const writer(tree_, prepared_, pool_, prices_.choices(), devices_);
    for (int id : found) r.push_back(writer.write(id));
    return r;
  }
  std::size_t partials() const { return pool_.size(); }
  std::size_t problems() const { return series_.size() + blocks_.size(); }
};

}  // namespace tensorpar::search::detail
