// tests/static/exec_concepts.cpp - models, archetypes and negatives of the concepts an executor is built from
#include "support/exec_archetypes.hpp"
#include <tensorpar/exec/cpu/eigen.hpp>
#include <tensorpar/exec/comm/threads.hpp>
#include <tensorpar/exec/comm/virtual_ranks.hpp>
#include <tensorpar/exec/device/concepts.hpp>
#include <tensorpar/exec/comm/world_maker.hpp>
#include <tensorpar/exec/device/memory.hpp>

using namespace tests;

static_assert(tensorpar::exec::compute_policy<compute::eigen<float>> && tensorpar::exec::compute_policy<compute::eigen<double>> &&
              tensorpar::exec::compute_policy<compute::eigen<prime_field>>);
static_assert(tensorpar::exec::full_communicator<comm::threads, float> && tensorpar::exec::full_communicator<comm::threads, double> &&
              tensorpar::exec::full_communicator<comm::threads, prime_field>);
static_assert(tensorpar::exec::full_communicator<comm::threads, std::int32_t>);
static_assert(tensorpar::exec::full_communicator<comm::virtual_ranks<tensorpar::exec::host_memory>, float> &&
              tensorpar::exec::full_communicator<comm::virtual_ranks<tensorpar::exec::host_memory>, prime_field>);

