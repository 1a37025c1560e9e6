// tensorpar/typed/hana.hpp - a typed graph as a Boost.Hana sequence of typed nodes; an operator as a Hana
// Struct
#pragma once
#include <concepts>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/meta.hpp>
#include <tensorpar/typed/freeze.hpp>

namespace tensorpar {

struct typed_graph_tag {};

namespace detail {
template <class M> struct operators_of { using type = op::forward_operators; };
template <class M>
  requires requires { typename M::operators; }
struct operators_of<M> {
  using type = core::join_types<typename M::operators, op::forward_operators>;
};

template <class... Op> constexpr int find_operator(op::op_set<Op...>, op::op_info const* p) {
  u64 const id[] = {core::name_hash(Op::name)...};
  for (int i = 0; i < static_cast<int>(sizeof...(Op)); ++i) if (id[i] == p->id) return i;
  return -1;
}
template <class... Op> constexpr bool distinct_names(op::op_set<Op...>) {
  u64 const id[] = {core::name_hash(Op::name)...};
  for (int i = 1; i < static_cast<int>(sizeof...(Op)); ++i)
    for (int k = 0; k < i; ++k)
      if (id[i] == id[k]) return false;
  return true;
}
/// For every node the number of its operator in the list, then for every operator whether it occurs. One
/// evaluation for the whole model.
template <class M> struct operator_table {
  using set = typename operators_of<M>::type;
  static_assert(distinct_names(set{}),
                "tensorpar: two operators of M::operators and the library's have one name");
  static constexpr int nodes = typed_graph<M>::size();
  struct table {
    int kind[std::size_t{nodes > 0 ? nodes : 1}];
    int used[core::type_count<set>];
    int distinct;
    bool complete;
  };
  static constexpr table value = [] {
    table t{};
    t.complete = true;
    int first[core::type_count<set>]{};
    for (int v = 0; v < nodes; ++v) {
      t.kind[v] = find_operator(set{}, typed_graph<M>::view().nodes[v].op);
      if (t.kind[v] < 0) t.complete = false;
      else if (!first[t.kind[v]]++) t.used[t.distinct++] = t.kind[v];
    }
    return t;
  }();
  static_assert(
      value.complete,
      "tensorpar: the model uses an operator that it does not announce; write `using operators = "
      "op_set<...>;` in the model");
};
}  // namespace detail

/// A node as a type: its operator's type, the operator with its attributes, and the shapes around it, all
/// constants.
template <class M, int Index> struct typed_node {
  using hana_tag = typed_node;
  static constexpr int index = Index;
  using op_type =
      core::type_at<typename detail::operator_table<M>::set, detail::operator_table<M>::value.kind[Index]>;
  static constexpr model_node const& data() { return typed_graph<M>::view().nodes[Index]; }
  static constexpr op_type op() { return op::load<op_type>(typed_graph<M>::view().attrs.p + data().attr0); }
  static constexpr char const* name() { return data().name; }
  static constexpr int operands() { return data().operand_count; }
  static constexpr int results() { return data().result_count; }
  static constexpr shape const& operand(int i = 0) {
    constexpr graph_view g = typed_graph<M>::view();
    return g.values[g.operands[data().in0 + i]].type;
  }
  static constexpr shape const& result(int i = 0) {
    return typed_graph<M>::view().values[data().out0 + i].type;
  }
};

/// The nodes of a model from number First on: what is left of a typed graph when its first nodes are dropped.
template <class M, int First> struct typed_nodes {};

namespace detail {
template <class Xs> struct nodes_of;
template <class M, int First> struct nodes_of<typed_nodes<M, First>> {
  static constexpr int size = typed_graph<M>::size() - First;
  template <int Index> using at = typed_node<M, First + Index>;
  template <int N> using rest = typed_nodes<M, (N < size ? First + N : First + size)>;
};
template <class M> struct nodes_of<typed_graph<M>> : nodes_of<typed_nodes<M, 0>> {};
}  // namespace detail

/// The distinct operator types of a model as a hana::tuple_t, in order of first use: few, however large the
/// model. Kernel tables and policy maps are checked against it: `static_assert(hana::all_of(op_types(net),
/// [](auto t) { return hana::contains(kernels, t); }))`. A model's own operators are announced with `using
/// operators = op_set<rotary>;` in the model. O(nodes) once, O(distinct) instantiations.
template <class M> constexpr auto op_types(typed_graph<M>) {
  using table = detail::operator_table<M>;
  return []<int... K>(std::integer_sequence<int, K...>) {
    return hana::tuple_t<core::type_at<typename table::set, table::value.used[K]>...>;
  }
  (std::make_integer_sequence<int, table::value.distinct>{});
}

namespace detail {
/// The text of attribute Index's name as a type, and the attribute as a value of its kind.
template <class Op, int Index> struct attribute {
  static constexpr std::string_view text = op::info<Op>.attr_name(Index);
  static constexpr char kind = op::info<Op>.attr_kind(Index);
  static constexpr auto key() {
    return []<std::size_t... K>(std::index_sequence<K...>) { return hana::string<text[K]...>{}; }
    (std::make_index_sequence<text.size()>{});
  }
  constexpr auto operator()(Op const& o) const {
    i64 a[op::max_attrs]{};
    op::save(o, a);
    if constexpr (kind == 'a') return axis(static_cast<u64>(a[Index]));
    else if constexpr (kind == 'f') return std::bit_cast<double>(a[Index]);
    else if constexpr (kind == 'b') return a[Index] != 0;
    else return a[Index];
  }
};
/// Operators whose attributes `describe` lists are Hana Structs.
template <class Op> concept attribute_struct = op::operator_<Op> && op::described<Op>;
}  // namespace detail

}  // namespace tensorpar

