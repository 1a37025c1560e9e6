// tensorpar/exec/nccl/endpoint.hpp - collectives and messages of an NCCL run, as work in a device's queues
#pragma once
#include <deque>
#include <map>
#include <tensorpar/core/index.hpp>
#include <tensorpar/exec/nccl/rank.hpp>

namespace tensorpar::comm {

/// Models `full_communicator` (exec/device/concepts.hpp) for every trivially copyable element that the memory
/// adds. Its work is in `queue(lane)`: calls return at once, `drain` waits. Sums of elements that the library
/// knows are the library's, in its own order. Others are exchanged as bytes and added here in group order.
/// That takes scratch memory: one more buffer of a sum's operand, of each size that is larger than those
/// before.
/// All ranks call `prepare` together. It makes a communicator for every group, and one for every channel. A
/// message is copied into a buffer of its own and sent by the channel's own queue, so a send never waits for
/// its receive. Ends of a channel keep the order that `prepare` was told.
template <class Library, exec::queued_memory Memory>
class basic_nccl : detail::nccl_rank<Library, Memory>, process_talk {
  using base = detail::nccl_rank<Library, Memory>;
  using status = typename base::status;
  using group_state = typename base::group_state;
  using channel = typename base::channel;
  using base::world_, base::in_, base::listed, base::operate, base::out_, base::queue_, base::rank_,
      base::stop_if_failed, base::task_, base::everyone_, base::lane_;

 public:
  using world = nccl_world<Library>;
  using library = Library;
  using memory = Memory;
  /// Operations are work in a queue, of the lane that `in_lane` says.
  static constexpr bool queued = true, lanes = true;

  class group {
   public:
    int size() const { return static_cast<int>(state_->members.size()); }
    int index() const { return state_->index; }
    int member(int i) const { return state_->members[idx(i)]; }

   private:
    friend class basic_nccl;
    explicit group(group_state* s) : state_(s) {}
    group_state* state_;
  };

  using base::base, base::abandon, base::at_task, base::drain, base::in_lane, base::messages,
      base::open_lanes, base::queue, base::rank, base::size, base::stuck_at, base::wait_for;

  ~basic_nccl() {
    // before memory is given back, which waits for what uses it
    if (world_->failed()) abandon();
  }

  /// Joins the other ranks, who all say the same. Throws `error` where one is missing past the deadline, or
  /// is to run another program.
  void prepare(exec::traffic const& t) {
    base::prepare(t);
    if (world_->local().size() < idx(size())) world_->talk_by(*this);
  }
  /// Throws `error` unless `prepare` was told of the group, or it is this rank alone.
  group make_group(core::slice<int> members) { return group(&base::group_of(members)); }

  void barrier(group const& g) {
    if (g.size() > 1) {
      auto* const p = reinterpret_cast<char*>(scratch(g.size()));
      operate(*g.state_, "barrier", [&] {
        return Library::all_gather(p + g.index(), p, 1, Library::bytes, g.state_->comm, queue_);
      });
    }
    drain();
  }
  template <class Element> void all_reduce(group const& g, Element const* in, Element* out, i64 n) {
    group_state& s = *g.state_;
    i64 const members = g.size();
    if (members == 1) return copy(out, in, n);
    if (auto const code = Library::template code_of<Element>())
      return operate(s, "all_reduce",
                     [&] { return Library::all_reduce(in, out, whole(n), *code, s.comm, queue_); });
    auto const begin = [&](i64 j) { return n * j / members; };
    auto const count = [&](i64 j) { return begin(j + 1) - begin(j); };
    i64 const me = g.index(), mine = count(me);
    auto const own = [&](i64) { return mine; };
    Element* const parts = room<Element>(mine * members);
    exchange(
        s, "all_reduce", [&](i64 j) { return in + begin(j); }, count, [&](i64 j) { return parts + j * mine; },
        own);
    add(parts, mine, members, out + begin(me));
    exchange(
        s, "all_reduce", [&](i64) { return out + begin(me); }, own, [&](i64 j) { return out + begin(j); },
        count);
  }
  template <class Element> void reduce_scatter(group const& g, Element const* in, Element* out, i64 n) {
    group_state& s = *g.state_;
    if (g.size() == 1) return copy(out, in, n);
    if (auto const code = Library::template code_of<Element>())
      return operate(s, "reduce_scatter",
                     [&] { return Library::reduce_scatter(in, out, whole(n), *code, s.comm, queue_); });
    Element* const parts = room<Element>(n * g.size());
    auto const all = [&](i64) { return n; };
    exchange(
        s, "reduce_scatter", [&](i64 j) { return in + j * n; }, all, [&](i64 j) { return parts + j * n; },
        all);
    add(parts, n, g.size(), out);
  }
  template <class Element> void all_gather(group const& g, Element const* in, Element* out, i64 n) {
    if (g.size() == 1) return copy(out, in, n);
    group_state& s = *g.state_;
    operate(s, "all_gather",
            [&] { return Library::all_gather(in, out, whole<Element>(n), Library::bytes, s.comm, queue_); });
  }
  template <class Element> void all_to_all(group const& g, Element const* in, Element* out, i64 n) {
    if (g.size() == 1) return copy(out, in, n);
    auto const all = [&](i64) { return n; };
    exchange(
        *g.state_, "all_to_all", [&](i64 j) { return in + j * n; }, all, [&](i64 j) { return out + j * n; },
        all);
  }
  /// Precondition: 0 <= root < g.size().
  template <class Element> void broadcast(group const& g, int root, Element* data, i64 n) {
    if (g.size() == 1) return;
    group_state& s = *g.state_;
    operate(s, "broadcast", [&] {
      return Library::broadcast(data, data, whole<Element>(n), Library::bytes, root, s.comm, queue_);
    });
  }

