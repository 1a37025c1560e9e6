// tensorpar/exec/nccl/rank.hpp - one rank of an NCCL run: its communicators, what its queues were given, and
// all ways to fail
#pragma once
#include <algorithm>
#include <map>
#include <memory>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/slice.hpp>
#include <tensorpar/exec/comm/processes.hpp>
#include <tensorpar/exec/nccl/library.hpp>
#include <tensorpar/exec/nccl/mail.hpp>
#include <tensorpar/exec/nccl/running.hpp>
#include <tensorpar/exec/nccl/world.hpp>

namespace tensorpar::comm {

/// Members of a group, and the communicator among them.
template <class Library> struct nccl_group_state {
  std::vector<int> members;
  int index = 0;
  typename Library::comm comm{};
  u64 number = 0;                                    // operations begun
};

namespace detail {

/// What messages of one channel need at one of its ends.
template <class Library, class Memory> struct nccl_channel {
  struct waiting {
    exec::planned_message what;
    typename mail_room<Memory>::item bytes;
  };
  mail_order order;
  typename Library::comm comm{};
  u64 number = 0;                                    // operations begun
  // of sends; where the rank has several lanes of receives too, as they may be of any lane
  std::optional<Memory> queue;
  int queue_number = 0;
  std::deque<waiting> early;                         // received before anybody asked for it
};

/// All of `basic_nccl` but its operations. One thread drives it.
template <class Library, exec::queued_memory Memory>
  requires exec::collective_library<Library, Memory>
class nccl_rank {
 protected:
  using handle = typename Library::comm;
  using status = typename Library::status;
  using group_state = nccl_group_state<Library>;
  using channel = nccl_channel<Library, Memory>;

 public:
  using world = nccl_world<Library>;

  /// Throws `error` unless the rank is one of this process.
  nccl_rank(world& h, int rank, Memory const& m)
      : world_(&h), rank_(rank), memory_(m), queue_(m.beside()), queues_{queue_} {
    std::vector<int> const here = h.local();
    if (std::find(here.begin(), here.end(), rank) == here.end())
      throw error("rank " + std::to_string(rank) + " is not one of this process", "comm::nccl",
                  "a rank of its world");
  }
  nccl_rank(nccl_rank const&) = delete;
  nccl_rank& operator=(nccl_rank const&) = delete;
  ~nccl_rank() {
    if (world_->failed()) abandon();
    else world_->end(comms_);
  }

  int rank() const { return rank_; }
  int size() const { return world_->size(); }
  /// That of a lane of communication.
  Memory const& queue(int lane = 0) const { return queues_[idx(lane)]; }
  /// Before `prepare`: this rank communicates in so many lanes, in a queue each. All ranks say the same.
  void open_lanes(int n) { while (static_cast<int>(queues_.size()) < n) queues_.push_back(memory_.beside()); }
  /// The operations that follow are in this lane. Precondition: a group's are always in the same one.
  void in_lane(int lane) {
    lane_ = lane;
    queue_ = queues_[idx(lane)];
  }

  /// Joins the other ranks, who all say the same, and sends a byte on every way of messages: with the first
  /// one the library connects its ends, for which the host of each waits for the other's. In a step, where
  /// one sends early what the other receives late, hosts could so wait for one another in a circle;
  /// collectives cannot, since all ranks come to them in the order of the program. Throws `error` where one
  /// is missing past the deadline, or is to run another program.
  void prepare(exec::traffic const& t) {
    memory_.wait();
    handle const everyone = join();
    everyone_.comm = everyone;
    for (int i = 0; i < size(); ++i) everyone_.members.push_back(i);
    everyone_.index = rank_;
    // before groups, which might not fit each other
    if (world_->local().size() < idx(size())) compare(t.program);
    // a byte to send, and one to receive
    exec::detail::arena_memory<Memory> const first(2, queue_);
    queue_.wait();                                     // other queues read it
    for (auto const& round : exec::channel_rounds(t, size())) {
      int color = -1, key = 0;
      for (std::size_t k = 0; k < round.size(); ++k)
        if (auto const& m = round[k].members; std::find(m.begin(), m.end(), rank_) != m.end()) {
          color = static_cast<int>(k);
          key = static_cast<int>(std::find(m.begin(), m.end(), rank_) - m.begin());
        }
      bool const message = color >= 0 && round[idx(color)].message;
      settle(everyone, Library::split(everyone, color, key, message, coming_), "forming groups");
      if (color < 0) continue;
      handle const made = has_come("forming groups");
      auto const& members = round[idx(color)].members;
      if (!message) {
        groups_[members] = std::make_unique<group_state>(group_state{members, key, made});
        continue;
      }
      channel& w = key == 0 ? out_[members[1]] : in_[members[0]];
      w.comm = made;
      if (key == 0 || queues_.size() > 1) {
        w.queue.emplace(memory_.beside());
        w.queue_number = static_cast<int>(out_.size() + in_.size());
      }
      if (key == 0) {
        operate(w, *w.queue, w.queue_number, {"connecting", "to rank " + std::to_string(members[1]), 0, -1},
                [&] { return Library::send(first.data(), 1, Library::bytes, 1, made, *w.queue); });
      } else {
        Memory const& q = w.queue ? *w.queue : queue_;
        operate(w, q, w.queue_number, {"connecting", "to rank " + std::to_string(members[0]), 0, -1},
                [&] { return Library::receive(first.data() + 1, 1, Library::bytes, 0, made, q); });
      }
    }
    drain();
    messages(t);
  }
  /// Between steps: from now on these are a step's messages. Precondition: on channels that `prepare` was
  /// told of; all ranks say the same.
  void messages(exec::traffic const& t) {
    for (auto* side : {&out_, &in_}) for (auto& [other, w] : *side) w.order.clear();
    for (exec::planned_message const& m : t.messages) {
      if (m.from == rank_) out_[m.to].order.add(m);
      if (m.to == rank_) in_[m.from].order.add(m);
    }
  }

