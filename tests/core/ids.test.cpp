// tests/core/ids.test.cpp - numbers of operators and values do not mix
#include <doctest/doctest.h>
#include <map>
#include <tensorpar/core/ids.hpp>
#include <tensorpar/core/index.hpp>
#include <type_traits>
#include <vector>

using namespace tensorpar;

namespace {

template <class A, class B>
concept compares = requires(A a, B b) { a == b; };

}  // namespace

TEST_CASE("ids: ints become ids, ids of one kind never those of another") {
  static_assert(std::is_convertible_v<int, node_id> && std::is_convertible_v<int, value_id>);
  static_assert(!std::is_convertible_v<node_id, value_id> && !std::is_convertible_v<value_id, node_id>);
  static_assert(!std::is_constructible_v<value_id, node_id> && !std::is_constructible_v<node_id, value_id>);
  static_assert(!std::is_assignable_v<node_id&, value_id> && !std::is_assignable_v<value_id&, node_id>);
  // numbers that may not be an int's are not taken in silence
  static_assert(!std::is_convertible_v<std::size_t, node_id> && !std::is_convertible_v<double, node_id>);
  static_assert(compares<node_id, node_id> && compares<node_id, int> && !compares<node_id, value_id>);
  static_assert(sizeof(node_id) == sizeof(int) && std::is_trivially_copyable_v<node_id>);
}

TEST_CASE("ids: none is -1, others count and index") {
  CHECK(node_id() == -1);
  std::vector<char> const letters{'a', 'b', 'c'};
  std::vector<char> read;
  for (node_id v = 0; v < 3; ++v) read.push_back(letters[idx(v)]);
  CHECK(read == letters);
  std::map<value_id, int> by_value{{2, 20}, {0, 0}};
  CHECK(by_value.begin()->first == 0);
  CHECK(by_value.at(value_id(2)) == 20);
}
