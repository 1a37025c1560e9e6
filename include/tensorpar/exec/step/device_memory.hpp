// tensorpar/exec/step/device_memory.hpp - the arenas of a program's devices, and the whole values that are
// sharded over them
#pragma once
#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <tensorpar/core/index.hpp>
#include <tensorpar/exec/comm/processes.hpp>
#include <tensorpar/exec/device/arena_memory.hpp>
#include <tensorpar/exec/device/boxes.hpp>
#include <tensorpar/exec/device/narrow.hpp>
#include <tensorpar/program/core/program.hpp>
#include <vector>

namespace tensorpar::exec::detail {

/// Does this device hold numbers of its own, not copies of another one's? Parts of a sum are its own.
inline bool is_first_copy(ir::layout const& l, int device) {
  auto const c = l.coordinates(device);
  for (std::size_t a = 0; a < l.axes.size(); ++a)
    if (l.axes[a].kind == ir::part_kind::replicate && c[a] != 0) return false;
  return true;
}

/// One arena of exactly program.arena[d] bytes for every device d of this process, allocated once. Outlived
/// by the program.
template <class Scalar, memory_policy Memory = host_memory> class device_memory {
  program const* program_;
  std::vector<std::optional<arena_memory<Memory>>> arenas_;   // of a device of another process: none
  std::map<int, int> persistent_;                  // value -> buffer

  buffer const& buffer_of(int b) const { return program_->buffers[idx(b)]; }

  /// The devices of a buffer by the box that they hold, ascending within one; boxes in order of their
  /// offsets.
  static std::map<std::vector<i64>, std::vector<int>> boxes_of(buffer const& q) {
    std::map<std::vector<i64>, std::vector<int>> r;
    for (int d : q.devices) {
      op::tensor_block const box = ir::block_of(q.where, q.type, d);
      r[std::vector<i64>(box.offset, box.offset + box.rank)].push_back(d);
    }
    return r;
  }

 public:
  /// `in`: the memory of each local device.
  device_memory(program const& q, std::vector<int> const& local, std::vector<Memory> const& in)
      : program_(&q), arenas_(q.arena.size()) {
    for (std::size_t k = 0; k < local.size(); ++k) {
      auto const d = idx(local[k]);
      arenas_[d].emplace(q.arena[d], in[k]);
    }
    for (std::size_t b = q.buffers.size(); b-- > 0;)
      if (q.buffers[b].persistent) persistent_[q.buffers[b].value] = static_cast<int>(b);
  }
  /// In memory that needs nothing to be made.
  device_memory(program const& q, std::vector<int> const& local)
      : device_memory(q, local, std::vector<Memory>(local.size())) {}
  /// Is this a device of this process?
  bool here(int device) const { return arenas_[idx(device)].has_value(); }
  std::vector<i64> bytes() const {
    std::vector<i64> r;
    for (auto const& a : arenas_) r.push_back(a ? a->size() : 0);
    return r;
  }
  /// Precondition: has(b, device), here(device). O(log devices).
  i64 offset(int b, int device) const {
    buffer const& q = buffer_of(b);
    auto const i = std::lower_bound(q.devices.begin(), q.devices.end(), device) - q.devices.begin();
    return q.offset[idx(i)];
  }
  std::byte* address(int b, int device) const {
    return arenas_[idx(device)]->data() + offset(b, device);
  }
  Memory const& memory(int device) const { return arenas_[idx(device)]->memory(); }
  bool has(int b, int device) const {
    auto const& d = buffer_of(b).devices;
    return std::binary_search(d.begin(), d.end(), device);
  }
  /// The buffer of a parameter or state, or -1.
  int persistent_of(int value) const {
    auto const i = persistent_.find(value);
    return i == persistent_.end() ? -1 : i->second;
  }

  /// Writes a whole value into the parts of this process's devices. Precondition: all holds the buffer's
  /// elements.
  void scatter(int b, std::vector<Scalar> const& all) const {
    buffer const& q = buffer_of(b);
    op::tensor_block const whole = ir::block_of(ir::layout{}, q.type, std::vector<i64>{});
    std::vector<Scalar> part;
    for (int d : q.devices) {
      if (!here(d)) continue;
      op::tensor_block const mine = ir::block_of(q.where, q.type, d);
      part.resize(idx(mine.elements()));
      copy_box(mine, whole, all.data(), mine, part.data());
      write_reals(memory(d), address(b, d), part, q.type.type);
    }
  }
  /// Writes a parameter into the buffer of its master, but for elements of the master that round to the
  /// parameter's: they stay.
  void scatter_master(int b, std::vector<Scalar> const& all, dtype stored) const {
    buffer const& q = buffer_of(b);
    op::tensor_block const whole = ir::block_of(ir::layout{}, q.type, std::vector<i64>{});
    std::vector<Scalar> part, kept;
    for (int d : q.devices) {
      if (!here(d)) continue;
      op::tensor_block const mine = ir::block_of(q.where, q.type, d);
      part.resize(idx(mine.elements()));
      kept.resize(part.size());
      copy_box(mine, whole, all.data(), mine, part.data());
      read_reals(memory(d), kept, address(b, d), q.type.type);
      for (std::size_t i = 0; i < part.size(); ++i)
        if (as_stored(kept[i], stored) == part[i]) part[i] = kept[i];
      write_reals(memory(d), address(b, d), part, q.type.type);
    }
  }
  /// The whole value, on every process.
  template <class World> std::vector<Scalar> gather(int b, World& world) const {
    buffer const& q = buffer_of(b);
    std::vector<Scalar> all(idx(q.type.elements())), part;
    op::tensor_block const whole = ir::block_of(ir::layout{}, q.type, std::vector<i64>{});
    for (auto const& [offset, holders] : boxes_of(q)) {
      int const d = holders[0];
      op::tensor_block const mine = ir::block_of(q.where, q.type, d);
      part.assign(idx(mine.elements()), Scalar{});
      if (here(d)) read_reals(memory(d), part, address(b, d), q.type.type);
      share(world, d, part.data(), part.size() * sizeof(Scalar));
      copy_box(mine, mine, part.data(), whole, all.data());
    }
    return all;
  }
  /// Do all copies of every persistent value agree in every bit? The same answer on every process.
  template <class World> bool copies_agree(World& world) const {
    std::vector<double> differing(program_->arena.size(), 0);                      // by device
    std::vector<std::byte> first, other;
    for (std::size_t b = 0; b < program_->buffers.size(); ++b) {
      buffer const& q = program_->buffers[b];
      if (!q.persistent || q.where.degree(ir::part_kind::replicate) == 1) continue;
      first.resize(idx(q.bytes));
      other.resize(first.size());
      for (auto const& [offset, holders] : boxes_of(q)) {
        if (holders.size() < 2) continue;
        if (here(holders[0]))
          memory(holders[0]).read(first.data(), address(static_cast<int>(b), holders[0]), q.bytes);
        share(world, holders[0], first.data(), first.size());
        for (int d : holders) {
          if (!here(d)) continue;
          memory(d).read(other.data(), address(static_cast<int>(b), d), q.bytes);
          if (std::memcmp(first.data(), other.data(), first.size()) != 0)
            differing[idx(d)] = 1;
        }
      }
    }
    add_up(world, differing);
    return std::all_of(differing.begin(), differing.end(), [](double x) { return x == 0; });
  }
};

}  // namespace tensorpar::exec::detail
