// tensorpar/exec/cpu/common/kernel_table.hpp - from operators to kernels, a hash table made when the program
// is compiled
#pragma once
#include <tensorpar/core/hash.hpp>
#include <tensorpar/op/kinds/parallel.hpp>
#include <tensorpar/op/operators.hpp>

namespace tensorpar::exec::detail {

using sharding_operators = op::op_set<parallel::partition, parallel::combine, parallel::replicate,
                                  parallel::reduce, parallel::pipeline, parallel::batch>;

/// Entry: has `u64 id`, 0 in an empty slot (under -fsanitize=undefined g++ 12 compares no function pointer in
/// a constant), and a static `make<Op>()`. Open addressing, at most a quarter full. O(1).
template <class Entry> struct kernel_table {
  static constexpr int slots = 512;
  Entry entry[slots];
  int count = 0;
  static constexpr int slot_of(u64 id) { return static_cast<int>(core::mix(id) & (slots - 1)); }
  template <class... Op> constexpr void add(op::op_set<Op...>) { (put(Entry::template make<Op>()), ...); }
  /// A later entry of the same name replaces the earlier one.
  constexpr void put(Entry const& e) {
    int i = slot_of(e.id);
    while (entry[i].id && entry[i].id != e.id) i = (i + 1) % slots;
    if (!entry[i].id && ++count > slots / 4)
      tensorpar::detail::refuse("too many operators", "kernel_table", "at most 128");
    entry[i] = e;
  }
  constexpr Entry const* find(u64 id) const {
    for (int i = slot_of(id); entry[i].id; i = (i + 1) % slots) if (entry[i].id == id) return &entry[i];
    return nullptr;
  }
};

/// Every operator of the library, also those of a list, and then the user's.
template <class Entry, class Own, class Also = op::op_set<>> constexpr kernel_table<Entry> table_of_all() {
  kernel_table<Entry> t{};
  t.add(op::forward_operators{});
  t.add(op::backward_operators{});
  t.add(sharding_operators{});
  t.add(Also{});
  t.add(Own{});
  return t;
}

}  // namespace tensorpar::exec::detail
