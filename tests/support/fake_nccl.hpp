// tests/support/fake_nccl.hpp - NCCL's calls among ranks of this process, without a GPU, as unpleasant as one likes
#pragma once
#include "hook.hpp"
#include "host_queues.hpp"
#include <map>
#include <set>
#include <tensorpar/exec/nccl/library.hpp>

namespace tests {

/// Models `collective_library` for queued_host, and `shrinking_library`. Sends wait for their receives, always; the first message between
/// two is in progress until both ends have begun with it. A call on a communicator that is not ready, or from two queues, is invalid;
/// operations that do not fit each other, too. What NCCL forbids when communicators end, are revoked and shrunk is invalid, and written
/// down. Ranks are those of the first world.
struct fake_nccl {
  enum class status { done, in_progress, invalid, remote, internal };
  enum class element { bytes, single, twofold };
  struct everyone;
  struct communicator;
  using comm = communicator*;
  struct id { u64 number; };
  static constexpr status ok = status::done, in_progress = status::in_progress;
  static constexpr element bytes = element::bytes;
  static std::string words(status s) {
    constexpr char const* all[] = {"no error", "in progress", "invalid usage", "remote process exited", "internal error"};
    return all[static_cast<int>(s)];
  }
  template <class E> static std::optional<element> code_of() {
    if constexpr (std::same_as<E, float>) return element::single;
    else if constexpr (std::same_as<E, double>) return element::twofold;
    else return {};
  }

  /// How it misbehaves. `call`: what a call says, of operation number `nth` (from 1) of this rank. `run`: may take its time in the queue,
  /// and what becomes of the communicator. Both: ok where all is well. The call "shrink": in_progress where it never gets anywhere.
  static inline hook<status(std::string const& what, int rank, int nth)> on_call, on_run;
  static inline int polls = 0;                            // how often a call is still in progress
  static inline std::vector<std::string> forbidden;       // what was done and may not be

  struct sending {
    void const* from;
    std::size_t n;
    bool taken = false;
  };
  struct part {
    void const* in = nullptr;
    void* out = nullptr;
    std::size_t n = 0;
    element type = element::bytes;
    int root = 0;
    std::string what;
  };
  struct meeting {
    std::map<int, part> parts;
    bool done = false;
  };
  struct everyone {
    everyone(int n, int came) : size(n), joined(came) {}
    int size, joined, finalized = 0;
    std::set<int> connected;                                // ends that have begun to send or receive one message
    std::map<u64, meeting> meetings;
    std::map<std::pair<int, int>, std::deque<std::shared_ptr<sending>>> mail;
    std::map<u64, std::map<int, std::tuple<int, int, comm>>> splits;        // by round and rank: color, key, child
    std::map<std::vector<int>, std::map<int, comm>> shrinks;                // by who is lost: those who say so
  };
  struct communicator {
    std::shared_ptr<everyone> w;                             // null: other ranks have not come to the split yet
    int rank = 0, of_world = 0, pending = 0, operations = 0, in_flight = 0;
    u64 met = 0, splits = 0;
    bool aborted = false, revoked = false, finalizing = false, gone = false;
    status state = status::done;
    bool stopped() const { return aborted || revoked; }
    work_queue const* queue = nullptr;
    std::function<bool()> awaits;                         // null: nothing
    comm* child = nullptr;                                // where it will be written
    comm coming = nullptr;
  };
  struct piece {
    bool sends;
    void const* from;
    void* to;
    std::size_t n;
    int peer;
    comm c;
  };

  /// All that there is; one lock for all.
  static inline std::mutex lock;
  static inline std::condition_variable moved;
  static inline std::map<u64, std::shared_ptr<everyone>> worlds;
  static inline std::vector<std::unique_ptr<communicator>> made;
  static inline u64 ids = 0;
  static inline thread_local int groups = 0;
  static inline thread_local std::vector<piece> group;
  static inline thread_local queued_host const* group_queue = nullptr;

  /// Forgets everything; says how many communicators nobody ended.
  static int reset() {
    std::lock_guard held(lock);
    int alive = 0;
    for (auto const& c : made) alive += !c->gone;
    made.clear();
    worlds.clear();
    on_call = nullptr;
    on_run = nullptr;
    polls = 0;
    forbidden.clear();
    return alive;
  }