  /// The task of the plan that the next operations belong to.
  void at_task(int task) { task_ = task; }
  /// The task of the operation that took too long; -1: there is none.
  int stuck_at() const { return stuck_; }

  /// Returns when everything this rank was asked for is done. Throws what has failed: here, in another rank
  /// of this process, in NCCL, or an operation past the deadline.
  void drain() {
    watch([&] { return running_.empty(); });
    for (Memory const& q : queues_) q.wait();
    look();                                            // an operation that has failed may have ended as well
  }
  /// Returns when `q`, a queue of this device, has done what it was asked for so far, which may stand behind
  /// operations of this rank's. Throws as `drain` does: who waits for q itself never learns that they do not
  /// end.
  void wait_for(Memory const& q) {
    auto done = q.make_mark();
    q.set(done);
    watch([&] { return q.reached(done); });
  }
  /// Ends all that is under way, whatever comes of it. A world that was joined stays with the world, if the
  /// library can go on from it.
  void abandon() noexcept {
    handle kept{};
    if constexpr (exec::shrinking_library<Library>) {
      auto const taken = [](status s) { return s == Library::ok || s == Library::in_progress; };
      // all are stopped before any is waited for: one's operation may stand behind another's in a queue
      if (everyone_.comm != handle{})
        for (handle c : comms_) if (taken(Library::revoke(c)) && c == everyone_.comm) kept = c;
    }
    for (handle c : comms_) if (c != kept && c != handle{}) Library::abort(c);
    comms_.clear();
    // after what it was coming from
    if (coming_ != handle{}) Library::abort(std::exchange(coming_, handle{}));
    if (kept != handle{}) world_->keep(rank_, kept);
    everyone_.comm = {};
  }

 private:
  /// All ranks' communicator: a new one, or what is left of one that has failed.
  handle join() {
    if constexpr (exec::shrinking_library<Library>) {
      if (handle const old = world_->take_old(rank_); old != handle{}) {
        std::vector<int> const lost = world_->lost();
        std::string const what =
            lost.empty() ? "going on with all ranks" : "going on without ranks " + listed(lost);
        comms_.push_back(old);
        settle(old, Library::in_progress, "stopping what has failed");
        settle(old,
               lost.empty() ? Library::split(old, 0, rank_, false, coming_)
                            : Library::shrink(old, lost.data(), static_cast<int>(lost.size()), coming_),
               what.c_str());
        handle const made = has_come(what.c_str());
        Library::destroy(old);
        comms_.erase(comms_.begin());
        return made;
      }
    }
    handle made{};
    status const joining = Library::init(made, size(), world_->id(), rank_);
    comms_.push_back(made);
    settle(made, joining, "joining all ranks");
    return made;
  }
  /// Throws `error` where a rank has another number than rank 0. One that is behind may hear first that
  /// another has ended the world.
  void compare(u64 mine) {
    constexpr i64 each = sizeof mine;
    std::vector<u64> all(idx(size()));
    exec::detail::arena_memory<Memory> there(each * size(), queue_);
    queue_.write(there.data() + each * rank_, &mine, each);
    std::byte* const at = there.data();
    operate(everyone_, queue_, 0, {"comparing programs", "of all ranks", 1, -1}, [&] {
      return Library::all_gather(at + each * rank_, at, sizeof mine, Library::bytes, everyone_.comm, queue_);
    });
    drain();
    queue_.read(all.data(), there.data(), each * size());
    std::vector<int> other;
    for (int r = 1; r < size(); ++r) if (all[idx(r)] != all[0]) other.push_back(r);
    exec::detail::require_none_other(other);
  }
  /// The communicator that another one was asked for.
  handle has_come(char const* what) {
    comms_.push_back(std::exchange(coming_, handle{}));
    settle(comms_.back(), Library::in_progress, what);
    return comms_.back();
  }

