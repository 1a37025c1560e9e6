// tests/support/cuda_stand_in/races.cpp - what the compiler calls at every access, and the last accesses of every two bytes
#include "races.hpp"
#include <algorithm>
#include <array>
#include <cstring>
#include <cxxabi.h>
#include <dlfcn.h>
#include <map>
#include <mutex>
#include <pthread.h>
#include <set>
#include <sys/mman.h>

extern char const __executable_start[];        // the linker's

namespace cuda_stand_in::races {
namespace {

/// Who did it, when and where in the program. Work is counted from 1.
struct access {
  std::uint32_t work = 0, code = 0, block : 22 = 0, lane : 10 = 0;
  std::uint16_t meeting = 0, warp_meeting = 0;
};
/// The last that wrote, and two that have read since.
struct cell {
  access writer, readers[2];
};
constexpr std::size_t page = 1024, cell_bytes = 2, cells = page / cell_bytes, whole_page = 4096;
using cell_page = std::array<cell, cells>;
/// Bytes of a page of memory that are allocated; no two pieces share one.
struct extent {
  std::uint16_t from = 0, to = 0;
};
struct watched {
  std::uintptr_t from = 0, bytes = 0;
  cell_page** pages = nullptr;
  extent* extents = nullptr;
  extent& extent_at(std::uintptr_t p) const { return extents[(p - from) / whole_page]; }
  bool allotted(std::uintptr_t p, std::size_t n) const {
    extent const first = extent_at(p), last = extent_at(p + n - 1);
    return p % whole_page >= first.from && p % whole_page < first.to && (p + n - 1) % whole_page < last.to;
  }
  bool has(std::uintptr_t p) const { return p - from < bytes; }
};

struct moment {
  unsigned line;
  std::uint32_t number;
};
// Plain variables, so that nothing here is instrumented; work is done by one thread at a time.
watched device, pinned;
std::vector<moment>* works = nullptr;
progress *known_now = nullptr, *host_known = nullptr;
std::uint32_t host_number = 1, host_work = 0;
std::recursive_mutex* guard = nullptr;
std::string* words = nullptr;
std::vector<cell_page*>* idle_pages = nullptr;
std::set<std::pair<std::uint32_t, std::uint32_t>>* told = nullptr;
pthread_t worker{};
bool working = false, in_lane = false, seen = false;
access me;
std::uintptr_t shared_from = 0, shared_bytes = 0;
std::vector<cell>* shared_cells = nullptr;
std::uint16_t meeting = 0;
std::vector<std::array<std::uint16_t, 32>>* warp_known = nullptr;      // by lane: how often it knows lanes of its warp to have met
std::vector<std::uint16_t>* warp_meetings = nullptr;

void begin() {
  if (guard) return;
  guard = new std::recursive_mutex;
  works = new std::vector<moment>{{0, 0}};
  known_now = new progress;
  host_known = new progress;
  words = new std::string;
  idle_pages = new std::vector<cell_page*>;
  told = new std::set<std::pair<std::uint32_t, std::uint32_t>>;
  shared_cells = new std::vector<cell>;
  warp_known = new std::vector<std::array<std::uint16_t, 32>>;
  warp_meetings = new std::vector<std::uint16_t>;
}

bool in_order(access const& before, access const& now, progress const& known) {
  if (before.work == now.work) {
    if (before.block != now.block) return false;
    if (before.lane == now.lane || before.meeting < now.meeting) return true;
    return before.lane / 32 == now.lane / 32 && (*warp_known)[now.lane][before.lane % 32] > before.warp_meeting;
  }
  moment const& m = (*works)[before.work];
  return m.line < known.size() && known[m.line] >= m.number;
}

std::uint32_t place_of(void const* code) { return static_cast<std::uint32_t>(static_cast<char const*>(code) - __executable_start); }
std::string name_of(std::uint32_t place) {
  void const* const code = __executable_start + place;
  Dl_info i{};
  char text[64];
  if (!dladdr(code, &i) || !i.dli_sname) {
    std::snprintf(text, sizeof text, "code at +0x%x", place);
    return text;
  }
  int status = 0;
  char* const plain = abi::__cxa_demangle(i.dli_sname, nullptr, nullptr, &status);
  std::string r = plain ? plain : i.dli_sname;
  std::free(plain);
  if (r.size() > 400) r = r.substr(0, 400) + "...";
  std::snprintf(text, sizeof text, " (+0x%x)", place);
  return r + text;
}
std::string say(access const& a, bool writes) {
  moment const& m = (*works)[a.work];
  std::string const who = m.line == 0 ? "the host" : "line " + std::to_string(m.line) + " (work " + std::to_string(m.number) + "), block " +
                          std::to_string(a.block) + ", lane " + std::to_string(a.lane);
  return who + (writes ? " writes in " : " reads in ") + name_of(a.code);
}
void tell(access const& before, bool wrote, access const& now, bool writes) {
  if (told->size() >= 20 || !told->insert({before.code, now.code}).second) return;
  *words += (words->empty() ? "" : "\n") + ("not in order: " + say(before, wrote)) + ",\n  and " + say(now, writes);
}

void tell_outside(access const& now, bool writes, std::size_t n) {
  if (told->size() >= 20 || !told->insert({0, now.code}).second) return;
  *words += (words->empty() ? "" : "\n") + (outside + (", " + std::to_string(n) + " bytes: ") + say(now, writes));
}

void look(cell& c, access const& now, bool writes, progress const& known) {
  if (c.writer.work && !in_order(c.writer, now, known)) tell(c.writer, true, now, writes);
  if (writes) {
    for (access const& r : c.readers) if (r.work && !in_order(r, now, known)) tell(r, false, now, true);
    c.writer = now;
    c.readers[0].work = c.readers[1].work = 0;
    return;
  }
  for (access& r : c.readers)
    if (!r.work || in_order(r, now, known)) {
      r = now;
      return;
    }
}
cell* cells_at(watched const& w, std::uintptr_t p) {
  cell_page*& q = w.pages[(p - w.from) / page];
  if (!q) {
    if (idle_pages->empty()) idle_pages->push_back(new cell_page);
    q = idle_pages->back();
    idle_pages->pop_back();
    q->fill({});
  }
  return &(*q)[p % page / cell_bytes];
}
void look_in(watched const& w, std::uintptr_t p, std::size_t n, access const& now, bool writes, progress const& known) {
  constexpr std::size_t much = std::size_t{1} << 18, ends = 4096;
  if (!w.allotted(p, n)) tell_outside(now, writes, n);
  for (std::uintptr_t at = p / cell_bytes * cell_bytes; at < p + n && w.has(at); at += cell_bytes) {
    if (n > much && at >= p + ends && at < p + n - ends) at = (p + n - ends) / cell_bytes * cell_bytes;      // of what is long, both ends
    look(*cells_at(w, at), now, writes, known);
  }
}

void touched_there(void const* at, std::size_t n, bool writes, void const* code) {
  auto const p = reinterpret_cast<std::uintptr_t>(at);
  if (in_lane && p - shared_from < shared_bytes) {
    access now = me;
    now.code = place_of(code);
    std::size_t const first = (p - shared_from) / cell_bytes, last = std::min((p + n - 1 - shared_from) / cell_bytes, shared_cells->size() - 1);
    for (std::size_t k = first; k <= last; ++k) look((*shared_cells)[k], now, writes, *known_now);
    return;
  }
  access now;
  if (device.has(p)) {
    if (!working) return;                      // the host may not touch it, and will hear so
    now = me;
    now.code = place_of(code);
    return look_in(device, p, n, now, writes, *known_now);
  }
  if (!pinned.has(p)) return;
  std::lock_guard const held(*guard);
  bool const work = working && pthread_equal(worker, pthread_self());
  if (work) {
    now = me;
  } else {
    if (!host_work) {
      host_work = static_cast<std::uint32_t>(works->size());
      works->push_back({0, host_number});
    }
    now.work = host_work;
    learn(*host_known, 0, host_number);
  }
  now.code = place_of(code);
  look_in(pinned, p, n, now, writes, work ? *known_now : *host_known);
}
inline void touched(void const* at, std::size_t n, bool writes, void const* code) {
  auto const p = reinterpret_cast<std::uintptr_t>(at);
  if (p - device.from < device.bytes || p - shared_from < shared_bytes || p - pinned.from < pinned.bytes) touched_there(at, n, writes, code);
}

}  // namespace

void watch(region r, void const* from, std::size_t bytes) {
  begin();
  std::size_t const table = bytes / page * sizeof(cell_page*);
  void* const t = mmap(nullptr, table, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (t == MAP_FAILED) std::abort();
  void* const e = mmap(nullptr, bytes / whole_page * sizeof(extent), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (e == MAP_FAILED) std::abort();
  (r == region::device ? device : pinned) = {reinterpret_cast<std::uintptr_t>(from), bytes, static_cast<cell_page**>(t), static_cast<extent*>(e)};
}
void allot(void const* from, std::size_t bytes) {
  auto const p = reinterpret_cast<std::uintptr_t>(from), end = p + bytes;
  std::lock_guard const held(*guard);
  for (watched const* w : {&device, &pinned})
    for (std::uintptr_t at = p / whole_page * whole_page; w->has(p) && at < end; at += whole_page)
      w->extent_at(at) = {static_cast<std::uint16_t>(at < p ? p - at : 0), static_cast<std::uint16_t>(std::min(end - at, whole_page))};
}
void forget(void const* from, std::size_t bytes) {
  auto const p = reinterpret_cast<std::uintptr_t>(from);
  std::lock_guard const held(*guard);
  for (watched const* w : {&device, &pinned})
    for (std::uintptr_t at = p / whole_page * whole_page; w->has(p) && at < p + bytes; at += whole_page) w->extent_at(at) = {};
  for (watched const* w : {&device, &pinned})
    for (std::uintptr_t at = p / page * page; w->has(p) && at < p + bytes; at += page) {
      cell_page*& q = w->pages[(at - w->from) / page];
      if (q) idle_pages->push_back(q);
      q = nullptr;
    }
}

void enter(unsigned line, std::uint32_t number, progress const& known) {
  begin();
  std::lock_guard const held(*guard);
  worker = pthread_self();
  working = true;
  *known_now = known;
  me = {};
  me.work = static_cast<std::uint32_t>(works->size());
  works->push_back({line, number});
}
progress const& known() { return *known_now; }
void leave() {
  std::lock_guard const held(*guard);
  working = false;
}
void block(std::uint32_t number, unsigned lanes, void const* shared, std::size_t bytes) {
  begin();
  me.block = number & 0x3fffffu;
  shared_from = reinterpret_cast<std::uintptr_t>(shared);
  shared_bytes = bytes;
  shared_cells->assign(bytes / cell_bytes + 1, {});
  warp_known->resize(lanes);
  warp_meetings->resize(lanes);
  meeting = 0;
  block_met();
}
void lane(unsigned l) {
  me.lane = l & 0x3ffu;
  me.meeting = meeting;
  me.warp_meeting = (*warp_meetings)[l];
  in_lane = true;
}
void nobody() { in_lane = false; }
void block_met() {
  ++meeting;
  std::fill(warp_meetings->begin(), warp_meetings->end(), std::uint16_t{0});
  for (auto& k : *warp_known) k.fill(0);
}
void warp_met(unsigned first, unsigned mask) {
  std::array<std::uint16_t, 32> all{};
  for (unsigned k = 0; k < 32; ++k)
    if (mask >> k & 1) {
      std::uint16_t const n = ++(*warp_meetings)[first + k];
      (*warp_known)[first + k][k] = n;
      for (unsigned j = 0; j < 32; ++j) all[j] = std::max(all[j], (*warp_known)[first + k][j]);
    }
  for (unsigned k = 0; k < 32; ++k) if (mask >> k & 1) (*warp_known)[first + k] = all;
}

progress const& host() {
  begin();
  return *host_known;
}
void host_learns(progress const& known) {
  begin();
  std::lock_guard const held(*guard);
  learn(*host_known, known);
}
std::uint32_t host_goes_on() {
  begin();
  std::lock_guard const held(*guard);
  host_work = 0;
  learn(*host_known, 0, host_number);
  return host_number++;
}

void touch(void const* p, std::size_t bytes, bool writes) {
  if (bytes) touched(p, bytes, writes, __builtin_return_address(0));
}
std::string found() {
  begin();
  std::lock_guard const held(*guard);
  std::string r;
  r.swap(*words);
  told->clear();
  return r;
}
bool all_is_seen() { return seen; }

}  // namespace cuda_stand_in::races

// --- what -fsanitize=thread makes of a program; volatile accesses are whole, as a GPU's are, and race with nothing
extern "C" {
void __tsan_init() { cuda_stand_in::races::seen = true; }
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_read(void**) {}
void __tsan_vptr_update(void**, void*) {}
#define CUDA_STAND_IN_ACCESS(name, bytes, writes) \
  void name(void* p) { cuda_stand_in::races::touched(p, bytes, writes, __builtin_return_address(0)); }
#define CUDA_STAND_IN_ACCESSES(n)                           \
  CUDA_STAND_IN_ACCESS(__tsan_read##n, n, false)            \
  CUDA_STAND_IN_ACCESS(__tsan_write##n, n, true)            \
  CUDA_STAND_IN_ACCESS(__tsan_unaligned_read##n, n, false)  \
  CUDA_STAND_IN_ACCESS(__tsan_unaligned_write##n, n, true)  \
  void __tsan_volatile_read##n(void*) {}                    \
  void __tsan_volatile_write##n(void*) {}                   \
  void __tsan_unaligned_volatile_read##n(void*) {}          \
  void __tsan_unaligned_volatile_write##n(void*) {}
CUDA_STAND_IN_ACCESSES(1)
CUDA_STAND_IN_ACCESSES(2)
CUDA_STAND_IN_ACCESSES(4)
CUDA_STAND_IN_ACCESSES(8)
CUDA_STAND_IN_ACCESSES(16)
void __tsan_read_range(void* p, unsigned long n) { if (n) cuda_stand_in::races::touched(p, n, false, __builtin_return_address(0)); }
void __tsan_write_range(void* p, unsigned long n) { if (n) cuda_stand_in::races::touched(p, n, true, __builtin_return_address(0)); }

// Atomics of the host's, which order nothing here.
#define CUDA_STAND_IN_ATOMIC(bits, type)                                                                                                  \
  type __tsan_atomic##bits##_load(type const volatile* p, int) { return __atomic_load_n(p, __ATOMIC_SEQ_CST); }                           \
  void __tsan_atomic##bits##_store(type volatile* p, type x, int) { __atomic_store_n(p, x, __ATOMIC_SEQ_CST); }                           \
  type __tsan_atomic##bits##_exchange(type volatile* p, type x, int) { return __atomic_exchange_n(p, x, __ATOMIC_SEQ_CST); }              \
  type __tsan_atomic##bits##_fetch_add(type volatile* p, type x, int) { return __atomic_fetch_add(p, x, __ATOMIC_SEQ_CST); }              \
  type __tsan_atomic##bits##_fetch_sub(type volatile* p, type x, int) { return __atomic_fetch_sub(p, x, __ATOMIC_SEQ_CST); }              \
  type __tsan_atomic##bits##_fetch_and(type volatile* p, type x, int) { return __atomic_fetch_and(p, x, __ATOMIC_SEQ_CST); }              \
  type __tsan_atomic##bits##_fetch_or(type volatile* p, type x, int) { return __atomic_fetch_or(p, x, __ATOMIC_SEQ_CST); }                \
  int __tsan_atomic##bits##_compare_exchange_strong(type volatile* p, type* was, type x, int, int) {                                      \
    return __atomic_compare_exchange_n(p, was, x, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                                             \
  }                                                                                                                                       \
  int __tsan_atomic##bits##_compare_exchange_weak(type volatile* p, type* was, type x, int, int) {                                        \
    return __atomic_compare_exchange_n(p, was, x, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                                             \
  }
CUDA_STAND_IN_ATOMIC(8, unsigned char)
CUDA_STAND_IN_ATOMIC(32, unsigned)
CUDA_STAND_IN_ATOMIC(64, unsigned long)
void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __tsan_atomic_signal_fence(int) {}

// Copies are calls there (-fno-builtin-memcpy), which the linker brings here (--wrap).
void* __real_memcpy(void*, void const*, std::size_t);
void* __wrap_memcpy(void* to, void const* from, std::size_t n) {
  if (n) {
    cuda_stand_in::races::touched(from, n, false, __builtin_return_address(0));
    cuda_stand_in::races::touched(to, n, true, __builtin_return_address(0));
  }
  return __real_memcpy(to, from, n);
}
void* __real_memset(void*, int, std::size_t);
void* __wrap_memset(void* to, int x, std::size_t n) {
  if (n) cuda_stand_in::races::touched(to, n, true, __builtin_return_address(0));
  return __real_memset(to, x, n);
}
}
