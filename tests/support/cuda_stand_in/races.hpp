// tests/support/cuda_stand_in/races.hpp - who touches the same number as another without having waited for it: lanes, blocks, streams, host;
// and who touches what was not allocated
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace cuda_stand_in {

/// How far lines of work are known to have come, by line: a stream, a chain of a graph's nodes, or (0) the host.
using progress = std::vector<std::uint32_t>;
inline void learn(progress& a, progress const& b) {
  if (a.size() < b.size()) a.resize(b.size());
  for (std::size_t k = 0; k < b.size(); ++k) if (a[k] < b[k]) a[k] = b[k];
}
inline void learn(progress& a, unsigned line, std::uint32_t number) {
  if (a.size() <= line) a.resize(line + 1);
  if (a[line] < number) a[line] = number;
}

/// Sees every access of code that is compiled with -fsanitize=thread (not linked with it: races.cpp is the library), to memory of GPUs,
/// pinned memory and shared memory. What others touch is told by `touch`. Two accesses of the same two bytes, one of which writes, must be
/// in order: by the lane's own, by barriers of a block, by __syncwarp (shuffles order no memory), by streams, events, graphs' edges, and by
/// what the host has waited for. All threads of the host count as one, which knows what any of them knows.
namespace races {
enum class region { device, pinned };
void watch(region r, void const* from, std::size_t bytes);
/// The piece may be touched from now on, and nothing before it in its first page or behind it in its last.
void allot(void const* from, std::size_t bytes);
/// The piece is given back: what was done with it matters to nobody, and nobody may touch it.
void forget(void const* from, std::size_t bytes);

/// This thread does work that is the number-th of its line, and knows so much. Until `leave`.
void enter(unsigned line, std::uint32_t number, progress const& known);
void leave();
/// What the work that is done now knows.
progress const& known();
/// A block of so many lanes, whose shared memory this is.
void block(std::uint32_t number, unsigned lanes, void const* shared, std::size_t bytes);
/// This lane goes on; or the block waits.
void lane(unsigned l);
void nobody();
void block_met();
void warp_met(unsigned first, unsigned mask);

/// What the host knows by now, and another moment of it: the number of the one that ends.
progress const& host();
void host_learns(progress const& known);
std::uint32_t host_goes_on();

void touch(void const* p, std::size_t bytes, bool writes);
/// How what is said of such an access begins.
inline constexpr char const* outside = "outside of what is allocated";
/// What was found since this was asked last, in words; empty: nothing.
std::string found();
/// Is every access seen, or only what is told?
bool all_is_seen();
}  // namespace races

}  // namespace cuda_stand_in
