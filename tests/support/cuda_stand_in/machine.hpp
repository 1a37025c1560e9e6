// tests/support/cuda_stand_in/machine.hpp - the machine that is played: GPUs, their memory, what goes wrong, and what was seen to be wrong
#pragma once
#include "races.hpp"
#include "types.hpp"
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <sys/mman.h>
#include <vector>

#include "sanitized.hpp"
#if defined(CUDA_STAND_IN_ASAN)
#include <sanitizer/asan_interface.h>
#endif

namespace cuda_stand_in {

/// In which order lanes (and blocks) take their turns between two barriers. `mixed`: another of the three for each launch.
enum class lane_order { forward, backward, shuffled, mixed };
/// When work that may be done is done. `late`: when somebody waits for it, and only what he waits for: what should have been waited for in
/// other streams has then not happened. `early`: when it is asked for. `shuffled`: now and then, by numbers that are the same every time.
enum class schedule { late, early, shuffled };

/// Memory of GPUs, at addresses that the host has no access to except while their work is done; or pinned memory, which it always has.
/// Every piece ends where a page does, with no access beyond; addresses are not used again. races.hpp and AddressSanitizer know the bytes
/// before the piece and after it.
class device_memory {
  static constexpr std::size_t page = 4096, reserved = std::size_t{1} << 42;
  struct piece {
    std::size_t bytes, rounded, counts;
    int gpu;
  };
  std::map<std::uintptr_t, piece> pieces_;     // by address
  std::byte *next_ = nullptr, *end_ = nullptr;
  races::region region_;

  static std::byte* pages(std::uintptr_t p) { return reinterpret_cast<std::byte*>(p / page * page); }
  static std::size_t size_of(std::uintptr_t p, piece const& x) { return p % page + x.rounded; }
  static void watch([[maybe_unused]] std::uintptr_t p, [[maybe_unused]] piece const& x, [[maybe_unused]] bool on) {
#if defined(CUDA_STAND_IN_ASAN)
    __asan_unpoison_memory_region(pages(p), size_of(p, x));
    if (!on) return;
    __asan_poison_memory_region(pages(p), p % page);
    __asan_poison_memory_region(reinterpret_cast<std::byte*>(p) + x.bytes, x.rounded - x.bytes);
#endif
  }

 public:
  explicit device_memory(races::region r) : region_(r) {}
  std::map<int, std::size_t> used;             // by GPU, as the driver counts: pages of 2 MiB, smaller pieces share some

  void* allocate(int gpu, std::size_t n, std::size_t all) {
    std::size_t const large = std::size_t{2} << 20, counts = n >= large / 2 ? (n + large - 1) / large * large : (n + 511) / 512 * 512;
    if (n > all || used[gpu] + counts > all) return nullptr;
    if (!next_) {
      void* const p = mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (p == MAP_FAILED) std::abort();
      next_ = static_cast<std::byte*>(p);
      end_ = next_ + reserved;
      races::watch(region_, next_, reserved);
    }
    std::size_t const rounded = (n + 255) / 256 * 256, whole = (rounded + page - 1) / page * page;
    if (whole + page > static_cast<std::size_t>(end_ - next_)) std::abort();
    auto const at = reinterpret_cast<std::uintptr_t>(next_) + whole - rounded;
    next_ += whole + page;
    piece const x{n, rounded, counts, gpu};
    pieces_[at] = x;
    used[gpu] += counts;
    allow(at, x, true);
    races::allot(reinterpret_cast<void*>(at), n);
    std::memset(reinterpret_cast<void*>(at), 0xff, n < large ? n : large);         // no zeroes for those who forget them
    watch(at, x, true);
    if (region_ == races::region::device) allow(at, x, false);
    return reinterpret_cast<void*>(at);
  }
  /// False: there is no such piece.
  bool release(void* p) {
    auto const i = pieces_.find(reinterpret_cast<std::uintptr_t>(p));
    if (i == pieces_.end()) return false;
    used[i->second.gpu] -= i->second.counts;
    watch(i->first, i->second, false);
    madvise(pages(i->first), size_of(i->first, i->second), MADV_DONTNEED);
    if (region_ == races::region::pinned) allow(i->first, i->second, false);
    races::forget(p, i->second.bytes);
    pieces_.erase(i);
    return true;
  }
  /// As std::memset. Zeroes of many pages are pages that nobody has touched, so that what is never used takes no memory and no time.
  static void set(void* p, int value, std::size_t n) {
    auto const at = reinterpret_cast<std::uintptr_t>(p), from = (at + page - 1) / page * page, to = (at + n) / page * page;
    if (value || to < from + (std::size_t{1} << 20)) {
      std::memset(p, value, n);
      return;
    }
    auto* const first = static_cast<std::byte*>(p);
    std::memset(first, 0, static_cast<std::size_t>(reinterpret_cast<std::byte*>(from) - first));
    madvise(reinterpret_cast<void*>(from), to - from, MADV_DONTNEED);
    std::memset(reinterpret_cast<void*>(to), 0, static_cast<std::size_t>(first + n - reinterpret_cast<std::byte*>(to)));
  }
  /// All of a GPU's, for those who work there.
  void allow(int gpu, bool on) { for (auto const& [at, x] : pieces_) if (x.gpu == gpu) allow(at, x, on); }
  /// Whose bytes these are; -1: no GPU's, -2: not all of them one piece's.
  int owner(void const* p, std::size_t n) const {
    auto const at = reinterpret_cast<std::uintptr_t>(p);
    auto i = pieces_.upper_bound(at);
    if (i != pieces_.begin() && at < (--i)->first + i->second.bytes) return n <= i->first + i->second.bytes - at ? i->second.gpu : -2;
    bool const ours = next_ && at + n > reinterpret_cast<std::uintptr_t>(end_) - reserved && at < reinterpret_cast<std::uintptr_t>(end_);
    return ours ? -2 : -1;
  }
  /// Where the piece begins that has this byte; 0: none.
  std::uintptr_t piece_of(void const* p) const {
    auto const at = reinterpret_cast<std::uintptr_t>(p);
    auto i = pieces_.upper_bound(at);
    return i != pieces_.begin() && at - (--i)->first < i->second.bytes ? i->first : 0;
  }
  std::size_t pieces() const { return pieces_.size(); }