  static status make_id(id& i) { std::lock_guard held(lock); i.number = ++ids; return ok; }
  static status make_id_at(id& i, std::string const& address, int port) {
    i.number = (u64{1} << 32) + static_cast<u64>(port) + 65536 * address.size();
    return ok;
  }
  static status init(comm& c, int ranks, id const& i, int rank) {
    std::lock_guard held(lock);
    auto& w = worlds[i.number];
    if (!w) w = std::make_shared<everyone>(ranks, 0);
    ++w->joined;
    c = fresh(rank, rank);
    c->w = w;
    return in_progress;
  }
  static status split(comm const& parent, int color, int key, bool, comm& child) {
    std::lock_guard held(lock);
    if (!ready(parent)) return status::invalid;
    if (parent->revoked && parent->in_flight) return never("split before what was revoked has stopped");
    comm const made_here = color < 0 ? nullptr : fresh(0, parent->of_world);
    parent->child = &child;
    parent->coming = made_here;
    auto& round = parent->w->splits[parent->splits++];
    round[parent->rank] = {color, key, made_here};
    parent->awaits = [&round, parent, n = parent->w->size] {                   // NCCL writes the handle late, too
      if (static_cast<int>(round.size()) < n) return false;
      *parent->child = parent->coming;
      return true;
    };
    if (static_cast<int>(round.size()) < parent->w->size) return in_progress;
    std::map<int, std::map<std::pair<int, int>, comm>> colors;
    for (auto const& [rank, x] : round) if (std::get<0>(x) >= 0) colors[std::get<0>(x)][{std::get<1>(x), rank}] = std::get<2>(x);
    for (auto const& [same, members] : colors) {
      int const n = static_cast<int>(members.size());
      auto const w = std::make_shared<everyone>(n, n);
      int rank = 0;
      for (auto const& [place, c] : members) {
        c->w = w;
        c->rank = rank++;
      }
    }
    return in_progress;
  }
  static status state(comm const& c, status& s) {
    std::lock_guard held(lock);
    if (c->gone) return never("state of what has ended");
    if (c->awaits && c->awaits()) c->awaits = nullptr;
    bool const coming = c->awaits || !c->w || c->w->joined < c->w->size || c->pending > 0 ||
                        (c->finalizing && c->w->finalized < c->w->size) || (c->revoked && c->in_flight > 0);
    if (c->pending > 0) --c->pending;
    s = c->state != ok ? c->state : coming ? in_progress : ok;
    return ok;
  }
  static status finalize(comm const& c) {
    std::lock_guard held(lock);
    if (c->gone || c->revoked || c->finalizing) return never("finalize of what has ended, was revoked or is final");
    c->finalizing = true;
    ++c->w->finalized;
    return in_progress;
  }
  static status destroy(comm const& c) {
    std::lock_guard held(lock);
    if (c->gone || c->awaits || (c->revoked && c->in_flight)) return never("destroy of what has ended, or is not ready");
    c->gone = true;
    return ok;
  }
  static status abort(comm const& c) {
    {
      std::lock_guard held(lock);
      if (c->gone) return never("abort of what has ended");
      give_up(c);
      c->aborted = c->gone = true;
    }
    moved.notify_all();
    return ok;
  }
  static status revoke(comm const& c) {
    {
      std::lock_guard held(lock);
      if (c->gone || c->revoked || c->finalizing) return never("revoke of what has ended, was revoked or is final");
      if (status const s = on_call("revoke", c->of_world, c->operations + 1); s != ok) return s;
      give_up(c);
      c->revoked = true;
      c->state = ok;
      c->pending = polls;
    }
    moved.notify_all();
    return in_progress;
  }
  /// As NCCL does it without NCCL_SHRINK_ABORT. Who says that others are lost than all the rest waits for ever.
  static status shrink(comm const& parent, int const* lost, int count, comm& child) {
    std::vector<int> const list(lost, lost + count);
    status const how = on_call("shrink", parent->of_world, 1);                        // may take its time
    std::lock_guard held(lock);
    if (parent->gone || !ready(parent)) return never("shrink of what is not ready");
    if (parent->in_flight) return never("shrink under operations");
    if (list.empty() || !std::is_sorted(list.begin(), list.end())) return never("shrink without a list");
    if (std::binary_search(list.begin(), list.end(), parent->rank)) return never("shrink by a rank that is lost");
    if (how != ok && how != in_progress) return how;
    comm const made_here = fresh(0, parent->of_world);
    parent->child = &child;
    parent->coming = made_here;
    parent->awaits = [] { return false; };
    if (how == in_progress) return in_progress;
    auto& round = parent->w->shrinks[list];
    round[parent->rank] = made_here;
    int const all = parent->w->size - static_cast<int>(list.size());
    parent->awaits = [&round, parent, all] {
      if (static_cast<int>(round.size()) < all) return false;
      *parent->child = parent->coming;
      return true;
    };
    if (static_cast<int>(round.size()) < all) return in_progress;
    auto const w = std::make_shared<everyone>(all, all);
    int rank = 0;
    for (auto const& [old, c] : round) {
      c->w = w;
      c->rank = rank++;
    }
    return in_progress;
  }