  /// Throws `error` unless this is the message that `prepare` was told is sent next on this channel (messages
  /// to oneself come as they like).
  template <class Element> void send(int to, int tag, Element const* data, i64 n) {
    stop_if_failed();
    known(to);
    channel& w = to == rank_ ? own_ : out_[to];
    exec::planned_message const m{rank_, to, tag, n, sizeof(Element)};
    if (to != rank_) w.order.expect(m);
    auto const bytes = mail_.take(queue_, whole<Element>(n));
    copy(reinterpret_cast<Element*>(mail_.data(bytes)), data, n);
    if (to == rank_) return w.early.push_back({m, bytes});
    w.order.advance();
    follow(*w.queue, queue_);
    operate(w, *w.queue, w.queue_number, {"send", "to rank " + std::to_string(to), ++w.number, task_}, [&] {
      return Library::send(mail_.data(bytes), whole<Element>(n), Library::bytes, 1, w.comm, *w.queue);
    });
    mail_.give_back(bytes, *w.queue);
  }
  /// What is sent before it on this channel, and asked for later, is received too. Throws `error` if no such
  /// message is ever sent.
  template <class Element> void receive(int from, int tag, Element* data, i64 n) {
    stop_if_failed();
    known(from);
    channel& w = from == rank_ ? own_ : in_[from];
    for (auto i = w.early.begin(); i != w.early.end(); ++i) {
      if (i->what.tag != tag) continue;
      fits(i->what, n, sizeof(Element));
      if (w.queue) follow(queue_, *w.queue);
      copy(data, reinterpret_cast<Element const*>(mail_.data(i->bytes)), n);
      mail_.give_back(i->bytes, queue_);
      w.early.erase(i);
      return;
    }
    for (std::size_t left = w.order.size(); left > 0; --left) {
      exec::planned_message const m = w.order.next();
      w.order.advance();
      if (m.tag == tag) {
        fits(m, n, sizeof(Element));
        return take(w, m, data);
      }
      w.early.push_back({m, mail_.take(queue_, whole(m.count * m.bytes))});
      take(w, m, mail_.data(w.early.back().bytes));
    }
    throw error("rank " + std::to_string(from) + " sends nothing with tag " + std::to_string(tag) +
                    " to rank " + std::to_string(rank_),
                "comm::nccl", "a message that `prepare` was told of");
  }

 private:
  template <class Element = std::byte> static std::size_t whole(i64 n) {
    return idx(n) * sizeof(Element);
  }