 protected:
  static std::string listed(std::vector<int> const& v) {
    std::string r;
    for (int x : v) r.append(r.empty() ? "{" : ",").append(std::to_string(x));
    return r + "}";
  }
  std::string too_long() const {
    return " for more than " + std::to_string(world_->deadline().count()) + " ms";
  }
  /// Its own, for good. Throws `error` unless `prepare` was told of the group, or it is this rank alone.
  group_state& group_of(core::slice<int> members) {
    std::vector<int> const all(members.begin(), members.end());
    auto i = groups_.find(all);
    if (i == groups_.end() && all == std::vector<int>{rank_})
      i = groups_.emplace(all, std::make_unique<group_state>(group_state{all, 0, {}})).first;
    if (i == groups_.end())
      throw error("rank " + std::to_string(rank_) + " has no group " + listed(all), "comm::nccl",
                  "a group that `prepare` was told of");
    return *i->second;
  }

  [[noreturn]] void fail(error const& e) {
    world_->fail(std::make_exception_ptr(e), rank_);
    abandon();
    throw e;
  }
  void stop_if_failed() {
    if (!world_->failed()) return;
    abandon();
    std::rethrow_exception(world_->failure());
  }
  /// Has anything failed that this rank can see?
  void look() {
    stop_if_failed();
    for (handle c : comms_) {
      status s = Library::ok;
      if (status const asked = Library::state(c, s); asked != Library::ok) s = asked;
      if (s != Library::ok && s != Library::in_progress)
        stuck_ = running_.empty() ? task_ : running_.first().task;
      settle(c, s, "an operation");
    }
  }
  /// Waits until `done`. Throws what has failed by then, or an operation past the deadline.
  template <class Done> void watch(Done const& done) {
    for (unsigned turn = 0; !done(); pause(turn++)) {
      if (turn % 64 == 0) look();
      else stop_if_failed();
      if (operation_name const* late = running_.overdue(queue_, world_->deadline())) {
        stuck_ = late->task;
        fail(error("rank " + std::to_string(rank_) + " waits in " + late->what + " number " +
                       std::to_string(late->number) + " " + late->with + too_long(),
                   "comm::nccl", "every member joins in time"));
      }
    }
  }
  /// Waits until the library has taken a call.
  void settle(handle c, status s, char const* what) {
    auto const end = std::chrono::steady_clock::now() + world_->deadline();
    for (unsigned turn = 0; s == Library::in_progress; pause(turn++)) {
      stop_if_failed();
      if (std::chrono::steady_clock::now() > end)
        fail(error("rank " + std::to_string(rank_) + " waits in " + what + too_long(), "comm::nccl",
                   "every rank joins in time"));
      if (status const asked = Library::state(c, s); asked != Library::ok) s = asked;
    }
    if (s != Library::ok)
      fail(error("NCCL says: " + std::string(Library::words(s)),
                 "rank " + std::to_string(rank_) + ", " + what, ""));
  }
  template <class Call>
  void operate(auto& on, Memory const& q, int queue, operation_name name, Call const& call) {
    stop_if_failed();
    char const* const what = name.what;
    running_.begin(q, queue, std::move(name));
    settle(on.comm, call(), what);
    running_.end(q);
  }

  world* world_;
  int rank_;
  Memory memory_, queue_;                              // the queue of the lane at hand
  std::vector<Memory> queues_;                         // by lane
  int lane_ = 0;
  group_state everyone_;
  std::vector<handle> comms_;
  handle coming_{};                                    // asked for, and not there: the library will write it
  std::map<std::vector<int>, std::unique_ptr<group_state>> groups_;
  std::map<int, channel> out_, in_;                        // by the rank at the other end
  int task_ = -1, stuck_ = -1;
  running_operations<Memory> running_;
};

}  // namespace detail
}  // namespace tensorpar::comm