  static status all_reduce(void const* in, void* out, std::size_t n, element t, comm const& c, queued_host const& q) {
    return collective(c, q, {in, out, n, t, 0, "all_reduce"});
  }
  static status reduce_scatter(void const* in, void* out, std::size_t n, element t, comm const& c, queued_host const& q) {
    return collective(c, q, {in, out, n, t, 0, "reduce_scatter"});
  }
  static status all_gather(void const* in, void* out, std::size_t n, element t, comm const& c, queued_host const& q) {
    return collective(c, q, {in, out, n, t, 0, "all_gather"});
  }
  static status broadcast(void const* in, void* out, std::size_t n, element t, int root, comm const& c, queued_host const& q) {
    return collective(c, q, {in, out, n, t, root, "broadcast"});
  }
  static status send(void const* p, std::size_t n, element, int peer, comm const& c, queued_host const& q) {
    return message({true, p, nullptr, n, peer, c}, q);
  }
  static status receive(void* p, std::size_t n, element, int peer, comm const& c, queued_host const& q) {
    return message({false, nullptr, p, n, peer, c}, q);
  }
  static status group_start() { ++groups; return ok; }
  static status group_end() {
    if (--groups || group.empty()) return ok;
    return deliver(*std::exchange(group_queue, nullptr));
  }

 private:
  static status never(char const* what) { forbidden.push_back(what); return status::invalid; }
  /// A communicator that will not come is written, too: it has failed, and is its receiver's to end.
  static void give_up(comm c) {
    if (!std::exchange(c->awaits, nullptr) || !c->coming) return;
    c->coming->state = status::internal;
    *c->child = c->coming;
  }
  static bool ready(comm c) { return c->state == ok && c->pending == 0 && c->w && c->w->joined >= c->w->size && !c->awaits; }
  static comm fresh(int rank, int of_world) {
    made.push_back(std::make_unique<communicator>());
    made.back()->rank = rank;
    made.back()->of_world = of_world;
    made.back()->pending = polls;
    return made.back().get();
  }
  static std::size_t size_of(element t) { return t == element::bytes ? 1 : t == element::single ? 4 : 8; }

