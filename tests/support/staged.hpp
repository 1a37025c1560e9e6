// tests/support/staged.hpp - a policy that computes in another memory, called with tensors of the host's
#pragma once
#include <tensorpar/exec/device/concepts.hpp>
#include <tensorpar/exec/device/memory.hpp>
#include <vector>

namespace tests {

using namespace tensorpar;

/// Takes operands there, computes, and brings results back. Operands that are results as well stay one.
template <class Policy> struct staged {
  using scalar_type = typename Policy::scalar_type;
  static bool supports(op::any_op const& o) { return Policy::supports(o); }
  /// None of the caller's: scratch lies there, and holds whatever the call before has left.
  static i64 workspace(op::any_op const&, shapes, shapes) { return 0; }
  void run(exec::kernel_call const& c) const {
    static Policy const policy(exec::device_place{0, 0});
    auto const memory = policy.device_memory();
    struct piece {
      void const* here;
      std::byte* there;
      i64 bytes;
    };
    std::vector<piece> pieces;
    auto const bytes_of = [](op::tensor_block const& b) {
      return b.elements() * static_cast<i64>(is_integer(b.type) ? sizeof(std::int32_t) : sizeof(scalar_type));
    };
    auto const take = [&](void const* p, i64 bytes) {
      for (piece const& x : pieces) if (x.here == p && p) return x.there;
      pieces.push_back({p, memory.allocate(bytes > 0 ? bytes : 1), bytes});
      memory.write(pieces.back().there, p, bytes);
      return pieces.back().there;
    };
    std::vector<void const*> in;
    std::vector<void*> out;
    for (int k = 0; k < c.inputs; ++k) in.push_back(take(c.in[k], bytes_of(c.in_block[k])));
    for (int k = 0; k < c.outputs; ++k) out.push_back(take(c.out[k], bytes_of(c.out_block[k])));
    std::vector<shape> from, to;
    for (int k = 0; k < c.inputs; ++k) from.push_back(c.in_block[k].local_shape());
    for (int k = 0; k < c.outputs; ++k) to.push_back(c.out_block[k].local_shape());
    i64 const scratch = Policy::workspace(*c.op, {from.data(), c.inputs}, {to.data(), c.outputs});
    exec::kernel_call there = c;
    there.in = in.data();
    there.out = out.data();
    static room scratch_there{memory};
    there.workspace = scratch_there.at_least(scratch * static_cast<i64>(sizeof(scalar_type)));
    auto const give_back = [&] { for (piece const& x : pieces) memory.release(x.there, x.bytes > 0 ? x.bytes : 1); };
    try {
      policy.run(there);
      memory.wait();
      for (int k = 0; k < c.outputs; ++k) memory.read(c.out[k], out[static_cast<std::size_t>(k)], bytes_of(c.out_block[k]));
    } catch (...) {
      give_back();
      throw;
    }
    give_back();
  }

 private:
  using memory_type = decltype(std::declval<Policy const&>().device_memory());
  /// Grows.
  struct room {
    memory_type memory;
    std::byte* at = nullptr;
    i64 bytes = 0;
    explicit room(memory_type m) : memory(std::move(m)) {}
    room(room const&) = delete;
    room& operator=(room const&) = delete;
    ~room() { if (at) memory.release(at, bytes); }
    std::byte* at_least(i64 n) {
      if (n <= bytes) return at;
      if (at) memory.release(at, bytes);
      return at = memory.allocate(bytes = n);
    }
  };
};

}  // namespace tests
