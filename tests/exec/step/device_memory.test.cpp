// tests/exec/step/device_memory.test.cpp - arenas of the planned size, and whole values sharded over them and put together again
#include <tensorpar/exec/step/device_memory.hpp>
#include <doctest/doctest.h>

#include "../../examples/far_device.hpp"
#include "support/spine.hpp"

using namespace tests;
using far::far_memory;

namespace {
struct first_far : far_memory {
  first_far() : far_memory(0) {}
};
struct sample {
  training_graph graph;
  program made;
  explicit sample(plan const& p) : graph(differentiate(small_transformer())), made(unroll(graph, p, {&compute::eigen<float>::workspace})) {}
};
std::vector<float> counted(i64 n) {
  std::vector<float> r;
  for (i64 i = 0; i < n; ++i) r.push_back(static_cast<float>(i) + 0.5f);
  return r;
}
}  // namespace

TEST_CASE_TEMPLATE("what is sharded comes back whole, copies agree, and a copy that was changed is found", M, exec::host_memory,
                   first_far) {
  std::mt19937 draw(4);
  int changed = 0;
  for (int trial = 0; trial < 20; ++trial) {
    int const n = 1 + trial % 6;
    sample const s(random_plan(small_transformer(), n, draw));
    comm::threads_world world(n);
    exec::detail::device_memory<float, M> const memory(s.made, exec::detail::local_ranks(world, n));
    CHECK(memory.bytes() == s.made.arena);
    for (std::size_t k = 0; k < s.made.buffers.size(); ++k) {
      buffer const& q = s.made.buffers[k];
      int const b = static_cast<int>(k);
      for (int d = 0; d < n; ++d) {
        CHECK(memory.has(b, d) == (std::find(q.devices.begin(), q.devices.end(), d) != q.devices.end()));
        if (memory.has(b, d)) CHECK(memory.offset(b, d) + q.bytes <= s.made.arena[static_cast<std::size_t>(d)]);
      }
      if (!q.persistent) continue;
      CHECK(memory.persistent_of(q.value) == b);
      memory.scatter(b, counted(q.type.elements()));
      CHECK(memory.gather(b, world) == counted(q.type.elements()));
    }
    CHECK(memory.persistent_of(-5) == -1);
    CHECK(memory.copies_agree(world));
    for (std::size_t k = 0; k < s.made.buffers.size(); ++k) {
      buffer const& q = s.made.buffers[k];
      if (!q.persistent || q.where.degree(ir::part_kind::replicate) == 1) continue;
      int const last = q.devices.back();
      unsigned char byte = 0;
      memory.memory(last).read(&byte, memory.address(static_cast<int>(k), last), 1);
      byte ^= 1;
      memory.memory(last).write(memory.address(static_cast<int>(k), last), &byte, 1);
      CHECK(!memory.copies_agree(world));
      ++changed;
      break;
    }
  }
  CHECK(changed > 3);
}

TEST_CASE("devices of other processes take no memory") {
  std::mt19937 draw(4);
  sample const s(random_plan(small_transformer(), 4, draw));
  exec::detail::device_memory<float> const memory(s.made, {1, 3});
  for (int d = 0; d < 4; ++d) {
    CHECK(memory.here(d) == (d % 2 == 1));
    CHECK(memory.bytes()[static_cast<std::size_t>(d)] == (d % 2 ? s.made.arena[static_cast<std::size_t>(d)] : 0));
  }
}
