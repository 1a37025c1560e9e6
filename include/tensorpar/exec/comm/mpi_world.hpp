// tensorpar/exec/comm/mpi_world.hpp - where the processes of an MPI run meet: groups of them, and operations
// that fit each other
#pragma once
#include <algorithm>
#include <array>
#include <map>
#include <tensorpar/core/config.hpp>
#include <tensorpar/core/slice.hpp>
#include <tensorpar/exec/comm/mpi_watch.hpp>
#include <utility>

namespace tensorpar::comm {

/// One rank per process. Making one is collective over the communicator that it joins, as are `share` and
/// `add_up`; all calls of a process come one at a time, from any thread, but for `fail`, which may come at
/// any moment.
///
/// Nothing hangs. The first failure (`fail`, calls that do not fit each other, an error of MPI, or an
/// operation that a member has not joined before the deadline) is sent to every process. Every operation that
/// waits or starts afterwards throws it. A world that has failed stays failed, and MPI_Finalize then ends the
/// program (exec/comm/mpi_session.hpp). After a failure MPI may still write where operations in progress were
/// told to: end the process soon.
class mpi_world {
 public:
  enum class call : int {
    barrier,
    all_reduce,
    reduce_scatter,
    all_gather,
    all_to_all,
    broadcast,
    share,
    add_up
  };
  static constexpr char const* name_of(call c) {
    constexpr char const* names[] = {"barrier",    "all_reduce", "reduce_scatter", "all_gather",
                                     "all_to_all", "broadcast",  "share",          "add_up"};
    return names[static_cast<int>(c)];
  }
  struct group_state {
    std::vector<int> members;
    int index = 0;
    MPI_Comm comm = MPI_COMM_NULL;
    u64 sequence = 0;                                // operations begun
    // of the operation in progress, by member: call, count, element's bytes, root
    std::vector<std::array<i64, 4>> calls;
    std::vector<std::byte> scratch;
  };

  /// Throws `error` if MPI is not running or does not run exactly `ranks` processes.
  explicit mpi_world(int ranks, std::chrono::milliseconds deadline = std::chrono::seconds(60),
                   MPI_Comm over = MPI_COMM_WORLD)
      : watch_(sound(over, ranks), deadline) {
    for (MPI_Comm* c : {&everyone_.comm, &messages_}) {
      detail::mpi_check(MPI_Comm_dup(over, c), "MPI_Comm_dup");
      MPI_Comm_set_errhandler(*c, MPI_ERRORS_RETURN);
    }
    for (int i = 0; i < size(); ++i) everyone_.members.push_back(i);
    everyone_.index = rank();
    int* most = nullptr;
    int found = 0;
    MPI_Comm_get_attr(messages_, MPI_TAG_UB, &most, &found);
    if (found) own_tag_ = *most;
  }
  mpi_world(mpi_world const&) = delete;
  mpi_world& operator=(mpi_world const&) = delete;
  ~mpi_world() {
    if (failure()) return;                           // the others may be gone, and freeing waits for them
    for (auto& g : groups_) MPI_Comm_free(&g.second->comm);
    for (MPI_Comm* c : {&everyone_.comm, &messages_}) MPI_Comm_free(c);
  }

  int size() const { return watch_.size(); }
  int rank() const { return watch_.rank(); }
  mpi_watch& watch() { return watch_; }
  MPI_Comm messages() const { return messages_; }
  /// The greatest tag of a message.
  int last_tag() const { return own_tag_ - 1; }

  /// Stops every process with this error; the first one counts. Call it when this process's work throws.
  void fail(std::exception_ptr e, int rank) { watch_.fail(std::move(e), rank); }
  /// This process goes its own way, and the others are stopped with this error; if `behind` only those that
  /// begin more than it has begun.
  void leave(std::exception_ptr e, int rank, bool behind) {
    watch_.leave(std::move(e), rank, behind, everyone_.sequence);
  }
  std::exception_ptr failure() const { return watch_.failure(); }
  int failed_rank() const { return watch_.failed_rank(); }

  /// Collective over the members. Throws `error` unless they are sorted, distinct, in range and contain this
  /// process's rank.
  group_state& group_of(core::slice<int> members) {
    std::string const me = "rank " + std::to_string(rank());
    bool found = false;
    for (int i = 0; i < members.n; ++i) {
      if (members[i] < 0 || members[i] >= size() || (i && members[i] <= members[i - 1]))
        throw error("a group's members must be ascending ranks", me, "0 to " + std::to_string(size() - 1));
      found = found || members[i] == rank();
    }
    if (!found) throw error("a rank must be a member of the group it forms", me, "");
    watch_.stop_if_failed();
    if (members.n == size()) return everyone_;
    std::vector<int> key(members.begin(), members.end());
    auto& g = groups_[key];
    if (g) return *g;
    auto made = std::make_unique<group_state>();
    made->index = static_cast<int>(std::find(key.begin(), key.end(), rank()) - key.begin());
    made->members = std::move(key);
    meet(*made);                                     // making a communicator waits without an end
    MPI_Group all = MPI_GROUP_NULL, some = MPI_GROUP_NULL;
    watch_.call("MPI_Comm_group", [&] { return MPI_Comm_group(messages_, &all); });
    watch_.call("MPI_Group_incl", [&] { return MPI_Group_incl(all, members.n, members.p, &some); });
    watch_.call("MPI_Comm_create_group",
                [&] { return MPI_Comm_create_group(messages_, some, own_tag_, &made->comm); });
    MPI_Group_free(&some);
    MPI_Group_free(&all);
    MPI_Comm_set_errhandler(made->comm, MPI_ERRORS_RETURN);
    g = std::move(made);
    return *g;
  }

