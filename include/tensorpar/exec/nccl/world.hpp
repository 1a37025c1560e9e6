// tensorpar/exec/nccl/world.hpp - where the ranks of an NCCL run meet: how they were started, one failure
// that stops them, data for all
#pragma once
#include <atomic>
#include <chrono>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <tensorpar/core/error.hpp>
#include <tensorpar/exec/comm/launch.hpp>
#include <tensorpar/exec/nccl/library.hpp>
#include <tensorpar/exec/nccl/survivors.hpp>
#include <vector>

namespace tensorpar::comm {

/// How the processes of a run talk: see exec/comm/processes.hpp.
struct process_talk {
  virtual ~process_talk() = default;
  virtual void share(int rank, void* p, std::size_t bytes) = 0;
  virtual void add_up(double* x, int n) = 0;
};

/// Every rank in this process, or one rank in each of several: what a launcher's variables say
/// (exec/comm/launch.hpp). Making one does not communicate; the endpoints' `prepare` does.
///
/// Nothing hangs. The first failure in this process (`fail`, an error of NCCL, or an operation that takes
/// longer than the deadline from when this rank has begun it) stops all ranks of the process. They abort
/// their communicators and throw that failure. Other processes learn of it from NCCL, where it notices, or by
/// their own deadlines. A world that has failed stays failed.
template <class Library> class nccl_world {
 public:
  using handle = typename Library::comm;
  using milliseconds = std::chrono::milliseconds;

  /// Throws `error` where a launcher has started another number of processes, or does not say where rank 0
  /// is.
  explicit nccl_world(int ranks, milliseconds deadline = std::chrono::seconds(60))
      : nccl_world(ranks, read_launch(), deadline) {}
  nccl_world(int ranks, launch const& how, milliseconds deadline = std::chrono::seconds(60))
      : size_(ranks), deadline_(deadline) {
    if (ranks < 1) throw error("a world needs at least one rank", "comm::nccl", "");
    if (how.size == 1) {
      for (int i = 0; i < ranks; ++i) local_.push_back(i);
      check(Library::make_id(id_), "naming the ranks' world");
      return;
    }
    check_count(ranks, how.size, how.by);
    if (how.address.empty())
      throw error("nobody says where rank 0 is", "the environment that " + how.by + " made",
                  "MASTER_ADDR and MASTER_PORT");
    local_.push_back(how.rank);
    check(Library::make_id_at(id_, how.address, how.port), "naming the ranks' world");
  }
  /// Rank number `rank`, the only one of this process, in the world that one process has named and all were
  /// told of.
  nccl_world(int ranks, int rank, typename Library::id const& id,
           milliseconds deadline = std::chrono::seconds(60))
      : size_(ranks), deadline_(deadline), id_(id), local_{rank} {
    if (rank < 0 || rank >= ranks)
      throw error("no such rank: " + std::to_string(rank), "comm::nccl", "0 to " + std::to_string(ranks - 1));
  }
  /// A smaller world, from what is left of one that has failed. All survivors make one, in time: its
  /// deadline, the old one's unless said, also covers how much later than others a process notices the
  /// failure. One that does not come ends the world for all.
  explicit nccl_world(nccl_survivors<Library> left, std::optional<milliseconds> deadline = {})
      : size_(left.size()), deadline_(deadline.value_or(left.deadline())), left_(std::move(left)) {
    for (auto const& m : left_->here()) local_.push_back(m.rank);
  }
  nccl_world(nccl_world const&) = delete;
  nccl_world& operator=(nccl_world const&) = delete;
  ~nccl_world() {
    auto const last = std::chrono::steady_clock::now() + deadline_;
    for (handle c : ending_) detail::end_ready<Library>(c, last);
    for (auto const& [rank, c] : kept_) detail::end_ready<Library>(c, last);
  }

  int size() const { return size_; }
  std::vector<int> local() const { return local_; }
  /// Of each of them: its place among the devices that this process began with.
  std::vector<int> seats() const {
    std::vector<int> r;
    for (std::size_t k = 0; k < local_.size(); ++k)
      r.push_back(left_ ? left_->here()[k].seat : static_cast<int>(k));
    return r;
  }
  typename Library::id const& id() const { return id_; }
  milliseconds deadline() const { return deadline_; }

  /// Stops every rank of this process with this error; the first one counts.
  void fail(std::exception_ptr e, int rank) {
    std::lock_guard lock(m_);
    if (failure_) return;
    failure_ = std::move(e);
    failed_rank_ = rank;
    failed_ = true;
  }
  bool failed() const { return failed_; }
  std::exception_ptr failure() const { std::lock_guard lock(m_); return failure_; }
  int failed_rank() const { std::lock_guard lock(m_); return failed_rank_; }

  /// What is left without the `lost` ranks of this world, after a failure and once all ranks of this process
  /// have noticed it (a step has thrown). Who is lost is the caller's to know (a launcher, MPI or a health
  /// check), and all survivors say the same; nobody may be, and all then go on. Once: the old world goes with
  /// it. Throws `error` where that cannot be.
  nccl_survivors<Library> survivors(std::vector<int> lost) {
    if (!exec::shrinking_library<Library>)
      throw error("this library cannot revoke and shrink communicators", "comm::nccl",
                  "NCCL 2.28.9 or newer, or a new world by a new id");
    if (!failed()) throw error("nothing has failed", "comm::nccl", "survivors of a run that has");
    std::sort(lost.begin(), lost.end());
    lost.erase(std::unique(lost.begin(), lost.end()), lost.end());
    std::vector<int> const left = detail::left_of(size_, lost);
    std::vector<typename nccl_survivors<Library>::member> here;
    std::vector<int> const seat = seats();
    std::lock_guard lock(m_);
    for (std::size_t k = 0; k < local_.size(); ++k) {
      auto const now = std::lower_bound(left.begin(), left.end(), local_[k]);
      if (now == left.end() || *now != local_[k]) continue;
      auto const kept = kept_.find(local_[k]);
      if (kept == kept_.end())
        throw error("rank " + std::to_string(local_[k]) + " has left no world to go on from", "comm::nccl",
                    "a world that it had joined, and whose failure it has noticed, asked for once");
      here.push_back({static_cast<int>(now - left.begin()), seat[k], kept->second});
    }
    if (here.empty())
      throw error(
          "no rank of this process is left: rank " + std::to_string(local_[0]) + " is itself among the lost",
          "comm::nccl", "survivors, asked for by survivors");
    for (auto const& [rank, everyone] : kept_)
      if (!std::binary_search(left.begin(), left.end(), rank)) Library::abort(everyone);
    kept_.clear();
    return {static_cast<int>(left.size()), std::move(lost), std::move(here), deadline_};
  }
  /// A rank leaves its world, which is revoked.
  void keep(int rank, handle everyone) { std::lock_guard lock(m_); kept_[rank] = everyone; }
  /// The world that a rank goes on from, the caller's to end; none if it is to join a new one.
  handle take_old(int rank) { std::lock_guard lock(m_); return left_ ? left_->take(rank) : handle{}; }
  /// The ranks of that world that are not in this one.
  std::vector<int> lost() const { return left_ ? left_->lost() : std::vector<int>{}; }

  /// Throws unless the call was taken.
  static void check(typename Library::status s, char const* what) {
    if (s != Library::ok && s != Library::in_progress)
      throw error("NCCL says: " + std::string(Library::words(s)), what, "");
  }
  /// Communicators begin to end; the world's own end waits for that, when every rank has begun.
  void end(std::vector<handle> const& all) {
    for (handle c : all)
      if (typename Library::status const s = Library::finalize(c);
          s == Library::ok || s == Library::in_progress)
        ending_.push_back(c);
      else Library::abort(c);
  }

  /// Where ranks are in several processes, the only one here talks for all; otherwise there is nobody to talk
  /// to.
  void talk_by(process_talk& one) { talk_ = &one; }
  void share(int rank, void* p, std::size_t bytes) { if (talk_) talk_->share(rank, p, bytes); }
  void add_up(double* x, int n) { if (talk_) talk_->add_up(x, n); }

 private:
  static void check_count(int ranks, int started, std::string const& by) {
    if (ranks == started) return;
    std::string const plan = "the plan is for " + std::to_string(ranks) + " devices";
    throw error(plan + ", but " + by + " has started " + std::to_string(started) + " processes", "comm::nccl",
                "one process per device, or one in all");
  }

  int size_;
  milliseconds deadline_;
  typename Library::id id_{};
  std::vector<int> local_;
  mutable std::mutex m_;
  std::exception_ptr failure_;
  int failed_rank_ = -1;
  std::atomic<bool> failed_ = false;
  std::vector<handle> ending_;
  std::map<int, handle> kept_;                       // by rank: its world, after a failure
  std::optional<nccl_survivors<Library>> left_;      // what this world is made from
  process_talk* talk_ = nullptr;
};

}  // namespace tensorpar::comm
