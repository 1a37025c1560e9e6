// tests/support/laws/memory.hpp - the laws of `memory_policy`
#pragma once
#include <doctest/doctest.h>
#include <numeric>
#include <random>
#include <tensorpar/exec/device/memory.hpp>
#include <vector>

namespace tests {

using namespace tensorpar;

/// What was written is read again, at any offset; nothing may be written nowhere; fresh memory is zero and aligned.
template <exec::memory_policy M> void check_bytes(M const& m, unsigned seed) {
  std::mt19937 draw(seed);
  m.write(nullptr, nullptr, 0);                                                         // an empty tensor has no address
  m.read(nullptr, nullptr, 0);
  for (i64 n : {i64{1}, i64{63}, i64{64}, i64{4097}, i64{1} << 20}) {
    std::byte* const p = m.allocate(n);
    CHECK(reinterpret_cast<std::uintptr_t>(p) % 64 == 0);
    std::vector<unsigned char> want(static_cast<std::size_t>(n), 0), got(want.size(), 1);
    m.read(got.data(), p, n);
    CHECK(got == want);
    for (int trial = 0; trial < 20; ++trial) {
      i64 const at = static_cast<i64>(draw()) % n, len = 1 + static_cast<i64>(draw()) % (n - at);
      std::vector<unsigned char> part(static_cast<std::size_t>(len));
      for (unsigned char& c : part) c = static_cast<unsigned char>(draw());
      std::copy(part.begin(), part.end(), want.begin() + at);
      m.write(p + at, part.data(), len);
      std::fill(part.begin(), part.end(), static_cast<unsigned char>(0));               // the host may use its own again
      m.read(got.data() + at, p + at, len);
      m.wait();
    }
    m.read(got.data(), p, n);
    CHECK(got == want);
    m.release(p, n);
  }
}

/// Boxes are moved and added as host_memory does it, to the bit.
template <class S, exec::memory_policy M> void check_boxes(M const& m, unsigned seed) {
  std::mt19937 draw(seed);
  for (int trial = 0; trial < 60; ++trial) {
    op::tensor_block from, to, box;
    from.rank = to.rank = box.rank = 1 + trial % 4;
    for (int d = 0; d < box.rank; ++d) {
      auto const some = [&](i64 n) { return static_cast<i64>(draw()) % n; };
      i64 const whole = box.global[d] = from.global[d] = to.global[d] = 1 + some(9);
      i64 const at = box.offset[d] = some(whole), len = box.local[d] = 1 + some(whole - at);
      for (op::tensor_block* b : {&from, &to}) {
        b->offset[d] = some(at + 1);
        b->local[d] = at + len - b->offset[d] + some(whole - at - len + 1);
      }
    }
    std::vector<S> a(static_cast<std::size_t>(from.elements())), b(static_cast<std::size_t>(to.elements())), got(b.size());
    for (S& x : a) x = static_cast<S>(static_cast<int>(draw() % 1000));
    for (S& x : b) x = static_cast<S>(static_cast<int>(draw() % 1000));
    i64 const an = static_cast<i64>(a.size() * sizeof(S)), bn = static_cast<i64>(b.size() * sizeof(S));
    std::byte *const p = m.allocate(an), *const q = m.allocate(bn);
    m.write(p, a.data(), an);
    m.write(q, b.data(), bn);
    for (bool adds : {false, true}) {
      exec::host_memory{}.move_box(box, from, a.data(), to, b.data(), adds);
      m.move_box(box, from, reinterpret_cast<S const*>(p), to, reinterpret_cast<S*>(q), adds);
    }
    m.read(got.data(), q, bn);
    CHECK(got == b);
    m.release(p, an);
    m.release(q, bn);
  }
}

}  // namespace tests
