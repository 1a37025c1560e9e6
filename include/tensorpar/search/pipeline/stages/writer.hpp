// tensorpar/search/pipeline/stages/writer.hpp - from the partial pipelines of a decision back to stages
#pragma once
#include <algorithm>
#include <tensorpar/core/index.hpp>
#include <tensorpar/search/pipeline/stages/joins.hpp>
#include <tensorpar/search/pipeline/stages/partial_pipelines.hpp>
#include <vector>

namespace tensorpar::search::detail {

/// Follows partial pipelines from the sources to the sinks. Sub-trees that were solved once stand for all
/// that are equal to them.
class stage_writer {
  stage_tree const& tree_;
  stage_blocks& prepared_;
  partial_pipelines const& pool_;
  std::vector<stage_choice> const& choices_;
  int devices_;

  void put(std::vector<found_stage>& out, std::vector<int> const& entries, int choice,
           int devices_so_far) const {
    found_stage s;
    for (int e : entries)
      for (int i = tree_.lo(e); i < tree_.hi(e); ++i)
        s.nodes.push_back(tree_.order()[idx(i)]);
    std::sort(s.nodes.begin(), s.nodes.end());
    s.choice = choices_[idx(choice)];
    s.first = devices_ - devices_so_far;
    out.push_back(std::move(s));
  }
  std::vector<int> some_parts(int entry, int from, int to) const {
    auto const& all = tree_.series(entry);
    return {all.begin() + from, all.begin() + to};
  }
  void write_series(std::vector<found_stage>& out, int id, int entry, int base) const {
    std::vector<int> outside;  // series whose end is joined with the branch at hand
    for (; pool_[id].step != stage_step::start; id = pool_[id].prev) {
      partial_pipeline const& l = pool_[id];
      if (l.step == stage_step::run) {
        put(out, some_parts(entry, l.from, l.to), l.choice, base + l.devices);
      } else if (l.step == stage_step::part) {
        write_block(out, l.sub, tree_.series(entry)[idx(l.from)],
                    base + pool_[l.prev].devices, {});
      } else if (l.step == stage_step::join) {
        auto nodes = some_parts(entry, l.extra, static_cast<int>(tree_.series(entry).size()));
        entry = outside.back();
        outside.pop_back();
        auto const after = some_parts(entry, l.from + 1, l.to);
        nodes.insert(nodes.end(), after.begin(), after.end());
        put(out, nodes, l.choice, base + l.devices);
      } else if (l.step == stage_step::join_group) {
        int const block_entry = tree_.series(entry)[idx(l.from)];
        auto const used = prepared_.states(tree_.alike(block_entry)).digits(l.extra);
        auto nodes = some_parts(entry, l.from + 1, l.to);
        for (std::size_t c = 0; c < used.size(); ++c)
          for (int k = 0; k < used[c]; ++k)
            nodes.push_back(tree_.classes(block_entry)[c].children[idx(k)]);
        int const before = base + l.devices - pool_[l.sub].devices;
        put(out, nodes, l.choice, before);
        write_block(out, l.sub, block_entry, before, used);
      } else if (l.step == stage_step::join_all || l.step == stage_step::rest_all) {
        bool const outer = l.step == stage_step::rest_all;
        partial_pipeline const& j = outer ? pool_[l.prev] : l;
        int const block_entry = tree_.series(entry)[idx(l.from)];
        auto const& classes = tree_.classes(block_entry);
        auto const& same = classes[idx(outer ? l.extra : 0)].children;
        if (!outer) continue;  // written with the partial pipeline before it
        std::vector<int> used(classes.size(), 0);
        used[idx(l.extra)] = static_cast<int>(same.size());
        write_block(out, l.sub, block_entry, base, used);
        auto nodes = some_parts(entry, j.from + 1, j.to);
        for (int c : same) {
          auto const end = some_parts(c, j.extra, static_cast<int>(tree_.series(c).size()));
          nodes.insert(nodes.end(), end.begin(), end.end());
          write_series(out, j.sub, c, base);
        }
        put(out, nodes, j.choice, base + j.devices);
      } else {  // rest: then the branch, and behind its join the rest of this series
        int const block_entry = tree_.series(entry)[idx(l.from)];
        auto const& classes = tree_.classes(block_entry);
        std::vector<int> used(classes.size(), 0);
        used[idx(l.extra)] = 1;
        write_block(out, l.sub, block_entry, base + pool_[l.prev].devices, used);
        outside.push_back(entry);
        entry = classes[idx(l.extra)].children.front();
      }
    }
  }
  void write_block(std::vector<found_stage>& out, int id, int entry, int base, std::vector<int> used) const {
    auto const& classes = tree_.classes(entry);
    used.resize(classes.size(), 0);
    branch_states const& r = prepared_.states(tree_.alike(entry));
    std::vector<int> ordered;
    for (branch_class const& c : classes) ordered.insert(ordered.end(), c.children.begin(), c.children.end());
    for (; pool_[id].step != stage_step::start; id = pool_[id].prev) {
      partial_pipeline const& l = pool_[id];
      std::vector<int> children;
      if (r.in_order) {
        int const size = l.step == stage_step::branch ? 1 : l.extra,
                  first = l.step == stage_step::branch ? l.from : l.to;
        children.assign(ordered.begin() + first, ordered.begin() + first + size);
      } else {
        std::vector<int> d(classes.size(), 0);
        if (l.step == stage_step::branch)
          d[idx(l.from)] = 1;
        else
          d = r.digits(l.from + 1);
        for (std::size_t c = 0; c < d.size(); ++c)
          for (int k = 0; k < d[c]; ++k)
            children.push_back(classes[c].children[idx(used[c]++)]);
      }
      if (l.step == stage_step::branch)
        write_series(out, l.sub, children.front(), base + pool_[l.prev].devices);
      else
        put(out, children, l.choice, base + l.devices);
    }
  }

 public:
  stage_writer(stage_tree const& tree, stage_blocks& prepared, partial_pipelines const& pool,
               std::vector<stage_choice> const& choices, int devices)
      : tree_(tree), prepared_(prepared), pool_(pool), choices_(choices), devices_(devices) {}
  /// The stages of a partial pipeline at the front of the tree, from the sources on; branches beside a group
  /// that is joined with what follows their block come after that stage. O(operators log operators).
  std::vector<found_stage> write(int partial) const {
    std::vector<found_stage> r;
    write_series(r, partial, tree_.root(), 0);
    return r;
  }
};

}  // namespace tensorpar::search::detail
