// tests/core/meta.test.cpp - plain type lists, and what the library needs of Hana through its one door
#include <doctest/doctest.h>

#include <concepts>
#include <string>
#include <tensorpar/core/meta.hpp>

using namespace tensorpar;

namespace {

template <class...> struct list {};
template <class...> struct other {};
template <int> struct number {};

static_assert(core::type_count<list<>> == 0 && core::type_count<list<int, int, char>> == 3);
static_assert(std::same_as<core::type_at<list<int, char, int>, 0>, int> && std::same_as<core::type_at<list<int, char, int>, 1>, char>);
static_assert(std::same_as<core::type_at<other<void, list<int>>, 0>,
                           void>);                  // incomplete types, any template, no objects made
static_assert(std::same_as<core::join_types<list<int>, list<>>, list<int>> && std::same_as<core::join_types<list<>, list<int>>, list<int>>);
static_assert(std::same_as<core::join_types<list<int, char>, list<int>>, list<int, char, int>>);

template <class> struct long_list;
template <int... I> struct long_list<std::integer_sequence<int, I...>> { using type = list<number<I>...>; };
using thousand = long_list<std::make_integer_sequence<int, 1000>>::type;

template <int... I> constexpr bool same_at(std::integer_sequence<int, I...>) {
  bool const all[] = {std::same_as<core::type_at<thousand, 7 * I>, number<7 * I>>...};
  for (bool b : all) if (!b) return false;
  return true;
}
static_assert(core::type_count<thousand> == 1000 &&
              same_at(std::make_integer_sequence<int, 142>{}));   // far beyond what recursion would take

}  // namespace

TEST_CASE("maps from types to values, as kernel tables are") {
  constexpr auto table = hana::make_map(hana::make_pair(hana::type_c<int>, 1), hana::make_pair(hana::type_c<char>, 2));
  static_assert(hana::contains(table, hana::type_c<char>) && !hana::contains(table, hana::type_c<long>));
  CHECK(table[hana::type_c<char>] == 2);
  static_assert(hana::all_of(hana::tuple_t<int, char>, [](auto t) { return hana::contains(decltype(table){}, t); }));
  static_assert(hana::any_of(hana::tuple_t<int, long>, [](auto t) { return t == hana::type_c<long>; }));
}

TEST_CASE("sequences of values of different types") {
  std::string seen;
  auto const values = hana::make_tuple(1, 'x', std::string("y"));
  hana::for_each(values, [&]<class T>(T const& x) {
    if constexpr (std::same_as<T, int>) seen += std::to_string(x); else seen += x;
  });
  CHECK(seen == "1xy");
  CHECK(hana::fold_left(hana::make_tuple(1, 2L, short{3}), 0L, [](long a, auto b) { return a + b; }) == 6);
  CHECK(hana::unpack(values, [](auto const&... x) { return sizeof...(x); }) == 3);
  CHECK(hana::at_c<2>(values) == "y");
  CHECK(hana::front(hana::drop_front(values, hana::size_c<1>)) == 'x');
}
