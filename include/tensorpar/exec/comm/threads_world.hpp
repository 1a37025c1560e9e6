// tensorpar/exec/comm/threads_world.hpp - where in-process ranks meet: rendezvous, messages, and one failure
// that stops everybody
#pragma once
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tensorpar/core/config.hpp>
#include <tensorpar/core/error.hpp>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/slice.hpp>
#include <utility>
#include <vector>

namespace tensorpar::comm {

/// Shared by n ranks, each driven by one thread at a time, or by one for each of its lanes (`open_lanes`).
/// Outlives its endpoints. Data is not copied here; ranks publish pointers and meet.
///
/// Nothing hangs. The first failure (`fail`, a deadline, calls that do not fit each other, or all ranks
/// waiting for each other) is kept, and every operation that waits or starts afterwards throws that same
/// exception on every rank. A world that has failed stays failed until `recover`.
class threads_world {
 public:
  /// What one member of a group calls.
  struct call {
    char const* what = "";
    i64 count = 0;
    std::size_t element = 0;             // bytes
    int root = -1;
    void const* in = nullptr;
    void* out = nullptr;
  };
  struct group_state {
    std::vector<int> members;
    std::vector<call> calls;             // of the operation in progress, by place in the group
    std::vector<u64> sequence;           // operations begun, by place
    int arrived = 0;
    u64 generation = 0;
  };

  explicit threads_world(int ranks, std::chrono::milliseconds deadline = std::chrono::seconds(60))
      : deadline_(deadline), ranks_(ranks) {
    if (ranks < 1) throw error("a world needs at least one rank", "threads_world", "");
    inbox_.resize(idx(ranks));
    open_lanes(1);
  }
  threads_world(threads_world const&) = delete;
  threads_world& operator=(threads_world const&) = delete;

  int size() const { return ranks_; }
  /// From now on every rank has at least n lanes, each of which may be in an operation at the same time: of
  /// groups that no other lane uses. Messages of one lane are received by the other rank's lane of that
  /// number.
  void open_lanes(int n) {
    std::lock_guard lock(m_);
    while (seats_.size() < idx(n) * idx(ranks_)) seats_.push_back(std::make_unique<seat>());
  }

  /// Stops every rank with this error; the first one counts. Call it when a rank's work throws.
  void fail(std::exception_ptr e, int rank) {
    std::lock_guard lock(m_);
    fail_locked(std::move(e), rank);
  }
  /// The first failure, or null; and the rank it came from, or -1.
  std::exception_ptr failure() const { std::lock_guard lock(m_); return failure_; }
  int failed_rank() const { std::lock_guard lock(m_); return failed_rank_; }
  /// Forgets the failure, and what was begun before it. Precondition: no rank is in an operation.
  void recover() {
    std::lock_guard lock(m_);
    failure_ = nullptr;
    failed_rank_ = -1;
    for (auto const& g : groups_) {
      u64 const most = *std::max_element(g.second->sequence.begin(), g.second->sequence.end());
      std::fill(g.second->sequence.begin(), g.second->sequence.end(), most);
      g.second->arrived = 0;
    }
    for (auto& all : inbox_) all.clear();
    for (auto const& s : seats_) s->waiting = false;
  }
  /// Messages sent and not yet received.
  i64 undelivered() const {
    std::lock_guard lock(m_);
    i64 n = 0;
    for (auto const& all : inbox_) n += static_cast<i64>(all.size());
    return n;
  }

  /// O(members * log groups). Throws `error` unless members are sorted, distinct, in range and contain
  /// `rank`.
  group_state& group_of(core::slice<int> members, int rank) {
    bool found = false;
    for (int i = 0; i < members.n; ++i) {
      if (members[i] < 0 || members[i] >= size() || (i && members[i] <= members[i - 1]))
        throw error("a group's members must be ascending ranks", "rank " + std::to_string(rank),
                    "0 to " + std::to_string(size() - 1));
      found = found || members[i] == rank;
    }
    if (!found)
      throw error("a rank must be a member of the group it forms", "rank " + std::to_string(rank), "");
    std::vector<int> key(members.begin(), members.end());
    std::lock_guard lock(m_);
    auto& g = groups_[key];
    if (!g) {
      g = std::make_unique<group_state>();
      g->calls.resize(key.size());
      g->sequence.resize(key.size());
      g->members = std::move(key);
    }
    return *g;
  }

