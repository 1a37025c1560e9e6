// tensorpar/program/core/lifetimes.hpp - from when until when buffers are in use
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/program/core/program.hpp>

namespace tensorpar::passes {

/// Every buffer lives from the first task that uses it to the last; one that no task uses, with the first
/// task of all. Persistent ones are left to the caller. O(tasks + buffers).
inline void live_by_use(program& p) {
  for (buffer& b : p.buffers) b.first = -1;
  for (int t = 0; t < static_cast<int>(p.tasks.size()); ++t) {
    auto const used = [&](int b) {
      if (b < 0) return;
      buffer& x = p.buffers[idx(b)];
      if (x.first < 0) x.first = t;
      x.last = t;
    };
    for (int b : p.tasks[idx(t)].in) used(b);
    for (int b : p.tasks[idx(t)].out) used(b);
    used(p.tasks[idx(t)].workspace);
  }
  for (buffer& b : p.buffers) if (b.first < 0) b.first = b.last = 0;
}

}  // namespace tensorpar::passes