namespace boost::hana {

template <tensorpar::model_definition M> struct tag_of<tensorpar::typed_graph<M>> {
  using type = tensorpar::typed_graph_tag;
};
template <class M, int First> struct tag_of<tensorpar::typed_nodes<M, First>> {
  using type = tensorpar::typed_graph_tag;
};

// Foldable and Iterable by their minimal definitions
template <> struct unpack_impl<tensorpar::typed_graph_tag> {
  template <class Xs, class F> static constexpr decltype(auto) apply(Xs const&, F&& f) {
    using nodes = tensorpar::detail::nodes_of<Xs>;
    return [&]<int... Index>(std::integer_sequence<int, Index...>) -> decltype(auto) {
      return static_cast<F&&>(f)(typename nodes::template at<Index>{}...);
    }(std::make_integer_sequence<int, nodes::size>{});
  }
};
template <> struct length_impl<tensorpar::typed_graph_tag> {
  template <class Xs> static constexpr auto apply(Xs const&) {
    return hana::size_c<tensorpar::idx(tensorpar::detail::nodes_of<Xs>::size)>;
  }
};
template <> struct at_impl<tensorpar::typed_graph_tag> {
  template <class Xs, class N> static constexpr auto apply(Xs const&, N const&) {
    return typename tensorpar::detail::nodes_of<Xs>::template at<static_cast<int>(N::value)>{};
  }
};
template <> struct drop_front_impl<tensorpar::typed_graph_tag> {
  template <class Xs, class N> static constexpr auto apply(Xs const&, N const&) {
    return typename tensorpar::detail::nodes_of<Xs>::template rest<static_cast<int>(N::value)>{};
  }
};
template <> struct is_empty_impl<tensorpar::typed_graph_tag> {
  template <class Xs> static constexpr auto apply(Xs const&) {
    return hana::bool_c<tensorpar::detail::nodes_of<Xs>::size == 0>;
  }
};
/// Without a pack of handles: one call per node.
template <> struct for_each_impl<tensorpar::typed_graph_tag> {
  template <class Xs, class F> static constexpr void apply(Xs const&, F&& f) {
    using nodes = tensorpar::detail::nodes_of<Xs>;
    [&]<int... Index>(std::integer_sequence<int, Index...>) {
      int const done[] = {(static_cast<void>(f(typename nodes::template at<Index>{})), 0)..., 0};
      static_cast<void>(done);
    }(std::make_integer_sequence<int, nodes::size>{});
  }
};
/// Keys are the names that `describe` gives, values copies of the attributes (i64, bool, double or axis).
template <class Op> struct accessors_impl<Op, when<tensorpar::detail::attribute_struct<Op>>> {
  static constexpr auto apply() {
    return []<int... Index>(std::integer_sequence<int, Index...>) {
      return hana::make_tuple(hana::make_pair(tensorpar::detail::attribute<Op, Index>::key(),
                                              tensorpar::detail::attribute<Op, Index>{})...);
    }(std::make_integer_sequence<int, tensorpar::op::attr_count<Op>()>{});
  }
};

}  // namespace boost::hana