  /// Publishes this member's call and returns when all members have published theirs, in their lane of this
  /// number. Throws where calls do not fit.
  void open(group_state& g, int index, call const& c, int lane = 0) {
    std::unique_lock lock(m_);
    g.calls[idx(index)] = c;
    ++g.sequence[idx(index)];
    meet(lock, g, index, lane, true);
  }
  /// Returns when all members have come here.
  void meet(group_state& g, int index, int lane = 0) {
    std::unique_lock lock(m_);
    meet(lock, g, index, lane, false);
  }

  struct message {
    int from, tag;
    i64 count;
    std::size_t element;
    std::vector<std::byte> bytes;
    int lane = 0;
  };
  /// A buffer for one message; buffers go round, so a steady state takes no memory from the heap.
  std::vector<std::byte> buffer(std::size_t bytes) {
    std::vector<std::byte> b;
    {
      std::lock_guard lock(m_);
      stop_if_failed();
      if (!spare_.empty()) {
        std::size_t best = spare_.size() - 1;
        for (std::size_t i = 0; i < spare_.size(); ++i)
          if (spare_[i].capacity() >= bytes &&
              (spare_[best].capacity() < bytes || spare_[i].capacity() < spare_[best].capacity()))
            best = i;
        b.swap(spare_[best]);
        spare_[best].swap(spare_.back());
        spare_.pop_back();
      }
    }
    b.resize(bytes);
    return b;
  }
  void give_back(std::vector<std::byte>&& b) { std::lock_guard lock(m_); spare_.push_back(std::move(b)); }
  void post(int to, message&& x) {
    std::lock_guard lock(m_);
    stop_if_failed();
    seat& s = seat_of(to, x.lane);
    if (s.waiting && !s.group && s.peer == x.from && s.tag == x.tag) wake(s);
    inbox_[idx(to)].push_back(std::move(x));
  }
  /// The oldest message of this sender, tag and lane. Throws where its size is not what is expected.
  message take(int rank, int from, int tag, i64 count, std::size_t element, int lane = 0) {
    std::unique_lock lock(m_);
    stop_if_failed();
    seat& s = seat_of(rank, lane);
    std::vector<message>& inbox = inbox_[idx(rank)];
    ++s.receives;
    auto find = [&] {
      std::size_t i = 0;
      auto const wanted = [&](message const& m) { return m.from == from && m.tag == tag && m.lane == lane; };
      while (i < inbox.size() && !wanted(inbox[i])) ++i;
      return i;
    };
    if (find() == inbox.size()) {
      s.what = "receive";
      s.group = nullptr;
      s.peer = from;
      s.tag = tag;
      s.number = s.receives;
      block(lock, s, rank, [&] { return find() < inbox.size(); });
    }
    std::size_t const i = find();
    message r = std::move(inbox[i]);
    inbox.erase(inbox.begin() + static_cast<std::ptrdiff_t>(i));
    if (r.count != count || r.element != element) {
      fail_locked(std::make_exception_ptr(
                      error("rank " + std::to_string(from) + " sends " + sized(r.count, r.element) +
                                " with tag " + std::to_string(tag) + ", but rank " + std::to_string(rank) +
                                " expects " + sized(count, element),
                            "comm::threads", "equal counts on both sides")),
                  rank);
      stop_if_failed();
    }
    return r;
  }

 private:
  /// What one lane of a rank waits for.
  struct seat {
    std::condition_variable cv;
    // cleared by whoever brings what it waits for, so "all wait" means nobody can go on
    bool waiting = false;
    char const* what = "";
    group_state const* group = nullptr;  // or, if null, a message:
    int peer = -1, tag = 0;
    u64 number = 0, receives = 0;
  };
  seat& seat_of(int rank, int lane) { return *seats_[idx(lane) * idx(ranks_) + idx(rank)]; }

  void stop_if_failed() const { if (failure_) std::rethrow_exception(failure_); }
  void fail_locked(std::exception_ptr e, int rank) {
    if (failure_) return;
    failure_ = std::move(e);
    failed_rank_ = rank;
    for (auto& s : seats_) s->cv.notify_all();
  }
  static void wake(seat& s) { s.waiting = false; s.cv.notify_all(); }
  static std::string sized(i64 count, std::size_t element) {
    return std::to_string(count) + " elements of " + std::to_string(element) + " bytes";
  }
  static std::string listed(std::vector<int> const& v) {
    std::string r;
    for (int x : v) r.append(r.empty() ? "{" : ",").append(std::to_string(x));
    return r + "}";
  }
  static std::string waits_for(seat const& s, int rank) {
    return "rank " + std::to_string(rank) + " waits in " + s.what + " number " + std::to_string(s.number) +
           (s.group ? " of group " + listed(s.group->members)
                    : " from rank " + std::to_string(s.peer) + " with tag " + std::to_string(s.tag));
  }

