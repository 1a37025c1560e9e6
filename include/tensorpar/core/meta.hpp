// tensorpar/core/meta.hpp - type lists, and the one door to Boost.Hana
#pragma once
// C's complex.h, X11 and builds for X11 define these, and Hana uses the names: they are away while it is
// read, and then there again.
#pragma push_macro("I")
#pragma push_macro("Bool")
#pragma push_macro("X11")
#undef I
#undef Bool
#undef X11
#include <boost/hana/accessors.hpp>
#include <boost/hana/all_of.hpp>
#include <boost/hana/any_of.hpp>
#include <boost/hana/at.hpp>
#include <boost/hana/at_key.hpp>
#include <boost/hana/bool.hpp>
#include <boost/hana/contains.hpp>
#include <boost/hana/drop_front.hpp>
#include <boost/hana/equal.hpp>
#include <boost/hana/fold_left.hpp>
#include <boost/hana/for_each.hpp>
#include <boost/hana/front.hpp>
#include <boost/hana/integral_constant.hpp>
#include <boost/hana/is_empty.hpp>
#include <boost/hana/keys.hpp>
#include <boost/hana/length.hpp>
#include <boost/hana/map.hpp>
#include <boost/hana/members.hpp>
#include <boost/hana/pair.hpp>
#include <boost/hana/size.hpp>
#include <boost/hana/string.hpp>
#include <boost/hana/core/to.hpp>
#include <boost/hana/tuple.hpp>
#include <boost/hana/type.hpp>
#include <boost/hana/unpack.hpp>
#pragma pop_macro("X11")
#pragma pop_macro("Bool")
#pragma pop_macro("I")
#include <utility>

namespace tensorpar {
/// Heterogeneous values (maps, sequences, structs) are Hana's; every header of this library that uses it
/// comes through here.
namespace hana = boost::hana;
}  // namespace tensorpar

namespace tensorpar::core {

namespace detail {
template <int Index, class T> struct type_leaf { using type = T; };
template <class, class...> struct indexed_types;
template <int... Index, class... T>
struct indexed_types<std::integer_sequence<int, Index...>, T...> : type_leaf<Index, T>... {};
template <int Index, class T> type_leaf<Index, T> pick_type(type_leaf<Index, T>*);
template <class L> struct type_list_access;
template <template <class...> class L, class... T> struct type_list_access<L<T...>> {
  using indexed = indexed_types<std::make_integer_sequence<int, static_cast<int>(sizeof...(T))>, T...>;
  static constexpr int size = static_cast<int>(sizeof...(T));
};
template <class A, class B> struct join_lists;
template <template <class...> class L, class... A, class... B> struct join_lists<L<A...>, L<B...>> {
  using type = L<A..., B...>;
};
}  // namespace detail

/// Type number Index of a plain list of types: O(1) instantiations once the list is indexed, where a Hana
/// tuple takes O(Index).
template <class List, int Index>
using type_at = typename decltype(detail::pick_type<Index>(
    static_cast<typename detail::type_list_access<List>::indexed*>(nullptr)))::type;
template <class List> inline constexpr int type_count = detail::type_list_access<List>::size;
template <class A, class B> using join_types = typename detail::join_lists<A, B>::type;

}  // namespace tensorpar::core
