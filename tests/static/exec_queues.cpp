// tests/static/exec_queues.cpp - archetypes and negatives of devices that work by themselves: queues, recordings, lanes, and a library
// of collectives; what takes them needs nothing else
#include "support/exec_archetypes.hpp"
#include <tensorpar/exec/executor.hpp>
#include <tensorpar/exec/nccl/endpoint.hpp>
#include <tensorpar/exec/nccl/library.hpp>
#include <tensorpar/exec/step/captured_graphs.hpp>
#include <tensorpar/exec/teams/teams.hpp>

using namespace tests;

namespace archetypes {                 // not unnamed: nothing is defined, and compilers warn of that where it could not be elsewhere

struct queues : remembers {
  struct mark {
    mark(mark&&) noexcept;
    mark& operator=(mark&&) noexcept;
  };
  queues beside() const;
  mark make_mark() const;
  void set(mark&) const;
  void follow(mark const&) const;
  bool reached(mark const&) const;
  mark make_timed_mark() const;
  double seconds(mark const&, mark const&) const;
};
struct records : queues {
  records() = default;
  records beside() const;
  struct recording {
    recording(recording&&) noexcept;
    recording& operator=(recording&&) noexcept;
  };
  void begin_recording() const;
  recording end_recording() const;
  void replay(recording const&) const;
};
// a base's members of a name are hidden by another thing of that name
struct no_beside : queues { int beside; };
struct beside_of_another : queues { remembers beside() const; };
struct no_mark : remembers {};
struct no_make_mark : queues { no_make_mark beside() const; int make_mark; };
struct no_set : queues { no_set beside() const; int set; };
struct no_follow : queues { no_follow beside() const; int follow; };
struct no_reached : queues { no_reached beside() const; int reached; };
struct no_timed_mark : queues { no_timed_mark beside() const; int make_timed_mark; };
struct no_seconds : queues { no_seconds beside() const; int seconds; };
static_assert(tensorpar::exec::queued_memory<queues> && tensorpar::exec::queued_memory<records>);
static_assert(!tensorpar::exec::queued_memory<remembers> && !tensorpar::exec::queued_memory<no_beside> &&
              !tensorpar::exec::queued_memory<beside_of_another> && !tensorpar::exec::queued_memory<no_mark> &&
              !tensorpar::exec::queued_memory<no_make_mark> && !tensorpar::exec::queued_memory<no_set> &&
                  !tensorpar::exec::queued_memory<no_follow> && !tensorpar::exec::queued_memory<no_reached> &&
              !tensorpar::exec::queued_memory<no_timed_mark> && !tensorpar::exec::queued_memory<no_seconds>);

struct no_begin : records { no_begin beside() const; int begin_recording; };
struct no_end : records { no_end beside() const; int end_recording; };
struct no_replay : records { no_replay beside() const; int replay; };
struct recording_stays : records {
  recording_stays beside() const;
  struct recording { recording(recording&&) = delete; };
  recording end_recording() const;
  void replay(recording const&) const;
};
static_assert(tensorpar::exec::recording_memory<records>);
static_assert(!tensorpar::exec::recording_memory<queues> && !tensorpar::exec::recording_memory<no_begin> &&
              !tensorpar::exec::recording_memory<no_end> && !tensorpar::exec::recording_memory<no_replay> &&
              !tensorpar::exec::recording_memory<recording_stays>);

struct replays : computes {
  static bool changes_by_step(tensorpar::op::any_op const&);
  static tensorpar::exec::step_arguments arguments_of(tensorpar::op::any_op const&, tensorpar::exec::step_state const&);
};
struct no_changes : replays { int changes_by_step; };
struct no_words : replays { int arguments_of; };
static_assert(tensorpar::exec::replayable_policy<replays> && !tensorpar::exec::replayable_policy<computes> &&
              !tensorpar::exec::replayable_policy<no_changes> && !tensorpar::exec::replayable_policy<no_words>);

template <class Memory> struct lanes {
  using memory = Memory;
  explicit lanes(tensorpar::exec::device_place);
  Memory device_memory() const;
  template <class F> void each(i64, F const&) const;
  template <class F> void teams(i64, F const&) const;
  template <class S, class R> void product(tensorpar::exec::matrix_products<S, R> const&) const;
  tensorpar::exec::index_fault* fault() const;
  void settle() const;
};
struct no_device_memory : lanes<remembers> { int device_memory; };
struct no_product : lanes<remembers> { int product; };
struct no_fault : lanes<remembers> { int fault; };
struct no_settle : lanes<remembers> { int settle; };
struct lanes_stay : lanes<remembers> { lanes_stay(lanes_stay const&) = delete; };
static_assert(tensorpar::exec::team_device<lanes<remembers>, float> && tensorpar::exec::team_device<lanes<records>, prime_field>);
static_assert(!tensorpar::exec::team_device<no_device_memory, float> && !tensorpar::exec::team_device<no_product, float> &&
              !tensorpar::exec::team_device<no_fault, float> &&
              !tensorpar::exec::team_device<no_settle, float> && !tensorpar::exec::team_device<lanes_stay, float> &&
                  !tensorpar::exec::team_device<int, float>);

template <class Queue> struct collectives {
  using comm = void*;
  using id = int;
  enum class status { good, busy };
  enum class element { byte };
  static constexpr status ok = status::good, in_progress = status::busy;
  static constexpr element bytes = element::byte;
  static std::string words(status);
  template <class E> static std::optional<element> code_of();
  static status make_id(id&);
  static status make_id_at(id&, std::string const&, int);
  static status init(comm&, int, id const&, int);
  static status split(comm const&, int, int, bool, comm&);
  static status state(comm const&, status&);
  static status finalize(comm const&);
  static status destroy(comm const&);
  static status abort(comm const&);
  static status all_reduce(void const*, void*, std::size_t, element, comm const&, Queue const&);
  static status reduce_scatter(void const*, void*, std::size_t, element, comm const&, Queue const&);
  static status all_gather(void const*, void*, std::size_t, element, comm const&, Queue const&);
  static status broadcast(void const*, void*, std::size_t, element, int, comm const&, Queue const&);
  static status send(void const*, std::size_t, element, int, comm const&, Queue const&);
  static status receive(void*, std::size_t, element, int, comm const&, Queue const&);
  static status group_start();
  static status group_end();
};
using library = collectives<queues>;
struct no_arguments_of_status : library { int words; };
struct no_code : library { template <class E> static void code_of(); };
struct no_split : library { int split; };
struct no_state : library { int state; };
struct no_abort : library { int abort; };
struct no_all_reduce : library { int all_reduce; };
struct no_send : library { int send; };
struct no_receive : library { int receive; };
struct no_group_end : library { int group_end; };
struct id_with_a_name : library { using id = std::string; };
struct handles_convert : library { struct comm { operator void*&() const; }; };
struct handles_differ : library {
  struct comm {
    operator void*&() const;
    friend bool operator==(comm, comm) = delete;
  };
};
static_assert(tensorpar::exec::collective_library<library, queues> && tensorpar::exec::collective_library<collectives<records>, records> &&
              tensorpar::exec::collective_library<handles_convert, queues>);
static_assert(!tensorpar::exec::collective_library<no_arguments_of_status, queues> &&
              !tensorpar::exec::collective_library<no_code, queues> &&
              !tensorpar::exec::collective_library<no_split, queues> && !tensorpar::exec::collective_library<no_state, queues> &&
                  !tensorpar::exec::collective_library<no_abort, queues> &&
              !tensorpar::exec::collective_library<no_all_reduce, queues> && !tensorpar::exec::collective_library<no_send, queues> &&
                  !tensorpar::exec::collective_library<no_receive, queues> &&
              !tensorpar::exec::collective_library<no_group_end, queues> && !tensorpar::exec::collective_library<id_with_a_name, queues> &&
              !tensorpar::exec::collective_library<handles_differ, queues>);

struct shrinks : library {
  static status revoke(comm const&);
  static status shrink(comm const&, int const*, int, comm&);
};
struct no_revoke : shrinks { int revoke; };
struct no_shrink : shrinks { int shrink; };
struct shrink_changes_the_list : shrinks { static status shrink(comm const&, int*, int, comm&); };
static_assert(tensorpar::exec::shrinking_library<shrinks> && tensorpar::exec::collective_library<shrinks, queues>);
static_assert(!tensorpar::exec::shrinking_library<library> && !tensorpar::exec::shrinking_library<no_revoke> &&
              !tensorpar::exec::shrinking_library<no_shrink> && !tensorpar::exec::shrinking_library<shrink_changes_the_list>);

}  // namespace archetypes

// what is built from them compiles whole
using namespace archetypes;
template class tensorpar::compute::teams<float, lanes<remembers>, tensorpar::op::op_set<>, bfloat16>;
template class tensorpar::comm::basic_nccl<library, queues>;
template class tensorpar::comm::basic_nccl<shrinks, queues>;
template class tensorpar::executor<compute::teams<float, lanes<queues>>, comm::basic_nccl<library, queues>>;
template class tensorpar::executor<compute::teams<float, lanes<records>>, comm::basic_nccl<collectives<records>, records>>;
template class tensorpar::comm::nccl_world<library>;
template class tensorpar::comm::nccl_world<shrinks>;
