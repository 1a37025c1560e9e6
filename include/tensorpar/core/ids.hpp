// tensorpar/core/ids.hpp - numbers of operators and of values, which no one mistakes for each other
#pragma once
#include <concepts>
#include <cstddef>

namespace tensorpar {
namespace core {

/// The number of one kind of thing: an index into the list that holds it, or -1 for none. An int becomes an
/// id where a loop counts. An id of one kind becomes none of another, nor do the two compare.
/// A regular value of the size of an int.
template <class Kind>
class id {
 public:
  constexpr id() = default;
  constexpr id(int n) : number_(n) {}
  constexpr explicit id(std::size_t n) : number_(static_cast<int>(n)) {}
  template <class Other>
  id(Other) = delete;                       // another id would become an int, and that an id
  constexpr operator int() const { return number_; }
  constexpr id& operator++() { ++number_; return *this; }

 private:
  int number_ = -1;
};

template <class A, class B>
  requires(!std::same_as<A, B>)
bool operator==(id<A>, id<B>) = delete;

}  // namespace core

/// The number of an operator in a computation graph.
using node_id = core::id<struct node_kind>;
/// The number of a value in a computation graph.
using value_id = core::id<struct value_kind>;

}  // namespace tensorpar