  static status called(comm const& c, queued_host const& q, std::string const& what) {
    std::lock_guard held(lock);
    if (status const s = on_call(what, c->of_world, c->operations + 1); s != ok) return s;
    if (c->state != ok) return c->state;
    if (!c->w || c->stopped() || (c->queue && c->queue != q.identity())) return status::invalid;
    c->queue = q.identity();
    ++c->operations;
    ++c->in_flight;
    c->pending = polls;
    return polls ? in_progress : ok;
  }
  /// At the end of an operation in the queue.
  struct ends {
    comm c;
    ~ends() { std::lock_guard held(lock); --c->in_flight; }
  };
  /// In the queue: what happens before the operation; false: nothing more.
  static bool ran(comm c, std::string const& what) {
    std::unique_lock held(lock);
    int const nth = c->operations;
    held.unlock();
    status const s = on_run(what, c->of_world, nth);
    held.lock();
    if (s != ok && !c->stopped()) c->state = s;
    return s == ok && !c->stopped();
  }
  static status collective(comm const& c, queued_host const& q, part p) {
    status const s = called(c, q, p.what);
    if (s != ok && s != in_progress) return s;
    u64 const met = c->met++;
    q.ask([c, met, p = std::move(p)] {
      ends const end{c};
      if (!ran(c, p.what)) return;
      std::unique_lock held(lock);
      meeting& m = c->w->meetings[met];
      m.parts[c->rank] = p;
      if (static_cast<int>(m.parts.size()) == c->w->size) {
        m.done = true;
        if (!carry_out(m)) c->state = status::invalid;
        moved.notify_all();
      }
      moved.wait(held, [&] { return m.done || c->stopped(); });
      if (!m.done) m.parts.erase(c->rank);                // nobody reads what it has left
    });
    return s;
  }
  template <class E> static void sum(meeting& m, std::vector<std::vector<std::byte>> const& in) {
    bool const scatters = m.parts.at(0).what == "reduce_scatter";
    std::size_t const n = m.parts.at(0).n, all = scatters ? n * m.parts.size() : n;
    std::vector<E> total(all), next(all);
    for (std::size_t k = 0; k < in.size(); ++k) {
      tensorpar::exec::host_memory{}.read(next.data(), in[k].data(), static_cast<i64>(all * sizeof(E)));
      if (k == 0) total = next;
      else for (std::size_t i = 0; i < all; ++i) total[i] += next[i];
    }
    for (auto const& [rank, p] : m.parts)
      tensorpar::exec::host_memory{}.write(p.out, total.data() + (scatters ? static_cast<std::size_t>(rank) * n : 0),
                                           static_cast<i64>(n * sizeof(E)));
  }
  static bool carry_out(meeting& m) {
    part const& a = m.parts.at(0);
    for (auto const& [rank, p] : m.parts) if (p.what != a.what || p.n != a.n || p.type != a.type || p.root != a.root) return false;
    std::size_t const own = a.n * size_of(a.type);
    std::vector<std::vector<std::byte>> in;
    for (auto const& [rank, p] : m.parts) {
      auto const* from = static_cast<std::byte const*>(p.in);
      in.emplace_back(from, from + own * (a.what == "reduce_scatter" ? m.parts.size() : 1));
    }
    if (a.what == "all_gather") {
      for (auto const& [rank, p] : m.parts)
        for (std::size_t k = 0; k < in.size(); ++k)
          tensorpar::exec::host_memory{}.write(static_cast<std::byte*>(p.out) + k * own, in[k].data(), static_cast<i64>(own));
    } else if (a.what == "broadcast") {
      for (auto const& [rank, p] : m.parts)
        tensorpar::exec::host_memory{}.write(p.out, in[static_cast<std::size_t>(a.root)].data(), static_cast<i64>(own));
    } else if (a.type == element::single) {
      sum<float>(m, in);
    } else {
      sum<double>(m, in);
    }
    return true;
  }
  static status message(piece p, queued_host const& q) {
    group.push_back(p);
    group_queue = &q;
    if (groups) return ok;
    group_queue = nullptr;
    return deliver(q);
  }
  static status deliver(queued_host const& q) {
    std::vector<piece> all;
    all.swap(group);
    comm const c = all[0].c;
    std::string const what = all.size() > 1 ? "group" : all[0].sends ? "send" : "receive";
    status const s = called(c, q, what);
    if (s != ok && s != in_progress) return s;
    bool connects = false;
    if (all.size() == 1 && c->w->size == 2) {               // as NCCL does it: when both ends have begun with it, not before
      std::lock_guard held(lock);
      if (c->w->connected.insert(c->rank).second) {
        connects = true;
        c->awaits = [w = c->w] { return w->connected.size() == 2; };
      }
    }
    q.ask([c, what, all = std::move(all)] {
      ends const end{c};
      if (!ran(c, what)) return;
      std::unique_lock held(lock);
      std::vector<std::shared_ptr<sending>> mine;
      for (piece const& p : all) {
        if (!p.sends) continue;
        mine.push_back(std::make_shared<sending>(sending{p.from, p.n}));
        c->w->mail[{c->rank, p.peer}].push_back(mine.back());
      }
      moved.notify_all();
      for (piece const& p : all) {
        if (p.sends) continue;
        auto& box = c->w->mail[{p.peer, c->rank}];
        moved.wait(held, [&] { return !box.empty() || c->stopped(); });
        if (c->stopped()) break;
        if (box.front()->n != p.n) c->state = status::invalid;
        else tensorpar::exec::host_memory{}.write(p.to, box.front()->from, static_cast<i64>(p.n));
        box.front()->taken = true;
        box.pop_front();
        moved.notify_all();
      }
      for (auto const& x : mine) moved.wait(held, [&] { return x->taken || c->stopped(); });
      if (c->stopped())                                   // nobody reads what it has left
        for (piece const& p : all) if (p.sends) c->w->mail[{c->rank, p.peer}].clear();
    });
    return connects ? in_progress : s;
  }
};

}  // namespace tests
