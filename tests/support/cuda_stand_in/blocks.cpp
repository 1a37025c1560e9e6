// tests/support/cuda_stand_in/blocks.cpp - a block of threads in this one: lanes run until they meet, in an order that changes
#include "block.hpp"
#include "fibers.hpp"
#include "shared.hpp"
#include <algorithm>
#include <memory>
#include <numeric>
#include <pthread.h>
#include <vector>

namespace cuda_stand_in {
namespace {

/// Runs one block at a time, of one thread of the host at a time. Between barriers a lane runs alone, so lanes that need a barrier and have
/// none see numbers that depend on the order.
class block_runner {
  enum class state { fresh, ready, at_barrier, at_warp, done };
  struct lane {
    state is = state::fresh;
    fiber* on = nullptr;
    unsigned mask = 0, from = 0;
    bool in_order = false;                     // memory too
    std::uint64_t gives = 0, gets = 0;
  };
  std::vector<lane> lanes_;
  std::vector<unsigned> turns_;
  std::size_t turn_ = 0;
  std::vector<std::unique_ptr<fiber>> all_;
  std::vector<fiber*> idle_;
  fiber own_;
  fiber* current_ = nullptr;
  std::function<void()> const* body_ = nullptr;
  std::uint64_t draw_ = 0;
  lane_order order_ = lane_order::forward;
  std::string complaint_;
  cudaError_t status_ = cudaSuccess;
  bool inside_ = false;
  pthread_t thread_{};

  std::uint64_t draw() {
    draw_ ^= draw_ << 13;
    draw_ ^= draw_ >> 7;
    return draw_ ^= draw_ << 17;
  }
  template <class T> void arrange(std::vector<T>& v) {
    if (order_ == lane_order::backward) std::reverse(v.begin(), v.end());
    if (order_ == lane_order::shuffled)
      for (std::size_t k = v.size(); k > 1; --k) std::swap(v[k - 1], v[draw() % k]);
  }
  static void stand_at(unsigned l) {
    threadIdx = {l % blockDim.x, l / blockDim.x % blockDim.y, l / blockDim.x / blockDim.y};
    races::lane(l);
  }
  static void entry();
  void live() {
    for (;;) {
      for (;;) {                               // as many lanes as do not wait, one after another
        unsigned const l = turns_[turn_];
        stand_at(l);
        (*body_)();
        lanes_[turns_[turn_]].is = state::done;
        if (turn_ + 1 == turns_.size() || lanes_[turns_[turn_ + 1]].is != state::fresh) break;
        ++turn_;
      }
      idle_.push_back(current_);
      fiber::change(*current_, own_);
    }
  }
  fiber* another() {
    if (!idle_.empty()) {
      fiber* const f = idle_.back();
      idle_.pop_back();
      return f;
    }
    all_.push_back(std::make_unique<fiber>());
    all_.back()->begin(entry);
    return all_.back().get();
  }
  void wait(state s) {
    lane& me = lanes_[turns_[turn_]];
    me.is = s;
    me.on = current_;
    fiber::change(*me.on, own_);
  }
  void take_turns() {
    for (turn_ = 0; turn_ < turns_.size() && status_ == cudaSuccess; ++turn_) {
      lane const& l = lanes_[turns_[turn_]];
      if (l.is == state::done) continue;
      current_ = l.is == state::fresh ? another() : l.on;
      stand_at(turns_[turn_]);
      fiber::change(own_, *current_);
      races::nobody();
    }
  }
  /// Lanes of a warp that wait for each other's numbers, all of the mask: they have them.
  bool release_warps() {
    bool any = false;
    for (unsigned l = 0; l < lanes_.size(); ++l) {
      if (lanes_[l].is != state::at_warp) continue;
      unsigned const first = l / 32 * 32, mask = lanes_[l].mask;
      bool all = true;
      for (unsigned k = first; k < first + 32; ++k)
        if (mask >> (k - first) & 1) all = all && k < lanes_.size() && lanes_[k].is == state::at_warp && lanes_[k].mask == mask;
      if (!all) continue;
      if (lanes_[l].in_order) races::warp_met(first, mask);
      for (unsigned k = 0; k < 32; ++k)
        if (mask >> k & 1) {
          lane& to = lanes_[first + k];
          unsigned const from = first + to.from;
          to.gets = from < lanes_.size() && mask >> to.from & 1 ? lanes_[from].gives : ~std::uint64_t{0};    // of a lane that gives nothing
        }
      for (unsigned k = 0; k < 32; ++k)
        if (mask >> k & 1) {
          lanes_[first + k].is = state::ready;
          turns_.push_back(first + k);
        }
      any = true;
    }
    return any;
  }
  std::string lanes_in(state s) const {
    std::string r;
    int n = 0;
    for (std::size_t l = 0; l < lanes_.size(); ++l)
      if (lanes_[l].is == s && n++ < 4) r += (r.empty() ? "" : ", ") + std::to_string(l);
    return std::to_string(n) + " (" + r + (n > 4 ? ", ...)" : ")");
  }
  /// What stands on the stacks of lanes that were given up is forgotten.
  void give_up() {
    idle_.clear();
    for (auto const& f : all_) {
      f->begin(entry);
      idle_.push_back(f.get());
    }
  }
  void one_block(std::uint32_t number, unsigned threads, shared_memory const& shared) {
    lanes_.assign(threads, {});
    turns_.resize(threads);
    std::iota(turns_.begin(), turns_.end(), 0u);
    shared.poison();
    races::block(number, threads, shared.at(), shared.bytes());
    for (;;) {
      arrange(turns_);
      take_turns();
      if (status_ != cudaSuccess) return;
      turns_.clear();
      std::size_t const done = count(state::done), met = count(state::at_barrier);
      if (done == threads) return;
      if (release_warps()) continue;
      if (met == threads) {
        for (unsigned l = 0; l < threads; ++l) {
          lanes_[l].is = state::ready;
          turns_.push_back(l);
        }
        races::block_met();
        continue;
      }
      status_ = cudaErrorLaunchFailure;
      complaint_ = "a barrier that not all lanes of a block reach: " + lanes_in(state::at_barrier) + " wait at it, " +
                   lanes_in(state::at_warp) + " for their warp, " + lanes_in(state::done) + " have ended";
      return;
    }
  }
  std::size_t count(state s) const {
    return static_cast<std::size_t>(std::count_if(lanes_.begin(), lanes_.end(), [&](lane const& l) { return l.is == s; }));
  }

