// tests/static/typed_hana.cpp - typed graphs as Hana sequences, operators as Hana Structs, kernel tables checked before anything runs
#include <tensorpar/typed/hana.hpp>

#include "support/typed_models.hpp"

using namespace models;

constexpr auto net = typed<language>;

struct kernel {
  template <class Op> constexpr int operator()(Op const&) const { return 1; }
};
constexpr auto kernels = hana::make_map(hana::make_pair(hana::type_c<linear>, kernel{}), hana::make_pair(hana::type_c<rotary>, kernel{}),
                                        hana::make_pair(hana::type_c<embedding>, kernel{}),
                                        hana::make_pair(hana::type_c<layernorm>, kernel{}), hana::make_pair(hana::type_c<gelu>, kernel{}),
                                        hana::make_pair(hana::type_c<add>, kernel{}), hana::make_pair(hana::type_c<split_axes>, kernel{}));
constexpr auto has_kernel = [](auto t) { return hana::contains(kernels, t); };
static_assert(hana::all_of(op_types(net), has_kernel), "an operator of the model has no kernel");
static_assert(!hana::all_of(op_types(typed<mlp>), has_kernel));   // relu
static_assert(hana::size(op_types(net)) == hana::size_c<7>);
static_assert(op_types(net) == hana::tuple_t<embedding, rotary, layernorm, linear, gelu, add, split_axes>);   // in order of first use
static_assert(hana::size(op_types(typed<gpt<96, 96, 12288>>)) == hana::size_c<8>);

static_assert(hana::length(net) == hana::size_c<static_cast<std::size_t>(net.size())>);
static_assert(hana::length(net) == hana::size_c<9>);
using node_1 = decltype(hana::at_c<1>(net));
static_assert(std::same_as<node_1, typed_node<language, 1>>);
static_assert(std::same_as<node_1::op_type, rotary> && node_1::op().base == 5000);
static_assert(node_1::operand() == shape{models::batch, tok(16), hidden(64)} && node_1::result() == node_1::operand());
static_assert(typed_node<language, 3>::op().out == 256 && std::string_view(typed_node<language, 3>::name()) == "up");
static_assert(typed_node<language, 7>::results() == 2 && typed_node<language, 0>::operands() == 2);

static_assert(std::same_as<decltype(hana::front(hana::drop_front(net, hana::size_c<3>))), typed_node<language, 3>>);
static_assert(hana::length(hana::drop_front(net, hana::size_c<100>)) == hana::size_c<0> && !hana::is_empty(net));

/// The concrete type of every node, with its attributes.
constexpr i64 widest = hana::fold_left(net, i64{0}, [](i64 w, auto node) {
  if constexpr (std::same_as<typename decltype(node)::op_type, linear>) return node.op().out > w ? node.op().out : w;
  else return w;
});
static_assert(widest == 1000);

// every operator is a Hana Struct, from the one list of its attributes
constexpr linear l{.out = 7, .bias = false, .to = hidden};
static_assert(hana::at_key(l, hana::string_c<'o', 'u', 't'>) == 7);
static_assert(hana::at_key(l, hana::string_c<'t', 'o'>) == hidden);
static_assert(!hana::at_key(l, hana::string_c<'b', 'i', 'a', 's'>));
static_assert(hana::length(hana::members(conv2d{})) == hana::size_c<8>);
static_assert(hana::at_key(layernorm{.eps = 0.5}, hana::string_c<'e', 'p', 's'>) == 0.5);

// type lists
static_assert(std::same_as<tensorpar::core::type_at<tensorpar::op::op_set<relu, gelu, linear>, 2>, linear> &&
              tensorpar::core::type_count<tensorpar::op::forward_operators> == 46);
static_assert(std::same_as<tensorpar::core::join_types<tensorpar::op::op_set<relu>, tensorpar::op::op_set<gelu, add>>,
                           tensorpar::op::op_set<relu, gelu, add>>);