namespace {

// each negative lacks one thing
struct no_scalar {
  static bool supports(tensorpar::op::any_op const&);
  static i64 workspace(tensorpar::op::any_op const&, shapes, shapes);
  void run(tensorpar::exec::kernel_call const&) const;
};
struct no_supports {
  using scalar_type = float;
  static i64 workspace(tensorpar::op::any_op const&, shapes, shapes);
  void run(tensorpar::exec::kernel_call const&) const;
};
struct no_workspace {
  using scalar_type = float;
  static bool supports(tensorpar::op::any_op const&);
  void run(tensorpar::exec::kernel_call const&) const;
};
struct no_run {
  using scalar_type = float;
  static bool supports(tensorpar::op::any_op const&);
  static i64 workspace(tensorpar::op::any_op const&, shapes, shapes);
};
struct run_not_const {
  using scalar_type = float;
  static bool supports(tensorpar::op::any_op const&);
  static i64 workspace(tensorpar::op::any_op const&, shapes, shapes);
  void run(tensorpar::exec::kernel_call const&);
};
static_assert(tensorpar::exec::compute_policy<computes>);
static_assert(!tensorpar::exec::compute_policy<no_scalar> && !tensorpar::exec::compute_policy<no_supports> &&
              !tensorpar::exec::compute_policy<no_workspace> && !tensorpar::exec::compute_policy<no_run> &&
              !tensorpar::exec::compute_policy<run_not_const> && !tensorpar::exec::compute_policy<int>);

// a base's members of a name are hidden by another thing of that name
struct no_allocate : remembers { int allocate; };
struct no_release : remembers { int release; };
struct no_write : remembers { int write; };
struct no_read : remembers { int read; };
struct no_move_box : remembers { int move_box; };
struct no_wait : remembers { int wait; };
struct not_copied : remembers {
  not_copied(not_copied const&) = delete;
};
struct floats_alone : remembers {
  void move_box(tensorpar::op::tensor_block const&, tensorpar::op::tensor_block const&, float const*, tensorpar::op::tensor_block const&,
                float*, bool) const;
};
static_assert(tensorpar::exec::memory_policy<tensorpar::exec::host_memory> && tensorpar::exec::memory_policy<remembers>);
static_assert(!tensorpar::exec::memory_policy<no_allocate> && !tensorpar::exec::memory_policy<no_release> &&
              !tensorpar::exec::memory_policy<no_write> && !tensorpar::exec::memory_policy<no_read> &&
              !tensorpar::exec::memory_policy<no_move_box> && !tensorpar::exec::memory_policy<no_wait> &&
                  !tensorpar::exec::memory_policy<not_copied> && !tensorpar::exec::memory_policy<floats_alone> &&
              !tensorpar::exec::memory_policy<int>);

struct elsewhere : computes {
  using memory = remembers;
  explicit elsewhere(tensorpar::exec::device_place);
  remembers device_memory() const;
};
static_assert(tensorpar::exec::compute_policy<elsewhere>);
static_assert(std::same_as<tensorpar::exec::detail::memory_of<elsewhere>, remembers> &&
              std::same_as<tensorpar::exec::detail::memory_of<computes>, tensorpar::exec::host_memory>);

struct no_group_type {
  int rank() const;
  int size() const;
  a_group make_group(tensorpar::core::slice<int>);
};
struct no_rank {
  using group = a_group;
  int size() const;
  group make_group(tensorpar::core::slice<int>);
};
struct no_size {
  using group = a_group;
  int rank() const;
  group make_group(tensorpar::core::slice<int>);
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
  group make_group(tensorpar::core::slice<int>);
};
struct group_without_size {
  struct group { int index() const; };
  int rank() const;
  int size() const;
  group make_group(tensorpar::core::slice<int>);
};
static_assert(tensorpar::exec::communicator<base_communicator>);
static_assert(!tensorpar::exec::communicator<no_group_type> && !tensorpar::exec::communicator<no_rank> &&
              !tensorpar::exec::communicator<no_size> && !tensorpar::exec::communicator<no_make_group> &&
              !tensorpar::exec::communicator<group_without_index> && !tensorpar::exec::communicator<group_without_size> &&
                  !tensorpar::exec::communicator<int>);

template <class... Part> using archetype = communicator_with<Part...>;
using base = base_communicator;
using everything = whole_communicator;
struct everything_elsewhere : everything { using memory = remembers; };
static_assert(tensorpar::exec::require_same_memory<computes, everything>() &&
              tensorpar::exec::require_same_memory<elsewhere, everything_elsewhere>());
static_assert(tensorpar::exec::full_communicator<everything, float> && !tensorpar::exec::full_communicator<everything, double*>);
static_assert(tensorpar::exec::has_all_reduce<archetype<with_all_reduce>, float> && !tensorpar::exec::has_all_reduce<base, float>);
static_assert(tensorpar::exec::has_reduce_scatter<archetype<with_reduce_scatter>, float> &&
              !tensorpar::exec::has_reduce_scatter<base, float>);
static_assert(tensorpar::exec::has_all_gather<archetype<with_all_gather>, float> && !tensorpar::exec::has_all_gather<base, float>);
static_assert(tensorpar::exec::has_all_to_all<archetype<with_all_to_all>, float> && !tensorpar::exec::has_all_to_all<base, float>);
static_assert(tensorpar::exec::has_broadcast<archetype<with_broadcast>, float> && !tensorpar::exec::has_broadcast<base, float>);
static_assert(tensorpar::exec::has_barrier<archetype<with_barrier>> && !tensorpar::exec::has_barrier<base>);
static_assert(tensorpar::exec::has_send_receive<archetype<with_send, with_receive>, float> &&
              !tensorpar::exec::has_send_receive<archetype<with_send>, float> &&
              !tensorpar::exec::has_send_receive<archetype<with_receive>, float>);

struct makes { comm::threads_world operator()(int) const; };
struct makes_once { comm::threads_world operator()(int); };
struct has_one { comm::threads_world& operator()(int) const; };
struct makes_for_nobody { comm::threads_world operator()() const; };
static_assert(tensorpar::exec::world_maker<makes, comm::threads> &&
              tensorpar::exec::world_maker<tensorpar::exec::detail::own_world<comm::threads>, comm::threads>);
static_assert(!tensorpar::exec::world_maker<makes_once, comm::threads> && !tensorpar::exec::world_maker<has_one, comm::threads> &&
              !tensorpar::exec::world_maker<makes_for_nobody, comm::threads> &&
              !tensorpar::exec::world_maker<int, comm::threads>);

static_assert(
    !tensorpar::exec::full_communicator<
        archetype<with_reduce_scatter, with_all_gather, with_all_to_all, with_broadcast, with_barrier, with_send, with_receive>, float>);
static_assert(!tensorpar::exec::full_communicator<
              archetype<with_all_reduce, with_all_gather, with_all_to_all, with_broadcast, with_barrier, with_send, with_receive>, float>);
static_assert(
    !tensorpar::exec::full_communicator<
        archetype<with_all_reduce, with_reduce_scatter, with_all_to_all, with_broadcast, with_barrier, with_send, with_receive>, float>);
static_assert(
    !tensorpar::exec::full_communicator<
        archetype<with_all_reduce, with_reduce_scatter, with_all_gather, with_broadcast, with_barrier, with_send, with_receive>, float>);
static_assert(
    !tensorpar::exec::full_communicator<
        archetype<with_all_reduce, with_reduce_scatter, with_all_gather, with_all_to_all, with_barrier, with_send, with_receive>, float>);
static_assert(
    !tensorpar::exec::full_communicator<
        archetype<with_all_reduce, with_reduce_scatter, with_all_gather, with_all_to_all, with_broadcast, with_send, with_receive>, float>);
static_assert(!tensorpar::exec::full_communicator<
              archetype<with_all_reduce, with_reduce_scatter, with_all_gather, with_all_to_all, with_broadcast, with_barrier, with_receive>,
              float>);
static_assert(
    !tensorpar::exec::full_communicator<
        archetype<with_all_reduce, with_reduce_scatter, with_all_gather, with_all_to_all, with_broadcast, with_barrier, with_send>, float>);

}  // namespace