 public:
  static block_runner& get() {
    static block_runner r;
    return r;
  }
  bool inside() const { return inside_ && pthread_equal(thread_, pthread_self()); }
  void barrier() { wait(state::at_barrier); }
  std::uint64_t exchange(unsigned mask, unsigned from, std::uint64_t x, bool in_order) {
    lane& me = lanes_[turns_[turn_]];
    unsigned const l = turns_[turn_];
    if (!(mask >> (l % 32) & 1)) fail(cudaErrorLaunchFailure, "a lane is not in the mask that it says");
    me.mask = mask;
    me.from = from;
    me.gives = x;
    me.in_order = in_order;
    wait(state::at_warp);
    return lanes_[l].gets;
  }
  unsigned lane_in_warp() const { return turns_[turn_] % 32; }
  void fail(cudaError_t status, char const* what) {
    status_ = status;
    complaint_ = what;
    fiber::change(*current_, own_);
  }

  cudaError_t run(dim3 grid, dim3 threads, lane_order order, std::uint64_t launch, std::function<void()> const& body, std::string& words) {
    body_ = &body;
    gridDim = grid;
    blockDim = threads;
    order_ = order == lane_order::mixed ? static_cast<lane_order>(launch % 3) : order;
    draw_ = 88172645463325252u + launch;
    status_ = cudaSuccess;
    thread_ = pthread_self();
    std::uint64_t const blocks = std::uint64_t{grid.x} * grid.y * grid.z;
    std::vector<std::uint32_t> at(static_cast<std::size_t>(blocks));
    std::iota(at.begin(), at.end(), 0u);
    arrange(at);
    shared_memory const shared;
    inside_ = true;
    for (std::uint32_t b : at) {
      blockIdx = {b % grid.x, b / grid.x % grid.y, b / grid.x / grid.y};
      one_block(b, threads.x * threads.y * threads.z, shared);
      if (status_ != cudaSuccess) break;
    }
    inside_ = false;
    if (status_ != cudaSuccess) {
      give_up();
      words = "block " + std::to_string(blockIdx.x) + ": " + complaint_;
    }
    return status_;
  }
};
void block_runner::entry() {
  fiber::entered();
  get().live();
}

}  // namespace

cudaError_t run_blocks(dim3 grid, dim3 threads, lane_order order, std::uint64_t launch, std::function<void()> const& body,
                       std::string& words) {
  return block_runner::get().run(grid, threads, order, launch, body, words);
}
bool in_kernel() { return block_runner::get().inside(); }
void fail_kernel(cudaError_t status, char const* what) { block_runner::get().fail(status, what); }
unsigned lane_in_warp() { return block_runner::get().lane_in_warp(); }
void block_barrier() { block_runner::get().barrier(); }
std::uint64_t warp_exchange(unsigned mask, unsigned from, std::uint64_t x, bool in_order) {
  return block_runner::get().exchange(mask, from, x, in_order);
}

}  // namespace cuda_stand_in
