// tests/support/laws/queues.hpp - the laws of `queued_memory` and `recording_memory`
#pragma once
#include <doctest/doctest.h>
#include <random>
#include <tensorpar/exec/device/memory.hpp>
#include <tensorpar/exec/step/captured_graphs.hpp>
#include <vector>

namespace tests {

using namespace tensorpar;

/// A number goes round three queues, each of which adds one and copies it on: marks alone keep that in order.
template <exec::queued_memory M> void check_marks(M const& m, int turns) {
  constexpr i64 n = 5000;
  std::vector<std::int32_t> const ones(n, 1);
  i64 const bytes = n * 4;
  std::vector<M> queues{m, m.beside(), m.beside()};
  std::vector<std::int32_t*> at;
  std::vector<typename M::mark> ended;
  for (M const& q : queues) {
    at.push_back(reinterpret_cast<std::int32_t*>(m.allocate(bytes)));
    ended.push_back(q.make_mark());
    CHECK(q.reached(ended.back()));
  }
  auto* const one = reinterpret_cast<std::int32_t*>(m.allocate(bytes));
  m.write(one, ones.data(), bytes);
  m.set(ended[0]);
  op::tensor_block line;
  line.rank = 1;
  line.local[0] = line.global[0] = n;
  for (int turn = 0; turn < turns; ++turn)
    for (std::size_t k = 1; k <= 3; ++k) {
      M const& q = queues[k % 3];
      q.follow(ended[k - 1]);
      q.move_box(line, line, at[k - 1], line, at[k % 3], false);
      q.move_box(line, line, one, line, at[k % 3], true);
      q.set(ended[k % 3]);
    }
  m.wait();
  CHECK(m.reached(ended[0]));
  std::vector<std::int32_t> got(n);
  m.read(got.data(), at[0], bytes);
  CHECK(got == std::vector<std::int32_t>(n, 3 * turns));
  for (auto* p : at) m.release(reinterpret_cast<std::byte*>(p), bytes);
  m.release(reinterpret_cast<std::byte*>(one), bytes);
}

/// What is written down is not done, and every replay does it with the numbers that are there then.
template <exec::recording_memory M> void check_recordings(M const& m) {
  constexpr i64 n = 1000;
  i64 const bytes = n * 4;
  auto* const sum = reinterpret_cast<std::int32_t*>(m.allocate(bytes));
  auto* const term = reinterpret_cast<std::int32_t*>(m.allocate(bytes));
  auto const whole = [&] {
    std::vector<std::int32_t> r(n);
    m.read(r.data(), sum, bytes);
    return r;
  };
  m.begin_recording();
  for (int k = 0; k < 3; ++k) m.move_box(exec::line_block(n), exec::line_block(n), term, exec::line_block(n), sum, true);
  typename M::recording r = m.end_recording();
  CHECK(whole() == std::vector<std::int32_t>(n, 0));
  std::int32_t want = 0;
  for (std::int32_t k : {1, 5, 7}) {
    std::vector<std::int32_t> const all(n, k);
    m.write(term, all.data(), bytes);
    m.replay(r);
    typename M::recording moved = std::move(r);
    m.replay(moved);
    r = std::move(moved);
    CHECK(whole() == std::vector<std::int32_t>(n, want += 6 * k));
  }
  m.release(reinterpret_cast<std::byte*>(sum), bytes);
  m.release(reinterpret_cast<std::byte*>(term), bytes);
}

}  // namespace tests