  void meet(std::unique_lock<std::mutex>& lock, group_state& g, int index, int lane, bool opening) {
    stop_if_failed();
    int const rank = g.members[idx(index)];
    if (++g.arrived == static_cast<int>(g.members.size())) {
      if (opening) compare(g);
      stop_if_failed();
      g.arrived = 0;
      ++g.generation;
      for (int x : g.members) if (x != rank) wake(seat_of(x, lane));
      return;
    }
    seat& s = seat_of(rank, lane);
    s.what = g.calls[idx(index)].what;
    s.group = &g;
    s.number = g.sequence[idx(index)];
    u64 const now = g.generation;
    block(lock, s, rank, [&] { return g.generation != now; });
  }
  /// The last to arrive looks whether all members mean the same operation.
  void compare(group_state const& g) {
    call const& a = g.calls[0];
    for (std::size_t i = 1; i < g.calls.size(); ++i) {
      call const& b = g.calls[i];
      if (a.count == b.count && a.element == b.element && a.root == b.root && std::string(a.what) == b.what)
        continue;
      auto tell = [&](std::size_t k) {
        call const& c = g.calls[k];
        return "rank " + std::to_string(g.members[k]) + " calls " + c.what + " of " +
               sized(c.count, c.element) + (c.root < 0 ? "" : " from member " + std::to_string(c.root));
      };
      fail_locked(
          std::make_exception_ptr(error("operation number " + std::to_string(g.sequence[0]) + " of group " +
                                            listed(g.members) + " does not fit: " + tell(0) + ", " + tell(i),
                                        "comm::threads", "the same operation and sizes on every member")),
          g.members[i]);
      return;
    }
  }
  template <class Ready> void block(std::unique_lock<std::mutex>& lock, seat& s, int rank, Ready ready) {
    s.waiting = true;
    bool all = true;
    for (auto const& x : seats_) all = all && x->waiting;
    if (all) {
      std::string who;
      for (std::size_t i = 0; i < seats_.size(); ++i)
        who += (i ? "; " : "") + waits_for(*seats_[i], static_cast<int>(i % idx(ranks_)));
      fail_locked(std::make_exception_ptr(error("every rank waits for another: " + who, "comm::threads",
                                                "the same operations in the same order on every member")),
                  rank);
    }
    auto const end = std::chrono::steady_clock::now() + deadline_;
    while (!ready()) {
      if (failure_) break;
      if (s.cv.wait_until(lock, end) == std::cv_status::timeout && !ready() && !failure_)
        fail_locked(std::make_exception_ptr(error(waits_for(s, rank) + " for more than " +
                                                      std::to_string(deadline_.count()) + " ms",
                                                  "comm::threads", "every member joins in time")),
                    rank);
    }
    s.waiting = false;
    stop_if_failed();
  }

  std::chrono::milliseconds deadline_;
  int ranks_;
  mutable std::mutex m_;
  std::vector<std::unique_ptr<seat>> seats_;           // by lane, then by rank
  std::vector<std::vector<message>> inbox_;            // by rank
  std::map<std::vector<int>, std::unique_ptr<group_state>> groups_;
  std::vector<std::vector<std::byte>> spare_;
  std::exception_ptr failure_;
  int failed_rank_ = -1;
};

/// A group as one of its members sees it.
class threads_group {
 public:
  /// Throws as `threads_world::group_of`.
  threads_group(threads_world& h, core::slice<int> members, int rank) : state_(&h.group_of(members, rank)) {
    while (member(index_) != rank) ++index_;
  }
  int size() const { return static_cast<int>(state_->members.size()); }
  int index() const { return index_; }
  int member(int i) const { return state_->members[idx(i)]; }
  threads_world::group_state& state() const { return *state_; }
  /// What member j calls, in the operation in progress.
  threads_world::call const& call_of(int j) const { return state_->calls[idx(j)]; }

 private:
  threads_world::group_state* state_;
  int index_ = 0;
};

}  // namespace tensorpar::comm
