// tensorpar/search/problem/layout_lists.hpp - the layouts of an operator's values under all of its choices,
// made once for values that are alike
#pragma once
#include <array>
#include <deque>
#include <map>
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/layout.hpp>
#include <utility>
#include <vector>

namespace tensorpar::search {

/// Layouts (as numbers) by choice. A mesh axis makes shards, copies or sums of a value by the loop that it
/// splits; values of which all loops make the same have the same layouts under every sharding, and share one
/// list. For operators with one list of shardings.
class layout_lists {
  std::map<std::vector<int>, int> known_;                // what the loops make of a value -> list
  std::deque<std::vector<int>> lists_;                   // stay where they are
  std::vector<int> alike_;
  int kinds_ = -1;
  ir::layout made_;

 public:
  /// The list of operand or result `port` of a node. `loops`: the letters that the shardings may split. `id`:
  /// numbers a canonical layout.
  template <class Id>
  std::vector<int> const& at(std::vector<ir::sharding> const& shardings, std::string const& loops,
                             ir::iteration_space const& own, std::string const& letters, int port,
                                 bool result, Id const& id) {
    std::array<std::pair<ir::part_kind, int>, 256> makes;
    makes[0] = {ir::part_kind::replicate, -1};
    std::vector<int> key;
    for (char c : loops) {
      ir::node_loop const* const p = ir::followed(own, letters, c);
      int const d = p ? (result ? p->out : p->in)[idx(port)] : -1;
      auto& m = makes[static_cast<unsigned char>(c)];
      m = {d >= 0 ? ir::part_kind::shard : p && result ? ir::part_kind::partial : ir::part_kind::replicate,
           d};
      key.push_back(d >= 0 ? d : -1 - static_cast<int>(m.first));
    }
    auto const [where, fresh] = known_.try_emplace(std::move(key), static_cast<int>(lists_.size()));
    if (!fresh) return lists_[idx(where->second)];
    std::vector<int> list;
    list.reserve(shardings.size());
    for (ir::sharding const& s : shardings) {
      made_.start = s.start;
      made_.axes.clear();
      for (ir::mesh_axis const& a : s.axes) {
        auto const& [kind, dim] = makes[static_cast<unsigned char>(a.letter)];
        made_.axes.push_back({kind, dim, a.degree, a.stride});
      }
      made_ = ir::canonical(std::move(made_));
      list.push_back(id(made_));
    }
    return add(std::move(list));
  }
  /// Any other list, to be kept beside them.
  std::vector<int> const& add(std::vector<int> list) { return lists_.emplace_back(std::move(list)); }

  /// Choices that split every loop in equally many parts, however these lie, have equal parts of every value:
  /// choice -> number, in order of first occurrence.
  std::vector<int> const& alike(std::vector<ir::sharding> const& shardings, std::string const& loops) {
    if (kinds_ >= 0) return alike_;
    std::map<std::vector<i64>, int> number;
    std::vector<i64> key;
    for (ir::sharding const& s : shardings) {
      key.assign(loops.size(), 1);
      for (ir::mesh_axis const& a : s.axes)
        if (std::size_t const k = loops.find(a.letter); k < loops.size()) key[k] *= a.degree;
      alike_.push_back(number.try_emplace(key, static_cast<int>(number.size())).first->second);
    }
    kinds_ = static_cast<int>(number.size());
    return alike_;
  }
  /// Precondition: `alike` was asked.
  int kinds() const { return kinds_; }
};

}  // namespace tensorpar::search
