// tests/static/exec_concepts.cpp - models, archetypes and negatives of the concepts an executor is built from
#include <tensorpar/exec/eigen.hpp>
#include <tensorpar/exec/threads.hpp>
#include <tensorpar/exec/concepts.hpp>

using namespace tensorpar;

static_assert(compute_policy<compute::eigen<float>> && compute_policy<compute::eigen<double>> &&
              compute_policy<compute::eigen<prime_field>>);
static_assert(full_communicator<comm::threads, float> && full_communicator<comm::threads, double> &&
              full_communicator<comm::threads, prime_field>);
static_assert(full_communicator<comm::threads, std::int32_t>);

namespace {

/// Does only what is required; each negative lacks one thing.
struct computes {
  using scalar_type = float;
  static bool supports(any_op const&);
  static i64 workspace(any_op const&, shapes, shapes);
  void run(kernel_call const&) const;
};
struct no_scalar {
  static bool supports(any_op const&);
  static i64 workspace(any_op const&, shapes, shapes);
  void run(kernel_call const&) const;
};
struct no_supports {
  using scalar_type = float;
  static i64 workspace(any_op const&, shapes, shapes);
  void run(kernel_call const&) const;
};
struct no_workspace {
  using scalar_type = float;
  static bool supports(any_op const&);
  void run(kernel_call const&) const;
};
struct no_run {
  using scalar_type = float;
  static bool supports(any_op const&);
  static i64 workspace(any_op const&, shapes, shapes);
};
struct run_not_const {
  using scalar_type = float;
  static bool supports(any_op const&);
  static i64 workspace(any_op const&, shapes, shapes);
  void run(kernel_call const&);
};
static_assert(compute_policy<computes>);
static_assert(!compute_policy<no_scalar> && !compute_policy<no_supports> && !compute_policy<no_workspace> && !compute_policy<no_run> &&
              !compute_policy<run_not_const> && !compute_policy<int>);

struct a_group {
  int size() const;
  int index() const;
};
struct base {
  using group = a_group;
  int rank() const;
  int size() const;
  group make_group(slice<int>);
};
struct no_group_type {
  int rank() const;
  int size() const;
  a_group make_group(slice<int>);
};
struct no_rank {
  using group = a_group;
  int size() const;
  group make_group(slice<int>);
};
struct no_size {
  using group = a_group;
  int rank() const;
  group make_group(slice<int>);
};
struct no_make_group {
  using group = a_group;
  int rank() const;
  int size() const;
};
struct group_without_index {
  struct group { int size() const; };
  int rank() const;
  int size() const;
  group make_group(slice<int>);
};
struct group_without_size {
  struct group { int index() const; };
  int rank() const;
  int size() const;
  group make_group(slice<int>);
};
static_assert(communicator<base>);
static_assert(!communicator<no_group_type> && !communicator<no_rank> && !communicator<no_size> && !communicator<no_make_group> &&
              !communicator<group_without_index> && !communicator<group_without_size> && !communicator<int>);

// one part per collective; an archetype inherits exactly those it is given
struct with_all_reduce { void all_reduce(a_group const&, float const*, float*, i64); };
struct with_reduce_scatter { void reduce_scatter(a_group const&, float const*, float*, i64); };
struct with_all_gather { void all_gather(a_group const&, float const*, float*, i64); };
struct with_all_to_all { void all_to_all(a_group const&, float const*, float*, i64); };
struct with_broadcast { void broadcast(a_group const&, int, float*, i64); };
struct with_barrier { void barrier(a_group const&); };
struct with_send { void send(int, int, float const*, i64); };
struct with_receive { void receive(int, int, float*, i64); };
template <class... Part> struct archetype : base, Part... {};

using everything = archetype<with_all_reduce, with_reduce_scatter, with_all_gather, with_all_to_all, with_broadcast, with_barrier,
                             with_send, with_receive>;
static_assert(full_communicator<everything, float> && !full_communicator<everything, double*>);
static_assert(has_all_reduce<archetype<with_all_reduce>, float> && !has_all_reduce<base, float>);
static_assert(has_reduce_scatter<archetype<with_reduce_scatter>, float> && !has_reduce_scatter<base, float>);
static_assert(has_all_gather<archetype<with_all_gather>, float> && !has_all_gather<base, float>);
static_assert(has_all_to_all<archetype<with_all_to_all>, float> && !has_all_to_all<base, float>);
static_assert(has_broadcast<archetype<with_broadcast>, float> && !has_broadcast<base, float>);
static_assert(has_barrier<archetype<with_barrier>> && !has_barrier<base>);
static_assert(has_send_receive<archetype<with_send, with_receive>, float> && !has_send_receive<archetype<with_send>, float> &&
              !has_send_receive<archetype<with_receive>, float>);

static_assert(
    !full_communicator<
        archetype<with_reduce_scatter, with_all_gather, with_all_to_all, with_broadcast, with_barrier, with_send, with_receive>, float>);
static_assert(!full_communicator<
              archetype<with_all_reduce, with_all_gather, with_all_to_all, with_broadcast, with_barrier, with_send, with_receive>, float>);
static_assert(
    !full_communicator<
        archetype<with_all_reduce, with_reduce_scatter, with_all_to_all, with_broadcast, with_barrier, with_send, with_receive>, float>);
static_assert(
    !full_communicator<
        archetype<with_all_reduce, with_reduce_scatter, with_all_gather, with_broadcast, with_barrier, with_send, with_receive>, float>);
static_assert(
    !full_communicator<
        archetype<with_all_reduce, with_reduce_scatter, with_all_gather, with_all_to_all, with_barrier, with_send, with_receive>, float>);
static_assert(
    !full_communicator<
        archetype<with_all_reduce, with_reduce_scatter, with_all_gather, with_all_to_all, with_broadcast, with_send, with_receive>, float>);
static_assert(!full_communicator<
              archetype<with_all_reduce, with_reduce_scatter, with_all_gather, with_all_to_all, with_broadcast, with_barrier, with_receive>,
              float>);
static_assert(
    !full_communicator<
        archetype<with_all_reduce, with_reduce_scatter, with_all_gather, with_all_to_all, with_broadcast, with_barrier, with_send>, float>);

}  // namespace