  template <class Call> void operate(group_state& s, char const* what, Call const& call) {
    operate(s, queue_, -lane_, {what, "of group " + listed(s.members), ++s.number, task_}, call);
  }
  /// Member j gets give_count(j) elements from give(j), and take_count(j) of its come to take(j).
  void exchange(group_state& s, char const* what, auto give, auto give_count, auto take, auto take_count) {
    using element = std::remove_pointer_t<decltype(take(i64{0}))>;
    operate(s, what, [&] {
      status r = Library::group_start();
      auto const also = [&](status x) { if (r == Library::ok || r == Library::in_progress) r = x; };
      for (int j = 0; j < static_cast<int>(s.members.size()); ++j) {
        if (j == s.index) continue;
        if (i64 const n = give_count(j))
          also(Library::send(give(j), whole<element>(n), Library::bytes, j, s.comm, queue_));
        if (i64 const n = take_count(j))
          also(Library::receive(take(j), whole<element>(n), Library::bytes, j, s.comm, queue_));
      }
      also(Library::group_end());
      return r;
    });
    copy(take(s.index), static_cast<element const*>(give(s.index)), take_count(s.index));
  }
  void take(channel& w, exec::planned_message const& m, void* to) {
    Memory const& q = w.queue ? *w.queue : queue_;
    if (w.queue) follow(*w.queue, queue_);
    operate(w, q, w.queue ? w.queue_number : -lane_,
            {"receive", "from rank " + std::to_string(m.from), ++w.number, task_}, [&] {
              return Library::receive(to, whole(m.count * m.bytes), Library::bytes, 0, w.comm, q);
            });
    if (w.queue) follow(queue_, *w.queue);
  }
  /// What q is asked for from now on is done after all that `other` was asked for.
  static void follow(Memory const& q, Memory const& other) {
    auto done = other.make_mark();
    other.set(done);
    q.follow(done);
  }
  void known(int other) const {
    if (other < 0 || other >= size())
      throw error("no such rank: " + std::to_string(other), "rank " + std::to_string(rank_),
                  "0 to " + std::to_string(size() - 1));
  }
  void fits(exec::planned_message const& m, i64 n, i64 bytes) const {
    if (m.count == n && m.bytes == bytes) return;
    throw error("rank " + std::to_string(m.from) + " sends " + detail::mail_order::words(m) + ", but rank " +
                    std::to_string(rank_) + " expects " + std::to_string(n) + " of " + std::to_string(bytes),
                "comm::nccl", "equal elements on both sides");
  }
  std::byte* scratch(i64 bytes) {
    auto& here = scratch_[lane_];
    // the smaller ones may be in use
    if (here.empty() || here.back().size() < bytes) here.emplace_back(bytes, queue_);
    return here.back().data();
  }
  template <class Element> Element* room(i64 n) {
    return reinterpret_cast<Element*>(scratch(n * static_cast<i64>(sizeof(Element))));
  }
  template <class Element> void copy(Element* to, Element const* from, i64 n, bool adds = false) const {
    if (to != from && n > 0)
      queue_.move_box(exec::line_block(n), exec::line_block(n), from, exec::line_block(n), to, adds);
  }
  /// to[i] = sum of the members' parts, in group order.
  template <class Element> void add(Element* parts, i64 n, i64 members, Element* to) const {
    for (i64 j = 1; j < members; ++j) copy(parts, static_cast<Element const*>(parts + j * n), n, true);
    copy(to, static_cast<Element const*>(parts), n);
  }
  void share(int root, void* p, std::size_t n) override {
    in_lane(0);
    std::byte* const there = scratch(static_cast<i64>(n));
    if (rank_ == root) queue_.write(there, p, static_cast<i64>(n));
    operate(everyone_, "sharing", [&] {
      return Library::broadcast(there, there, n, Library::bytes, root, everyone_.comm, queue_);
    });
    drain();
    queue_.read(p, there, static_cast<i64>(n));
  }
  void add_up(double* x, int n) override {
    in_lane(0);
    auto* const there = room<double>(n);
    queue_.write(there, x, n * static_cast<i64>(sizeof(double)));
    operate(everyone_, "adding up", [&] {
      return Library::all_reduce(there, there, whole(n), *Library::template code_of<double>(), everyone_.comm,
                                 queue_);
    });
    drain();
    queue_.read(x, there, n * static_cast<i64>(sizeof(double)));
  }

  channel own_;
  detail::mail_room<Memory> mail_;
  std::map<int, std::deque<exec::detail::arena_memory<Memory>>> scratch_;      // by lane
};

}  // namespace tensorpar::comm
