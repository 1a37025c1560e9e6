// tensorpar/tool/progress.hpp - what a search is doing, on standard error: a line that is written anew on a
// terminal, else a line every ten seconds
#pragma once
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/report/units.hpp>
#include <tensorpar/search/plan_watch.hpp>
#include <tensorpar/tool/console.hpp>
#include <thread>

namespace tensorpar::tools {

/// Tells of one search while it lives. On a terminal a single line follows the search and is wiped at the
/// end. Elsewhere a line is printed every `pause`, so that short searches say nothing. Nothing where `quiet`.
class search_progress final : public search::plan_watch {
  using clock = std::chrono::steady_clock;
  console io_;
  bool quiet_;
  clock::time_point const start_ = clock::now();
  std::mutex m_;
  std::condition_variable_any ended_;
  std::string doing_ = "beginning", best_;
  double least_ = infinity;
  std::size_t left_ = 0, plans_ = 0;
  std::jthread timer_;  // the last: it uses all of the above

  /// Precondition: `m_` is held.
  void print() {
    double const seconds = std::chrono::duration<double>(clock::now() - start_).count();
    std::string r = "tensorpar: " + report::detail::printed("%.0f", seconds) + " s, " + doing_;
    if (plans_) r += "; " + std::to_string(plans_) + (plans_ == 1 ? " plan" : " plans") + " compared";
    if (!best_.empty()) r += ", best so far " + report::seconds_text(least_) + " (" + best_ + ")";
    if (left_) r += "; " + std::to_string(left_) + (left_ == 1 ? " kind" : " kinds") + " of plans left";
    if (io_.terminal)
      io_.err << "\r\x1b[K" << report::shortened(r, 118) << std::flush;
    else
      io_.err << r << "\n" << std::flush;
  }

 public:
  explicit search_progress(console const& io, bool quiet,
                           std::chrono::milliseconds pause = std::chrono::seconds(10))
      : io_(io), quiet_(quiet) {
    if (quiet) return;
    if (io_.terminal) pause = std::min(pause, std::chrono::milliseconds(1000));
    timer_ = std::jthread([this, pause](std::stop_token stop) {
      std::unique_lock lock(m_);
      while (!ended_.wait_for(lock, stop, pause, [&] { return stop.stop_requested(); })) print();
    });
  }
  search_progress(search_progress const&) = delete;
  search_progress& operator=(search_progress const&) = delete;
  ~search_progress() override {
    if (quiet_) return;
    timer_.request_stop();
    timer_.join();
    if (io_.terminal) io_.err << "\r\x1b[K" << std::flush;
  }

  void looks_at(std::string const& what, std::size_t left) override {
    std::lock_guard const lock(m_);
    doing_ = what;
    left_ = left;
    if (!quiet_ && io_.terminal) print();
  }
  void tried(tried_plan const& one) override {
    std::lock_guard const lock(m_);
    ++plans_;
    if (one.feasible() && one.seconds < least_) {
      least_ = one.seconds;
      best_ = one.what;
    }
    if (!quiet_ && io_.terminal) print();
  }
};

}  // namespace tensorpar::tools
