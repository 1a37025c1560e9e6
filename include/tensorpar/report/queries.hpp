// tensorpar/report/queries.hpp - lazy views over a program's tasks and a timeline's spans, composed by |
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/ranges/ranges.hpp>
#include <tensorpar/program/core/program.hpp>
#include <tensorpar/program/core/timeline.hpp>
#include <tensorpar/report/summary.hpp>

/// Questions about a program or a timeline, as range-v3 views: nothing is copied, and nothing is computed
/// before it is read. Elements refer to the program or timeline that they come from, which must live on.
///
///   tasks(program) | on_device(3) | task_kind::reshard | bytes      what device 3 takes part in moving
///   spans(timeline) | on_device(0) | lane::compute | gaps           when device 0 waits
///   total(spans(timeline) | lane::communication | seconds)          seconds of all devices
///
/// Every adaptor takes any range of its elements, `std::vector`s and other range-v3 views too. O(elements).
namespace tensorpar::queries {

/// One task of a program, by its number. `tasks` makes these as they are read, so a projection of your own
/// must return its result by value.
struct listed_task {
  program const* of = nullptr;
  int number = 0;
  task const& value() const { return of->tasks[idx(number)]; }
};

/// Time between two spans of one lane of a device, in seconds from the start of the step.
struct gap {
  int device = 0;
  lane where = lane::compute;
  double start = 0, end = 0;
  friend bool operator==(gap const&, gap const&) = default;
};

namespace detail {
inline bool runs_on(listed_task const& t, int device) {
  std::vector<int> const& all = t.value().devices;
  return std::binary_search(all.begin(), all.end(), device);
}
inline bool runs_on(span const& s, int device) { return s.device == device; }
inline bool runs_on(gap const& g, int device) { return g.device == device; }
inline double seconds_of(span const& s) { return s.end - s.start; }
inline double seconds_of(gap const& g) { return g.end - g.start; }
}  // namespace detail

/// All tasks of a program, in its order.
inline auto tasks(program const& p) {
  return ranges::views::iota(0, static_cast<int>(p.tasks.size())) |
         ranges::views::transform([q = &p](int i) { return listed_task{q, i}; });
}
/// All spans of a timeline, by device, lane, link and start.
inline auto spans(timeline const& t) { return ranges::views::all(t.spans); }

/// Those in which this device takes part: tasks, spans or gaps.
inline auto on_device(int device) {
  auto const here = [device](auto const& x) { return detail::runs_on(x, device); };
  return ranges::make_view_closure(ranges::bind_back(ranges::views::filter, here));
}
/// Those of one operator of the step's graph, with the reshards that serve it.
inline auto of_node(int node) {
  auto const of_it = [node](listed_task const& t) { return t.value().node == node; };
  return ranges::make_view_closure(ranges::bind_back(ranges::views::filter, of_it));
}
/// Tasks of one kind.
template <ranges::viewable_range R>
  requires std::same_as<ranges::range_value_t<R>, listed_task>
auto operator|(R&& all, task_kind kind) {
  return ranges::views::filter(std::forward<R>(all),
                               [kind](listed_task const& t) { return t.value().kind == kind; });
}
/// Spans or gaps of one lane.
template <ranges::viewable_range R>
  requires requires(ranges::range_value_t<R> const& x) { { x.where } -> std::convertible_to<lane>; }
auto operator|(R&& all, lane where) {
  return ranges::views::filter(std::forward<R>(all), [where](auto const& x) { return x.where == where; });
}

/// Bytes that each task sends, by all devices together; 0 where it moves nothing.
inline constexpr auto bytes = ranges::make_view_closure(ranges::bind_back(
    ranges::views::transform, [](listed_task const& t) { return report::bytes_of_move(*t.of, t.value()); }));
/// How long each span or gap takes.
inline constexpr auto seconds = ranges::make_view_closure(
    ranges::bind_back(ranges::views::transform, [](auto const& x) { return detail::seconds_of(x); }));
/// The times between neighbouring spans of one lane of one device, where they do not touch. Precondition:
/// spans by device, lane, link and start, as `spans` gives them.
inline constexpr auto gaps = ranges::make_view_closure([]<ranges::viewable_range R>(R&& all) {
  return ranges::views::sliding(std::forward<R>(all), 2) | ranges::views::transform([](auto&& two) {
           auto const first = ranges::begin(two);
           span const &a = *first, &b = *ranges::next(first);
           bool const neighbours = a.device == b.device && a.where == b.where && a.link == b.link;
           return gap{a.device, a.where, a.end, neighbours ? b.start : a.end};
         }) |
         ranges::views::filter([](gap const& g) { return g.end > g.start; });
});

/// The sum of a range of numbers. O(elements).
template <ranges::input_range R> auto total(R&& numbers) {
  return ranges::accumulate(numbers, ranges::range_value_t<R>{});
}

}  // namespace tensorpar::queries