 private:
  static void allow(std::uintptr_t p, piece const& x, bool on) {
    mprotect(pages(p), size_of(p, x), on ? PROT_READ | PROT_WRITE : PROT_NONE);
  }
};

/// Everything, and how it misbehaves. Tests set what is public before they begin, see `reset`.
struct the_machine {
  int gpus = 1, capability = 9;                           // how many, and the major number of what they can
  std::size_t memory_bytes = std::size_t{1} << 30;        // of each
  schedule when = schedule::late;
  lane_order lanes = lane_order::mixed;
  bool minds_races = true;                                // else accesses that are not in order are complaints, and work goes on
  bool free_waits = true;                                 // cudaFree waits for the GPU, as drivers do although nobody promises it
  /// What a call says instead of being done, of calls of this name the nth (from 1); cudaSuccess where all is well.
  std::function<cudaError_t(std::string const& call, int nth)> on_call;
  std::vector<std::string> complaints;                    // what nobody may do, in words

  std::recursive_mutex lock;                              // held by every call, and while work is done
  device_memory memory{races::region::device}, pinned{races::region::pinned};
  std::map<int, cudaError_t> broken;                      // GPUs after an error that stays
  std::map<std::string, int> calls;
  int streams = 0, events = 0, graphs = 0, executables = 0, descriptors = 0;     // that exist
  std::uint64_t clock = 0, launches = 0;
  std::uint64_t draw = 1;                                 // of the shuffled schedule

  static the_machine& get() {
    static the_machine m;
    return m;
  }
  /// The environment may say another schedule, and that cudaFree waits for nobody: CUDA_STAND_IN="shuffled,free".
  the_machine() {
    char const* const said = std::getenv("CUDA_STAND_IN");
    if (!said) return;
    if (std::strstr(said, "early")) when = schedule::early;
    if (std::strstr(said, "shuffled")) when = schedule::shuffled;
    if (std::strstr(said, "free")) free_waits = false;
  }
  /// The GPU is lost: work is not done any more, and all that it is asked for fails.
  void fall_off(int gpu, cudaError_t with = cudaErrorUnknown) {
    std::lock_guard const held(lock);
    broken[gpu] = with;
  }
  cudaError_t state(int gpu) const {
    auto const i = broken.find(gpu);
    return i == broken.end() ? cudaSuccess : i->second;
  }
  void complain(std::string what) { complaints.push_back(std::move(what)); }
  /// A GPU whose work is not in order is of no use.
  void complain_of_races(int gpu) {
    std::string what = races::found();
    if (what.empty()) return;
    if (minds_races) {
      std::fprintf(stderr, "%s\n", what.c_str());
      broken[gpu] = what.find(races::outside) == what.npos ? cudaErrorLaunchFailure : cudaErrorIllegalAddress;
    }
    complain(std::move(what));
  }
  /// What nobody gave back.
  std::string alive() const {
    std::string r;
    auto const say = [&](char const* what, std::size_t n) { if (n) r += (r.empty() ? "" : ", ") + std::to_string(n) + " " + what; };
    say("pieces of device memory", memory.pieces());
    say("pieces of pinned memory", pinned.pieces());
    say("streams", static_cast<std::size_t>(streams));
    say("events", static_cast<std::size_t>(events));
    say("graphs", static_cast<std::size_t>(graphs));
    say("executable graphs", static_cast<std::size_t>(executables));
    say("cuBLASLt objects", static_cast<std::size_t>(descriptors));
    return r;
  }
  std::uint64_t next_draw() {
    draw = draw * 6364136223846793005u + 1442695040888963407u;
    return draw >> 33;
  }
};

inline thread_local int current_gpu = 0;
inline thread_local cudaError_t last_error = cudaSuccess;

}  // namespace cuda_stand_in
