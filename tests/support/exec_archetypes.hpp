// tests/support/exec_archetypes.hpp - types that do only what an executor's concepts require; nothing is defined
#pragma once
#include <tensorpar/exec/device/concepts.hpp>
#include <tensorpar/exec/device/memory.hpp>

namespace tests {

using namespace tensorpar;

struct computes {
  using scalar_type = float;
  static bool supports(op::any_op const&);
  static i64 workspace(op::any_op const&, shapes, shapes);
  void run(exec::kernel_call const&) const;
};

struct remembers {
  std::byte* allocate(i64) const;
  void release(std::byte*, i64) const;
  void write(void*, void const*, i64) const;
  void read(void*, void const*, i64) const;
  template <class S> void move_box(op::tensor_block const&, op::tensor_block const&, S const*, op::tensor_block const&, S*, bool) const;
  void wait() const;
};

struct a_group {
  int size() const;
  int index() const;
};
struct base_communicator {
  using group = a_group;
  int rank() const;
  int size() const;
  group make_group(core::slice<int>);
};
// one part per collective; an archetype inherits exactly those it is given
struct with_all_reduce { void all_reduce(a_group const&, float const*, float*, i64); };
struct with_reduce_scatter { void reduce_scatter(a_group const&, float const*, float*, i64); };
struct with_all_gather { void all_gather(a_group const&, float const*, float*, i64); };
struct with_all_to_all { void all_to_all(a_group const&, float const*, float*, i64); };
struct with_broadcast { void broadcast(a_group const&, int, float*, i64); };
struct with_barrier { void barrier(a_group const&); };
struct with_send { void send(int, int, float const*, i64); };
struct with_receive { void receive(int, int, float*, i64); };
template <class... Part> struct communicator_with : base_communicator, Part... {};

using whole_communicator = communicator_with<with_all_reduce, with_reduce_scatter, with_all_gather, with_all_to_all, with_broadcast,
                                             with_barrier, with_send, with_receive>;

}  // namespace tests
