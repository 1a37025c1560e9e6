// tensorpar/exec/comm/mpi.hpp - the communicator whose ranks are processes of an MPI run
#pragma once
#include <climits>
#include <cstring>
#include <list>
#include <tensorpar/core/index.hpp>
#include <tensorpar/exec/comm/mpi_world.hpp>
#include <type_traits>

namespace tensorpar::comm {

/// One rank's endpoint, for clusters of CPUs. Models `full_communicator` (exec/device/concepts.hpp) for every
/// trivially copyable element with +=.
///
/// MPI moves the data with its non-blocking collectives; sums are added here, in group order, so that they
/// have the same bits on every member and as comm::threads has them, for any element. Every operation begins
/// with an exchange of 32 bytes per member, which finds calls that do not fit. An all-reduce of n elements in
/// a group of g moves 2 n (g - 1) / g per member; of few, n (g - 1) in one exchange. Scratch memory: one more
/// buffer of a sum's operand per group. No operation takes or makes more than 2^31 - 1 bytes per member.
class mpi {
 public:
  using world = mpi_world;
  static constexpr bool overlaps = true;

  class group {
   public:
    int size() const { return static_cast<int>(state_->members.size()); }
    int index() const { return state_->index; }
    int member(int i) const { return state_->members[idx(i)]; }

   private:
    friend class mpi;
    explicit group(world::group_state* s) : state_(s) {}
    world::group_state* state_;
  };

  /// Throws `error` unless `rank` is the process's own.
  mpi(world& h, int rank) : world_(&h) {
    if (rank != h.rank())
      throw error("rank " + std::to_string(rank) + " is another process's", "comm::mpi",
                  "rank " + std::to_string(h.rank()));
  }
  mpi(mpi const&) = delete;
  mpi& operator=(mpi const&) = delete;
  /// Waits until every message has been taken in, if nothing has failed.
  ~mpi() {
    try {
      while (!sent_->empty()) {
        world_->wait({"send", nullptr, 0, sent_->front().to, sent_->front().tag}, &sent_->front().request, 1);
        sent_->pop_front();
      }
    } catch (...) {
      static_cast<void>(sent_.release());            // MPI may still read them
    }
  }

  int rank() const { return world_->rank(); }
  int size() const { return world_->size(); }

  group make_group(core::slice<int> members) { return group(&world_->group_of(members)); }

  void barrier(group const& g) { world_->open(*g.state_, world::call::barrier, 0, 0); }

  template <class Element> void all_reduce(group const& g, Element const* in, Element* out, i64 n) {
    open<Element>(g, world::call::all_reduce, n);
    i64 const members = g.size();
    if (members == 1) return copy(out, in, n);
    if (n * static_cast<i64>(sizeof(Element)) <= few) {
      Element* all = scratch<Element>(g, n * members);
      gather(g, world::call::all_reduce, in, all, n);
      return add(all, n, members, out);
    }
    // everybody adds up one part of the elements
    std::vector<int> counts, offsets, mine_counts, mine_offsets;
    i64 const from = n * g.index() / members, mine = n * (g.index() + 1) / members - from;
    for (i64 j = 0; j < members; ++j) {
      offsets.push_back(bytes<Element>(n * j / members));
      counts.push_back(bytes<Element>(n * (j + 1) / members) - offsets.back());
      mine_offsets.push_back(bytes<Element>(mine * j));
      mine_counts.push_back(bytes<Element>(mine));
    }
    Element* parts = scratch<Element>(g, mine * members);
    MPI_Request r = MPI_REQUEST_NULL;
    world_->watch().call("all_reduce", [&] {
      return MPI_Ialltoallv(in, counts.data(), offsets.data(), MPI_BYTE, parts, mine_counts.data(),
                            mine_offsets.data(), MPI_BYTE, g.state_->comm, &r);
    });
    world_->wait(*g.state_, world::call::all_reduce, &r);
    add(parts, mine, members, out + from);
    world_->watch().call("all_reduce", [&] {
      return MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_BYTE, out, counts.data(), offsets.data(), MPI_BYTE,
                             g.state_->comm, &r);
    });
    world_->wait(*g.state_, world::call::all_reduce, &r);
  }

  template <class Element> void reduce_scatter(group const& g, Element const* in, Element* out, i64 n) {
    open<Element>(g, world::call::reduce_scatter, n);
    if (g.size() == 1) return copy(out, in, n);
    Element* parts = scratch<Element>(g, n * g.size());
    exchange(g, world::call::reduce_scatter, in, parts, n);
    add(parts, n, g.size(), out);
  }

  template <class Element> void all_gather(group const& g, Element const* in, Element* out, i64 n) {
    open<Element>(g, world::call::all_gather, n);
    if (g.size() == 1) return copy(out, in, n);
    gather(g, world::call::all_gather, in, out, n);
  }

  template <class Element> void all_to_all(group const& g, Element const* in, Element* out, i64 n) {
    open<Element>(g, world::call::all_to_all, n);
    if (g.size() == 1) return copy(out, in, n);
    exchange(g, world::call::all_to_all, in, out, n);
  }

  /// Precondition: 0 <= root < g.size().
  template <class Element> void broadcast(group const& g, int root, Element* data, i64 n) {
    open<Element>(g, world::call::broadcast, n, root);
    if (g.size() == 1) return;
    MPI_Request r = MPI_REQUEST_NULL;
    world_->watch().call(
        "broadcast", [&] { return MPI_Ibcast(data, bytes<Element>(n), MPI_BYTE, root, g.state_->comm, &r); });
    world_->wait(*g.state_, world::call::broadcast, &r);
  }

