// tensorpar/search/problem/choice_layouts.hpp - choices of operators, and how operands and results lie under
// each
#pragma once
#include <array>
#include <map>
#include <memory>
#include <string>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/search/problem/evaluate.hpp>
#include <tensorpar/search/problem/flow_lines.hpp>
#include <tensorpar/search/problem/flows.hpp>
#include <tensorpar/search/problem/layout_lists.hpp>
#include <tensorpar/search/problem/shardings.hpp>
#include <utility>
#include <vector>

namespace tensorpar::search {

struct objective_options {
  int grain = 1;                  // side by side: ranges are divided at multiples of this
  i64 scalar_bytes = 4;
  int micro_batches = 1;          // forward, backward and their reshards count so many times, updates once
  // copies of a weight share its update where that is faster (ZeRO-2, program/passes/memory_pass.hpp)
  bool shard_updates = false;
  // a program may do less than is counted otherwise: add gradients where they lie, share what was moved
  bool at_least = false;
};

/// The shardings of every choice set and the layouts at its slots, each list made once and shared by sets
/// that have it in common; what they take is for choice_sets to say.
template <cost::cost_model M> class choice_layouts {
 public:
  mapping_tables tables;

  choice_layouts(choice_layouts const&) = delete;
  choice_layouts& operator=(choice_layouts const&) = delete;

  machine const& on() const { return on_; }
  objective_options const& options() const { return o_; }
  std::shared_ptr<layout_prices<M>> const& prices() const { return shared_; }

 protected:
  choice_layouts(machine const& on, objective_options const& o, std::shared_ptr<layout_prices<M>> known)
      : on_(on), o_(o), shared_(std::move(known)), prices_(*shared_) {}

  void start(sharding_limits const& l) {
    limits_ = l;
    tables = {};
    kinds_.clear();
    shardings_.clear();
  }

  /// What operators with the same loops and ranges share.
  struct sharding_list {
    std::string loops;                                        // that may be split
    std::vector<ir::sharding> shardings;
    layout_lists lists;
  };
  /// What all operators of a choice set share.
  struct kind_of_group {
    std::vector<ir::iteration_space> spaces;
    std::vector<std::string> letters;
    std::vector<char> update;                                 // by node
    std::shared_ptr<sharding_list> choices;
    std::map<std::array<int, 3>, std::vector<int> const*> layouts;   // slot -> choice -> layout
    std::vector<device_range> ranges;                         // where it may stand
    // by choice: seconds of a function by itself, which are not in the set's; what a function computed with
    // the operator adds to it
    std::vector<double> own, function;
  };

  machine const& on_;
  objective_options o_;
  std::shared_ptr<layout_prices<M>> shared_;
  layout_prices<M>& prices_;
  sharding_limits limits_;
  std::vector<kind_of_group> kinds_;
  std::map<std::vector<i64>, std::shared_ptr<sharding_list>> shardings_;   // by loops and ranges

  std::shared_ptr<sharding_list> const& shardings_in(ir::iteration_space const& space,
                                                 std::vector<device_range> const& ranges) {
    std::vector<i64> key;
    std::string loops;
    for (ir::node_loop const& l : space.loops) {
      if (l.units < 2) continue;
      loops.push_back(l.letter);
      key.insert(key.end(), {l.letter, l.units});
    }
    for (device_range r : ranges) key.insert(key.end(), {-1 - r.first, r.count});
    auto const [at, fresh] = shardings_.try_emplace(std::move(key));
    if (!fresh) return at->second;
    at->second = std::make_shared<sharding_list>();
    at->second->loops = std::move(loops);
    auto& all = at->second->shardings;
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      // the largest range from this start has them all
      if (i + 1 < ranges.size() && ranges[i + 1].first == ranges[i].first) continue;
      auto some = legal_shardings(space, ranges[i].first, ranges[i].count, on_.size(), limits_);
      all.insert(all.end(), std::make_move_iterator(some.begin()), std::make_move_iterator(some.end()));
    }
    return at->second;
  }
  /// May the copies of a node share its work, each choice in its own way?
  bool in_parts(int set, int local) const {
    return kinds_[idx(set)].update[idx(local)] &&
           !tables.sets[idx(set)].savings.empty();
  }
  /// The layout at a slot of a node whose loops follow this mesh so.
  static ir::layout layout_at(ir::iteration_space const& space, std::string const& letters,
                              ir::sharding const& mesh, value_slot const& s) {
    return s.result ? ir::result_layout(space, letters, mesh, s.port)
                    : ir::operand_layout(space, letters, mesh, s.port);
  }
  std::vector<int> const& layouts(int set, value_slot const& s) {
    kind_of_group& k = kinds_[idx(set)];
    auto const [at, fresh] = k.layouts.try_emplace({s.local, s.port, s.result}, nullptr);
    if (!fresh) return *at->second;
    choice_set const& all = tables.sets[idx(set)];
    auto const& space = k.spaces[idx(s.local)];
    auto const& own = k.letters[idx(s.local)];
    auto const id = [&](ir::layout const& l) { return prices_.id(l); };
    if (!in_parts(set, s.local)) {
      at->second = &k.choices->lists.at(all.shardings, k.choices->loops, space, own, s.port, s.result, id);
      return *at->second;
    }
    std::vector<int> list;
    for (int i = 0; i < all.count(); ++i) {
      ir::sharding const& c = all.shardings[idx(i)];
      ir::update_sharding const u = all.saving(i).zero != ir::zero_stage::none
                                        ? ir::sharded_update(space, own, c)
                                        : ir::update_sharding{own, {}};
      ir::sharding const mesh = ir::in_shares(c, u.share);
      list.push_back(id(layout_at(space, u.letters, mesh, s)));
    }
    at->second = &k.choices->lists.add(std::move(list));
    return *at->second;
  }
  /// Leaves choices out of the layouts of a set.
  static void keep_layouts(kind_of_group& k, std::vector<double> const& excess) {
    auto left = std::make_shared<sharding_list>();
    left->loops = k.choices->loops;
    std::map<std::vector<int> const*, std::vector<int> const*> kept;
    for (auto& [slot, list] : k.layouts) {
      auto const [at, fresh] = kept.try_emplace(list, nullptr);
      if (fresh) {
        std::vector<int> some;
        for (std::size_t i = 0; i < excess.size(); ++i) if (excess[i] != infinity) some.push_back((*list)[i]);
        at->second = &left->lists.add(std::move(some));
      }
      list = at->second;
    }
    k.choices = std::move(left);
  }
  /// Choice -> number of those with parts of the same sizes.
  std::vector<int> const& alike_in(int set) {
    sharding_list& k = *kinds_[idx(set)].choices;
    return k.lists.alike(tables.sets[idx(set)].shardings, k.loops);
  }

  /// The layouts at these slots, lists that slots share once.
  layout_columns columns_of(int set, std::vector<value_slot> const& slots) {
    layout_columns r;
    for (value_slot const& s : slots)
      if (auto const* const l = &layouts(set, s); std::find(r.begin(), r.end(), l) == r.end()) r.push_back(l);
    return r;
  }
};

}  // namespace tensorpar::search
