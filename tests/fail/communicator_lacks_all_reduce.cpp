// expect: COMMUNICATOR_LACKS<.*all_reduce.*half_a_network
// A communicator without one of the operations that a plan may ask for, handed to the executor.
#include <tensorpar/exec/executor.hpp>

using namespace tensorpar;

struct computes {
  using scalar_type = float;
  static bool supports(any_op const&);
  static i64 workspace(any_op const&, shapes, shapes);
  void run(kernel_call const&) const;
};
struct a_group {
  int size() const;
  int index() const;
};
struct half_a_network {
  using group = a_group;
  int rank() const;
  int size() const;
  group make_group(slice<int>);
#ifndef TENSORPAR_FAIL
  void all_reduce(group const&, float const*, float*, i64);
#endif
  void reduce_scatter(group const&, float const*, float*, i64);
  void all_gather(group const&, float const*, float*, i64);
  void all_to_all(group const&, float const*, float*, i64);
  void broadcast(group const&, int, float*, i64);
  void barrier(group const&);
  void send(int, int, float const*, i64);
  void receive(int, int, float*, i64);
};
int devices(executor<computes, half_a_network> const* e);
