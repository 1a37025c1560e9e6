// tensorpar/exec/comm/virtual_ranks.hpp - many ranks on one device: a plan for a cluster is run, and checked,
// before there is a cluster
#pragma once
#include <algorithm>
#include <tensorpar/core/index.hpp>
#include <tensorpar/exec/comm/threads_world.hpp>
#include <tensorpar/exec/device/arena_memory.hpp>
#include <type_traits>

namespace tensorpar::comm {

/// One rank's endpoint, where all ranks' numbers lie in one memory: an accelerator's that stands for a
/// cluster of them, say. Models `full_communicator` (exec/device/concepts.hpp) for every element that the
/// memory moves. Ranks are threads, as those of comm::threads, with the same world, errors and deadlines;
/// data is moved and added by the memory alone, in group order, so results have the bits of comm::threads.
/// Precondition: an address of one rank is good in every rank's memory; `Memory::wait` of a rank covers what
/// that rank asked for. Scratch: at most 1 MiB of the memory per rank. Messages go through the host.
template <exec::memory_policy Memory> class virtual_ranks {
 public:
  using world = threads_world;
  using group = threads_group;
  using memory = Memory;

  /// Throws `error` unless 0 <= rank < h.size().
  virtual_ranks(world& h, int rank, Memory m = {}) : world_(&h), rank_(rank), memory_(std::move(m)) {
    check(rank, "comm::virtual_ranks");
  }
  int rank() const { return rank_; }
  int size() const { return world_->size(); }
  group make_group(core::slice<int> members) { return {*world_, members, rank_}; }

  void barrier(group const& g) { open<std::byte>(g, "barrier", nullptr, nullptr, 0); }

  template <class Element> void all_reduce(group const& g, Element const* in, Element* out, i64 n) {
    open(g, "all_reduce", in, out, n);
    i64 const members = g.size();
    auto const begin = [&](i64 j) { return n * j / members; };
    sum(g, begin(g.index()), begin(g.index() + 1), out + begin(g.index()));
    meet(g);
    for (int j = 0; j < members; ++j)
      if (j != g.index())
        copy(out + begin(j), static_cast<Element const*>(g.call_of(j).out) + begin(j),
             begin(j + 1) - begin(j));
    meet(g);
  }

  template <class Element> void reduce_scatter(group const& g, Element const* in, Element* out, i64 n) {
    open(g, "reduce_scatter", in, out, n);
    sum(g, n * g.index(), n * (g.index() + 1), out);
    meet(g);
  }

  template <class Element> void all_gather(group const& g, Element const* in, Element* out, i64 n) {
    open(g, "all_gather", in, out, n);
    for (int j = 0; j < g.size(); ++j) copy(out + j * n, static_cast<Element const*>(g.call_of(j).in), n);
    meet(g);
  }

  template <class Element> void all_to_all(group const& g, Element const* in, Element* out, i64 n) {
    open(g, "all_to_all", in, out, n);
    for (int j = 0; j < g.size(); ++j)
      copy(out + j * n, static_cast<Element const*>(g.call_of(j).in) + g.index() * n, n);
    meet(g);
  }

  /// Precondition: 0 <= root < g.size().
  template <class Element> void broadcast(group const& g, int root, Element* data, i64 n) {
    open(g, "broadcast", data, data, n, root);
    if (root != g.index()) copy(data, static_cast<Element const*>(g.call_of(root).in), n);
    meet(g);
  }

  template <class Element> void send(int to, int tag, Element const* data, i64 n) {
    static_assert(std::is_trivially_copyable_v<Element>);
    check(to, "rank " + std::to_string(rank_));
    i64 const bytes = n * static_cast<i64>(sizeof(Element));
    std::vector<std::byte> b = world_->buffer(idx(bytes));
    if (n) memory_.read(b.data(), data, bytes);
    world_->post(to, {rank_, tag, n, sizeof(Element), std::move(b)});
  }
  template <class Element> void receive(int from, int tag, Element* data, i64 n) {
    static_assert(std::is_trivially_copyable_v<Element>);
    check(from, "rank " + std::to_string(rank_));
    world::message m = world_->take(rank_, from, tag, n, sizeof(Element));
    if (n) memory_.write(data, m.bytes.data(), n * static_cast<i64>(sizeof(Element)));
    world_->give_back(std::move(m.bytes));
  }

 private:
  static constexpr i64 scratch_bytes = i64{1} << 20;

  void check(int rank, std::string const& where) const {
    if (rank < 0 || rank >= size())
      throw error("no such rank: " + std::to_string(rank), where, "0 to " + std::to_string(size() - 1));
  }
  /// What the others will read is there before they are told.
  template <class Element>
  void open(group const& g, char const* what, Element const* in, Element* out, i64 n, int root = -1) {
    static_assert(std::is_trivially_copyable_v<Element>);
    memory_.wait();
    world_->open(g.state(), g.index(), {what, n, sizeof(Element), root, in, out});
  }
  void meet(group const& g) {
    memory_.wait();
    world_->meet(g.state(), g.index());
  }
  template <class Element> void copy(Element* to, Element const* from, i64 n, bool adds = false) const {
    if (to != from && n > 0)
      memory_.move_box(exec::line_block(n), exec::line_block(n), from, exec::line_block(n), to, adds);
  }
  /// to[i - begin] = sum of all members' in[i], in group order. `to` may lie in this member's operand, which
  /// is read last into the scratch.
  template <class Element> void sum(group const& g, i64 begin, i64 end, Element* to) {
    if (begin < end && !scratch_.data())
      scratch_ = exec::detail::arena_memory<Memory>(scratch_bytes, memory_);
    Element* const part = reinterpret_cast<Element*>(scratch_.data());
    i64 const block = scratch_bytes / static_cast<i64>(sizeof(Element));
    for (i64 at = begin; at < end; at += block) {
      i64 const n = std::min(block, end - at);
      for (int j = 0; j < g.size(); ++j)
        copy(part, static_cast<Element const*>(g.call_of(j).in) + at, n, j > 0);
      copy(to + (at - begin), static_cast<Element const*>(part), n);
    }
  }

  world* world_;
  int rank_;
  Memory memory_;
  exec::detail::arena_memory<Memory> scratch_{0, memory_};
};

}  // namespace tensorpar::comm