  template <class Element> void send(int to, int tag, Element const* data, i64 n) {
    static_assert(std::is_trivially_copyable_v<Element>);
    known<Element>(to, tag, n);
    world_->watch().stop_if_failed();
    sent_->remove_if([&](message& m) {
      int done = 0;
      world_->watch().call("send", [&] { return MPI_Test(&m.request, &done, MPI_STATUS_IGNORE); });
      return done != 0;
    });
    message& m = sent_->emplace_back();
    m.to = to;
    m.tag = tag;
    m.bytes.resize(idx(bytes<Element>(n)));
    if (n) std::memcpy(m.bytes.data(), data, m.bytes.size());
    world_->watch().call("send", [&] {
      return MPI_Isend(m.bytes.data(), bytes<Element>(n), MPI_BYTE, to, tag, world_->messages(), &m.request);
    });
  }
  template <class Element> void receive(int from, int tag, Element* data, i64 n) {
    static_assert(std::is_trivially_copyable_v<Element>);
    known<Element>(from, tag, n);
    MPI_Message m = MPI_MESSAGE_NULL;
    int sent = 0;
    mpi_wait const w{"receive", nullptr, 0, from, tag};
    world_->watch().wait(w, [&] {
      int there = 0;
      MPI_Status s;
      world_->watch().call("receive",
                           [&] { return MPI_Improbe(from, tag, world_->messages(), &there, &m, &s); });
      if (there) MPI_Get_count(&s, MPI_BYTE, &sent);
      return there != 0;
    });
    if (sent != bytes<Element>(n))
      world_->watch().refuse(error("rank " + std::to_string(from) + " sends " + std::to_string(sent) +
                                     " bytes with tag " + std::to_string(tag) + ", but rank " +
                                     std::to_string(rank()) + " expects " + std::to_string(bytes<Element>(n)),
                                 "comm::mpi", "equal counts on both sides"));
    MPI_Request r = MPI_REQUEST_NULL;
    world_->watch().call("receive", [&] { return MPI_Imrecv(data, sent, MPI_BYTE, &m, &r); });
    world_->wait(w, &r, 1);
  }

 private:
  static constexpr i64 few = 4096;                   // bytes up to which an all-reduce gathers everything

  struct message {
    std::vector<std::byte> bytes;
    MPI_Request request = MPI_REQUEST_NULL;
    int to = 0, tag = 0;
  };

  template <class Element> void known(int rank, int tag, i64 n) const {
    std::string const me = "rank " + std::to_string(this->rank());
    if (rank < 0 || rank >= size())
      throw error("no such rank: " + std::to_string(rank), me, "0 to " + std::to_string(size() - 1));
    if (tag < 0 || tag > world_->last_tag())
      throw error("a message with tag " + std::to_string(tag), me,
                  "0 to " + std::to_string(world_->last_tag()) + " with this MPI");
    if (i64 const most = INT_MAX / static_cast<i64>(sizeof(Element)); n > most)
      throw error("a message of " + std::to_string(n) + " elements", me,
                  "at most " + std::to_string(most) + " with MPI");
  }
  template <class Element> static int bytes(i64 n) {
    return static_cast<int>(n * static_cast<i64>(sizeof(Element)));
  }
  template <class Element> void open(group const& g, world::call c, i64 n, int root = -1) {
    static_assert(std::is_trivially_copyable_v<Element>);
    world_->open(*g.state_, c, n, sizeof(Element), root);
    if (i64 const most = INT_MAX / static_cast<i64>(sizeof(Element));
        n * (c == world::call::all_reduce ? 1 : g.size()) > most)
      world_->watch().refuse(error(std::string(world::name_of(c)) + " of " + std::to_string(n) +
                                     " elements in a group of " + std::to_string(g.size()),
                                 "comm::mpi", "buffers of at most " + std::to_string(most) + " elements"));
  }
  template <class Element> static Element* scratch(group const& g, i64 n) {
    std::vector<std::byte>& s = g.state_->scratch;
    if (s.size() < idx(n) * sizeof(Element))
      s.resize(idx(n) * sizeof(Element));
    return reinterpret_cast<Element*>(s.data());
  }
  template <class Element>
  void gather(group const& g, world::call c, Element const* in, Element* out, i64 n) {
    int const own = bytes<Element>(n);
    void const* from = in == out + g.index() * n ? MPI_IN_PLACE : static_cast<void const*>(in);
    MPI_Request r = MPI_REQUEST_NULL;
    world_->watch().call(world::name_of(c), [&] {
      return MPI_Iallgather(from, own, MPI_BYTE, out, own, MPI_BYTE, g.state_->comm, &r);
    });
    world_->wait(*g.state_, c, &r);
  }
  template <class Element>
  void exchange(group const& g, world::call c, Element const* in, Element* out, i64 n) {
    MPI_Request r = MPI_REQUEST_NULL;
    world_->watch().call(world::name_of(c), [&] {
      return MPI_Ialltoall(in, bytes<Element>(n), MPI_BYTE, out, bytes<Element>(n), MPI_BYTE, g.state_->comm,
                           &r);
    });
    world_->wait(*g.state_, c, &r);
  }
  /// to[i] = sum of the members' parts, in group order.
  template <class Element> static void add(Element const* parts, i64 n, i64 members, Element* to) {
    copy(to, parts, n);
    for (i64 j = 1; j < members; ++j) for (i64 i = 0; i < n; ++i) to[i] += parts[j * n + i];
  }
  template <class Element> static void copy(Element* to, Element const* from, i64 n) {
    if (to != from && n > 0)
      std::memmove(static_cast<void*>(to), from, idx(n) * sizeof(Element));
  }

  world* world_;
  std::unique_ptr<std::list<message>> sent_ = std::make_unique<std::list<message>>();
};

}  // namespace tensorpar::comm
