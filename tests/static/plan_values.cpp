// tests/static/plan_values.cpp - plans, clusters and findings are regular values; the checker takes no program for what it is not
#include <concepts>
#include <tensorpar/check/check.hpp>
#include <tensorpar/plan/codec.hpp>
#include <tensorpar/program/arena.hpp>
#include <tensorpar/program/core/timeline.hpp>
#include <tensorpar/program/planned.hpp>
#include <tensorpar/program/training_problem.hpp>
#include <type_traits>

using namespace tensorpar;

static_assert(std::regular<plan>);
static_assert(std::regular<machine>);
static_assert(std::regular<op_strategy>);
static_assert(std::regular<ir::layout>);
static_assert(std::regular<ir::reshard_step>);
static_assert(std::regular<passes::lifetime>);
static_assert(std::regular<span>);
static_assert(std::regular<memory_sample>);
static_assert(std::movable<program> && std::copyable<program>);
static_assert(std::copyable<finding>);
static_assert(std::semiregular<planned> && std::semiregular<planned_step> && std::semiregular<training_problem>);
static_assert(std::is_aggregate_v<training_problem>);              // whose fields a caller names

// offsets are aligned for every scalar, and aligning is idempotent
static_assert(passes::aligned(0) == 0 && passes::aligned(1) == passes::arena_alignment &&
              passes::aligned(passes::arena_alignment) == passes::arena_alignment);
static_assert(passes::aligned(passes::aligned(1000)) == passes::aligned(1000));
static_assert(detail::check::alignment == passes::arena_alignment);

// every fault has a name of its own
template <int N> constexpr bool named_apart() {
  for (int i = 0; i < N; ++i)
    for (int j = 0; j < i; ++j)
      if (std::string_view(name_of(static_cast<fault>(i))) == name_of(static_cast<fault>(j))) return false;
  return true;
}
static_assert(named_apart<static_cast<int>(fault::peak) + 1>());

// a plan is read from text or JSON, never made from a path by mistake; a checker needs graph, plan and (if given) program in this order
template <class... T> concept checks = requires(T const&... x) { check(x...); };
static_assert(checks<training_graph, plan> && checks<training_graph, plan, program>);
static_assert(!checks<plan, training_graph> && !checks<training_graph, program> && !checks<program>);
static_assert(!std::convertible_to<std::string, plan> && !std::convertible_to<core::json, plan>);
