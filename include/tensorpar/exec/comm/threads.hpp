// tensorpar/exec/comm/threads.hpp - the communicator whose ranks are threads of this process
#pragma once
#include <cstring>
#include <tensorpar/core/index.hpp>
#include <tensorpar/exec/comm/threads_world.hpp>
#include <thread>
#include <type_traits>

namespace tensorpar::comm {

/// One rank's endpoint. Models `full_communicator` (exec/device/concepts.hpp) for every trivially copyable
/// element with +=. Collectives copy straight from the other members' buffers: one copy per element received,
/// two for the result of an all-reduce; a message is copied in and out. Complexity per member, n elements, g
/// members: all_reduce O(n) additions and copies per member of the group, the others O(elements received).
class threads {
 public:
  using world = threads_world;
  using group = threads_group;
  /// A rank may have an endpoint for each of its lanes.
  static constexpr bool lanes = true;

  /// Throws `error` unless 0 <= rank < h.size(). Precondition: h.open_lanes(lane + 1).
  threads(world& h, int rank, int lane = 0) : world_(&h), rank_(rank), lane_(lane) {
    if (rank < 0 || rank >= h.size())
      throw error("no such rank: " + std::to_string(rank), "comm::threads",
                  "0 to " + std::to_string(h.size() - 1));
  }
  int rank() const { return rank_; }
  int size() const { return world_->size(); }

  group make_group(core::slice<int> members) { return {*world_, members, rank_}; }

  void barrier(group const& g) {
    world_->open(g.state(), g.index(), {"barrier", 0, 0, -1, nullptr, nullptr}, lane_);
  }

  template <class Element> void all_reduce(group const& g, Element const* in, Element* out, i64 n) {
    open(g, "all_reduce", in, out, n);
    int const members = g.size();
    Element part[block];
    if (n <= block) {                                          // everybody adds everything: one meeting less
      sum(g, 0, n, part);
      world_->meet(g.state(), g.index(), lane_);
      copy(out, part, n);
      return;
    }
    i64 const from = n * g.index() / members, to = n * (g.index() + 1) / members;
    for (i64 at = from; at < to; at += block) {
      i64 const len = to - at < block ? to - at : block;
      sum(g, at, len, part);
      copy(out + at, part, len);
    }
    world_->meet(g.state(), g.index(), lane_);
    for (int j = 0; j < members; ++j)
      if (j != g.index())
        copy(out + n * j / members, static_cast<Element const*>(g.call_of(j).out) + n * j / members,
             n * (j + 1) / members - n * j / members);
    world_->meet(g.state(), g.index(), lane_);
  }

  template <class Element> void reduce_scatter(group const& g, Element const* in, Element* out, i64 n) {
    open(g, "reduce_scatter", in, out, n);
    Element part[block];
    for (i64 at = 0; at < n; at += block) {
      i64 const len = n - at < block ? n - at : block;
      sum(g, g.index() * n + at, len, part);
      copy(out + at, part, len);
    }
    world_->meet(g.state(), g.index(), lane_);
  }

  template <class Element> void all_gather(group const& g, Element const* in, Element* out, i64 n) {
    open(g, "all_gather", in, out, n);
    for (int j = 0; j < g.size(); ++j) copy(out + j * n, static_cast<Element const*>(g.call_of(j).in), n);
    world_->meet(g.state(), g.index(), lane_);
  }

  template <class Element> void all_to_all(group const& g, Element const* in, Element* out, i64 n) {
    open(g, "all_to_all", in, out, n);
    for (int j = 0; j < g.size(); ++j)
      copy(out + j * n, static_cast<Element const*>(g.call_of(j).in) + g.index() * n, n);
    world_->meet(g.state(), g.index(), lane_);
  }

  /// Precondition: 0 <= root < g.size().
  template <class Element> void broadcast(group const& g, int root, Element* data, i64 n) {
    open(g, "broadcast", data, data, n, root);
    if (root != g.index()) copy(data, static_cast<Element const*>(g.call_of(root).in), n);
    world_->meet(g.state(), g.index(), lane_);
  }

  template <class Element> void send(int to, int tag, Element const* data, i64 n) {
    static_assert(std::is_trivially_copyable_v<Element>);
    known(to);
    std::vector<std::byte> bytes = world_->buffer(idx(n) * sizeof(Element));
    if (n) std::memcpy(bytes.data(), data, bytes.size());
    world_->post(to, {rank_, tag, n, sizeof(Element), std::move(bytes), lane_});
  }
  template <class Element> void receive(int from, int tag, Element* data, i64 n) {
    static_assert(std::is_trivially_copyable_v<Element>);
    known(from);
    world::message m = world_->take(rank_, from, tag, n, sizeof(Element), lane_);
    if (n) std::memcpy(data, m.bytes.data(), m.bytes.size());
    world_->give_back(std::move(m.bytes));
  }

 private:
  static constexpr i64 block = 512;                            // elements added up on the stack at a time

  void known(int rank) const {
    if (rank < 0 || rank >= size())
      throw error("no such rank: " + std::to_string(rank), "rank " + std::to_string(rank_),
                  "0 to " + std::to_string(size() - 1));
  }
  template <class Element>
  void open(group const& g, char const* what, Element const* in, Element* out, i64 n, int root = -1) {
    static_assert(std::is_trivially_copyable_v<Element>);
    world_->open(g.state(), g.index(), {what, n, sizeof(Element), root, in, out}, lane_);
  }
  /// to[i] = sum of all members' in[at + i], in group order.
  template <class Element> static void sum(group const& g, i64 at, i64 n, Element* to) {
    copy(to, static_cast<Element const*>(g.call_of(0).in) + at, n);
    for (int j = 1; j < g.size(); ++j) {
      Element const* x = static_cast<Element const*>(g.call_of(j).in) + at;
      for (i64 i = 0; i < n; ++i) to[i] += x[i];
    }
  }
  template <class Element> static void copy(Element* to, Element const* from, i64 n) {
    if (to != from && n > 0)
      std::memmove(static_cast<void*>(to), from, idx(n) * sizeof(Element));
  }

  world* world_;
  int rank_, lane_;
};

/// Runs work(endpoint) for every rank of a world, each on its own thread, and waits for all. What one rank
/// throws stops the others and is thrown here.
template <class Endpoint = threads, class Work> void run_ranks(threads_world& h, Work const& work) {
  std::vector<std::thread> running;
  auto one = [&h, &work](int rank) {
    try {
      Endpoint endpoint(h, rank);
      work(endpoint);
    } catch (...) {
      h.fail(std::current_exception(), rank);
    }
  };
  try {
    running.reserve(idx(h.size()));
    for (int i = 1; i < h.size(); ++i) running.emplace_back(one, i);
  // the system starts no more: those that run must end
  } catch (...) {
    h.fail(std::current_exception(), -1);
  }
  one(0);
  for (std::thread& t : running) t.join();
  if (auto const e = h.failure()) std::rethrow_exception(e);
}

}  // namespace tensorpar::comm
