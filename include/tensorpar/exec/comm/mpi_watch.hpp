// tensorpar/exec/comm/mpi_watch.hpp - waiting for other processes with a deadline, and one failure that stops
// them all
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tensorpar/core/config.hpp>
#include <tensorpar/core/index.hpp>
#include <tensorpar/exec/comm/mpi_session.hpp>
#include <thread>
#include <vector>

namespace tensorpar::comm {

/// What a process waits for: an operation with a number among the members of a group, or a message.
struct mpi_wait {
  char const* what = "";
  std::vector<int> const* members = nullptr;
  u64 number = 0;
  int peer = -1, tag = 0;                            // where there are no members

  std::string text(int rank) const { return "rank " + std::to_string(rank) + " waits in " + what + which(); }
  /// " number 3 of group {0,2}", " from rank 1 with tag 5"
  std::string which() const {
    if (!members) return " from rank " + std::to_string(peer) + " with tag " + std::to_string(tag);
    std::string r = " number " + std::to_string(number) + " of group {";
    for (std::size_t i = 0; i < members->size(); ++i)
      r.append(i ? "," : "").append(std::to_string((*members)[i]));
    return r + "}";
  }
  std::vector<int> expected(int rank) const {
    if (!members) return {peer};
    std::vector<int> r;
    for (int m : *members) if (m != rank) r.push_back(m);
    return r;
  }
};

/// The part of a world that keeps it from hanging, over a communicator of its own. Whoever waits also
/// listens: a failure of another process is thrown here; and when three quarters of the deadline have passed,
/// all processes are asked what they wait for. The error at the deadline tells what those answered that were
/// waited for, and names every process that gave no answer: it has died, or computes. One thread may wait
/// while another one fails: all calls of MPI go through `call`, one at a time.
class mpi_watch {
  using clock = std::chrono::steady_clock;

 public:
  /// Collective over `over`.
  mpi_watch(MPI_Comm over, std::chrono::milliseconds deadline) : deadline_(deadline) {
    detail::mpi_check(MPI_Comm_dup(over, &comm_), "MPI_Comm_dup");
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
  }
  mpi_watch(mpi_watch const&) = delete;
  mpi_watch& operator=(mpi_watch const&) = delete;
  ~mpi_watch() {
    // else the others may be gone, and freeing waits for them
    if (!failure_) MPI_Comm_free(&comm_);
  }

  int rank() const { return rank_; }
  int size() const { return size_; }
  std::exception_ptr failure() const { std::lock_guard lock(m_); return failure_; }
  int failed_rank() const { std::lock_guard lock(m_); return failed_rank_; }
  void stop_if_failed() const { if (auto const e = failure()) std::rethrow_exception(e); }

  /// Stops every process with this error; the first one counts.
  void fail(std::exception_ptr e, int rank) {
    std::lock_guard lock(m_);
    if (failure_) return;
    detail::mpi_abort_at_the_end();
    tell_all(std::move(e), rank, kind::failed, 0);
  }
  /// This process begins no operation any more, and MPI need not end for that. Others are stopped with this
  /// error: at once, or if `behind` where they wait for an operation of everybody with a greater number than
  /// the last one that it has `begun`.
  void leave(std::exception_ptr e, int rank, bool behind, u64 begun) {
    std::lock_guard lock(m_);
    if (!failure_) tell_all(std::move(e), rank, behind ? kind::left : kind::failed, begun);
  }
  [[noreturn]] void refuse(error const& e) {
    fail(std::make_exception_ptr(e), rank_);
    throw e;
  }
  /// Calls MPI: f() returns its code. A failure of MPI is everybody's.
  template <class Call> void call(char const* what, Call const& f) {
    std::lock_guard lock(m_);
    int const code = f();
    if (code == MPI_SUCCESS) return;
    try {
      detail::mpi_check(code, what);
    } catch (error const& e) {
      refuse(e);
    }
  }

  /// Calls ready() until it says so. One thread at a time waits.
  template <class Ready> void wait(mpi_wait const& w, Ready ready) {
    auto const begin = clock::now();
    bool asked = false;
    for (int turn = 1;; ++turn) {
      {
        std::lock_guard lock(m_);
        stop_if_failed();
        waits_ = &w;
        struct over { mpi_wait const*& p; ~over() { p = nullptr; } } const at_end{waits_};
        if (ready()) return;
        listen();
        stop_without(w);
      }
      auto const waited = clock::now() - begin;
      if (waited > std::chrono::milliseconds(2)) std::this_thread::sleep_for(std::chrono::microseconds(20));
      else if (turn % 16 == 0) std::this_thread::yield();              // processes may outnumber processors
      if (!asked && waited > deadline_ - deadline_ / 4) {
        std::lock_guard lock(m_);
        answers_.clear();
        for (int m = 0; m < size_; ++m) if (m != rank_) tell(m, kind::question, {});
        asked = true;
      }
      if (waited > deadline_) late(w);
    }
  }