  /// Begins an operation: returns when every member of the group has begun it, and throws if theirs are
  /// others.
  void open(group_state& g, call c, i64 count, std::size_t element, int root = -1) {
    watch_.stop_if_failed();
    ++g.sequence;
    if (g.members.size() < 2) return;
    std::array<i64, 4> const mine{static_cast<i64>(c), count, static_cast<i64>(element), root};
    g.calls.resize(g.members.size());
    MPI_Request r = MPI_REQUEST_NULL;
    watch_.call(name_of(c), [&] {
      return MPI_Iallgather(mine.data(), 4, MPI_INT64_T, g.calls.data(), 4, MPI_INT64_T, g.comm, &r);
    });
    wait(g, c, &r);
    for (std::size_t i = 1; i < g.calls.size(); ++i) if (g.calls[i] != g.calls[0]) differ(g, i);
  }
  /// Waits for an operation's requests.
  void wait(group_state& g, call c, MPI_Request* r, int n = 1) {
    wait({name_of(c), &g.members, g.sequence, -1, 0}, r, n);
  }
  void wait(mpi_wait const& w, MPI_Request* r, int n) {
    watch_.wait(w, [&] {
      int done = 0;
      watch_.call(w.what, [&] { return MPI_Testall(n, r, &done, MPI_STATUSES_IGNORE); });
      return done != 0;
    });
  }

  // spans_processes (exec/comm/processes.hpp)
  std::vector<int> local() const { return {rank()}; }
  void share(int rank, void* p, std::size_t bytes) {
    open(everyone_, call::share, static_cast<i64>(bytes), 1, rank);
    for (std::size_t at = 0; at < bytes;) {
      std::size_t const n = std::min(bytes - at, std::size_t{1} << 30);
      MPI_Request r = MPI_REQUEST_NULL;
      void* const here = static_cast<std::byte*>(p) + at;
      watch_.call("share",
                  [&] { return MPI_Ibcast(here, static_cast<int>(n), MPI_BYTE, rank, everyone_.comm, &r); });
      wait(everyone_, call::share, &r);
      at += n;
    }
  }
  void add_up(double* x, int n) {
    open(everyone_, call::add_up, n, sizeof *x);
    MPI_Request r = MPI_REQUEST_NULL;
    watch_.call("add_up",
                [&] { return MPI_Iallreduce(MPI_IN_PLACE, x, n, MPI_DOUBLE, MPI_SUM, everyone_.comm, &r); });
    wait(everyone_, call::add_up, &r);
  }

 private:
  static MPI_Comm sound(MPI_Comm over, int ranks) {
    int started = 0, ended = 0, level = 0, n = 0;
    MPI_Initialized(&started);
    if (started) MPI_Finalized(&ended);
    if (!started || ended)
      throw error("MPI is not running", "comm::mpi", "a comm::mpi_session that lives as long");
    MPI_Query_thread(&level);
    if (level < MPI_THREAD_SERIALIZED)
      throw error("MPI was started for one thread", "comm::mpi", "MPI_THREAD_SERIALIZED at least");
    MPI_Comm_size(over, &n);
    if (n != ranks)
      throw error("MPI runs " + std::to_string(n) + " processes for " + std::to_string(ranks) + " devices",
                  "comm::mpi", "one process per device: mpirun -n " + std::to_string(ranks));
    return over;
  }
  [[noreturn]] void differ(group_state const& g, std::size_t i) {
    std::string text = "operation" + mpi_wait{"", &g.members, g.sequence, -1, 0}.which() + " does not fit: ";
    for (std::size_t k : {std::size_t{0}, i}) {
      auto const& c = g.calls[k];
      text.append(k ? ", rank " : "rank ")
          .append(std::to_string(g.members[k]))
          .append(" calls ")
          .append(name_of(static_cast<call>(c[0])));
      text.append(" of " + std::to_string(c[1]) + " elements of " + std::to_string(c[2]) + " bytes");
      if (c[3] >= 0) text.append(" from member " + std::to_string(c[3]));
    }
    watch_.refuse(error(text, "comm::mpi", "the same operation and sizes on every member"));
  }
  /// Returns when every member has come here, by messages to the first and back.
  void meet(group_state const& g) {
    int const first = g.members[0], me = rank();
    std::vector<MPI_Request> r;
    auto message = [&](int peer, bool out) {
      r.push_back(MPI_REQUEST_NULL);
      watch_.call("make_group", [&] {
        return out ? MPI_Isend(nullptr, 0, MPI_BYTE, peer, own_tag_, messages_, &r.back())
                   : MPI_Irecv(nullptr, 0, MPI_BYTE, peer, own_tag_, messages_, &r.back());
      });
    };
    for (bool out : {me != first, me == first}) {
      r.clear();
      if (me != first) message(first, out);
      else for (int m : g.members) if (m != me) message(m, out);
      wait({"make_group", &g.members, 0, -1, 0}, r.data(), static_cast<int>(r.size()));
    }
  }

  mpi_watch watch_;
  group_state everyone_;
  MPI_Comm messages_ = MPI_COMM_NULL;
  int own_tag_ = 32767;                              // the greatest of all
  std::map<std::vector<int>, std::unique_ptr<group_state>> groups_;
};

}  // namespace tensorpar::comm