 private:
  enum class kind : int { failed, left, question, answer };
  struct departed { u64 begun; int rank; std::exception_ptr why; };

  /// This process has failed by this error, or left by it; and all others are told.
  void tell_all(std::exception_ptr e, int rank, kind what, u64 begun) {
    failure_ = e;
    failed_rank_ = rank;
    std::string text = std::to_string(rank) + '\0' + std::to_string(begun) + '\0';
    auto put = [&](std::string const& part) { text.append(part, 0, 1000).append(1, '\0'); };
    try {
      std::rethrow_exception(e);
    } catch (error const& x) {
      for (std::string const* part : {&x.problem(), &x.where(), &x.valid()}) put(*part);
    } catch (std::exception const& x) {
      put(x.what());
    } catch (...) {
      put("a failure");
    }
    for (int i = 0; i < size_; ++i) if (i != rank_) tell(i, what, text);
    auto const end = clock::now() + std::chrono::milliseconds(200);
    for (int done = 0; !done && clock::now() < end;)                   // MPI sends while it is called
      if (MPI_Testall(static_cast<int>(sends_.size()), sends_.data(), &done, MPI_STATUSES_IGNORE) !=
          MPI_SUCCESS)
        break;
  }
  void tell(int to, kind what, std::string text) {
    texts_.push_back(std::make_unique<std::string>(std::move(text)));
    sends_.push_back(MPI_REQUEST_NULL);
    if (MPI_Isend(texts_.back()->data(), static_cast<int>(texts_.back()->size()), MPI_CHAR, to,
                  static_cast<int>(what), comm_, &sends_.back()) != MPI_SUCCESS)
      sends_.back() = MPI_REQUEST_NULL;
  }
  void listen() {
    int there = 0, n = 0;
    MPI_Status s;
    call("MPI_Iprobe", [&] { return MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &there, &s); });
    if (!there) return;
    MPI_Get_count(&s, MPI_CHAR, &n);
    std::string text(idx(n), '\0');
    call("MPI_Recv", [&] {
      return MPI_Recv(text.data(), n, MPI_CHAR, s.MPI_SOURCE, s.MPI_TAG, comm_, MPI_STATUS_IGNORE);
    });
    switch (static_cast<kind>(s.MPI_TAG)) {
      case kind::question: tell(s.MPI_SOURCE, kind::answer, waits_->text(rank_)); return;
      case kind::answer: answers_[s.MPI_SOURCE] = std::move(text); return;
      case kind::failed: case kind::left: break;
    }
    std::vector<std::string> parts(1);
    for (char c : text) if (c) parts.back() += c; else parts.emplace_back();
    parts.resize(5);
    departed const d{std::strtoull(parts[1].c_str(), nullptr, 10), std::atoi(parts[0].c_str()),
                     std::make_exception_ptr(error(parts[2], parts[3], parts[4]))};
    if (static_cast<kind>(s.MPI_TAG) == kind::failed) stop_with(d);
    left_.push_back(d);
  }
  [[noreturn]] void stop_with(departed const& d) {
    failed_rank_ = d.rank;
    failure_ = d.why;
    detail::mpi_abort_at_the_end();
    std::rethrow_exception(failure_);
  }
  /// Throws where a process has left that will never begin what is waited for.
  void stop_without(mpi_wait const& w) {
    if (w.members && static_cast<int>(w.members->size()) == size_)
      for (departed const& d : left_) if (w.number > d.begun) stop_with(d);
  }
  [[noreturn]] void late(mpi_wait const& w) {
    std::string text = w.text(rank_) + " for more than " + std::to_string(deadline_.count()) + " ms";
    std::vector<int> const expected = w.expected(rank_);
    for (int m = 0; m < size_; ++m) {
      auto const a = answers_.find(m);
      if (a == answers_.end() && m != rank_) text += "; rank " + std::to_string(m) + " does not answer";
      else if (a != answers_.end() && std::find(expected.begin(), expected.end(), m) != expected.end())
        text += "; " + a->second;
    }
    refuse(error(text, "comm::mpi", "every member joins in time"));
  }

  mutable std::recursive_mutex m_;                   // of all below, and of MPI
  std::chrono::milliseconds deadline_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1, failed_rank_ = -1;
  std::exception_ptr failure_;
  mpi_wait const* waits_ = nullptr;
  std::vector<departed> left_;
  std::map<int, std::string> answers_;
  std::vector<std::unique_ptr<std::string>> texts_;  // on their way, and their requests
  std::vector<MPI_Request> sends_;
};

}  // namespace tensorpar::comm
