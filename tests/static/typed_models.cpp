// tests/static/typed_models.cpp - declared models and what is known of them before anything runs
#include "support/typed_models.hpp"
#include <tensorpar/typed/typed.hpp>

using namespace models;

constexpr auto digits = typed<mlp>;
static_assert(digits.size() == 5);
static_assert(parameters(digits) == 784 * 512 + 512 + 512 * 256 + 256 + 256 * 10 + 10);
static_assert(flops(digits, models::batch = 32) == 32 * (2. * (784 * 512 + 512 * 256 + 2560) + 512 + 256));
static_assert(is_series_parallel(digits));
static_assert(tensorpar::graph::longest_path(digits).length == 5);
static_assert(output_shape(digits, "logits") == shape{models::batch, classes(10)});
static_assert(output_shape(digits, "logits", models::batch = 32).elements() == 320);

constexpr auto small = typed<gpt<12, 12, 768>>;
constexpr auto large = typed<gpt<96, 96, 12288>>;
static_assert(small.size() == large.size());   // one block, whatever the depth
static_assert(parameters(small) == 2LL * 50304 * 768 + 12 * (12LL * 768 * 768 + 13 * 768) + 2 * 768);
static_assert(parameters(large) == 2LL * 50304 * 12288 + 96 * (12LL * 12288 * 12288 + 13 * 12288) + 2 * 12288);
static_assert(flops(large, models::batch = 1) > 3.6e14);
static_assert(is_series_parallel(small));
static_assert(output_shape(small, "loss").rank == 0);

constexpr auto cells = typed<nasnet<6>>;
static_assert(!is_series_parallel(cells));
static_assert(cells.size() > 6 * 40);
static_assert(parameters(cells) == parameters(typed<nasnet<6, true>>));
static_assert(typed<nasnet<6, true>>.size() == typed<nasnet<1>>.size());
static_assert(flops(cells, models::batch = 2) == flops(typed<nasnet<6, true>>, models::batch = 2));

// published convolutional nets: parameters to the last, multiply-adds of convolutions and linear layers as published
constexpr auto vgg = typed<vgg16>;
static_assert(parameters(vgg) == 138357544);
static_assert(flops(vgg, models::batch = 1) > 2 * 15.47e9 && flops(vgg, models::batch = 1) < 2 * 15.50e9);
static_assert(vgg.size() == 13 + 13 + 5 + 1 + 3 + 2 && is_series_parallel(vgg));
constexpr auto residual_net = typed<resnet50>;
static_assert(parameters(residual_net) == 25557032);
static_assert(flops(residual_net, models::batch = 1) > 2 * 4.08e9 && flops(residual_net, models::batch = 1) < 2 * 4.25e9);
static_assert(output_shape(residual_net, "classes", models::batch = 2).elements() == 2000);

constexpr auto heads = typed<spelled_attention>;
static_assert(parameters(heads) == 4 * (768 * 768 + 768));
static_assert(flops(heads, models::batch = 2) > 2. * 2 * 128 * 768 * 768 * 4);
static_assert(is_series_parallel(heads));
static_assert(output_shape(heads, "y") == shape{models::batch, tok(128), hidden(768)});

constexpr auto clicks = typed<dlrm<26, 1000000, 64>>;
static_assert(clicks.size() == 5 + 26 + 7);
static_assert(parameters(clicks) > 26LL * 64 * 1000000);
static_assert(is_series_parallel(clicks));

constexpr auto words = typed<language>;
static_assert(parameters(words) == 1000 * 64 + 4 * (2 * 64 + 64 * 256 + 256 + 256 * 64 + 64));   // the shared table counts once

static_assert(parameters(typed<two_encoders>) == parameters(typed<two_encoders_inline>));
static_assert(typed<two_encoders>.size() == typed<two_encoders_inline>.size());
static_assert(is_series_parallel(typed<two_encoders>));

static_assert(chained.size() == 3 && parameters(chained) == 8 * 32 + 32 + 32 * 4 + 4);

// concepts: models and negatives
struct no_define {};
struct wrong_define { static constexpr void define(int); };
static_assert(model_definition<mlp> && model_definition<gpt<2, 2, 8>> && !model_definition<no_define> && !model_definition<wrong_define>);
static_assert(tensorpar::graph::topology<typed_graph<mlp>> && tensorpar::graph::topology<graph_view>);
static_assert(operator_graph<typed_graph<mlp>> && operator_graph<graph_view> && operator_graph<computation_graph>);
static_assert(!operator_graph<std::vector<std::vector<int>>> && !operator_graph<int>);

// an archetype: a user's graph of operators with nothing but what operator_graph asks for
namespace archetypes {
struct one_product {};
constexpr int node_count(one_product) { return 1; }
constexpr tensorpar::core::slice<int> predecessors(one_product, int) { return {nullptr, 0}; }
constexpr tensorpar::op::any_op op_of(one_product, int) { return matmul{}; }
inline constexpr int ids[3] = {0, 1, 2};
constexpr tensorpar::core::slice<int> operands(one_product, int) { return {ids, 2}; }
constexpr tensorpar::core::slice<int> results(one_product, int) { return {ids + 2, 1}; }
constexpr int value_count(one_product) { return 3; }
constexpr shape type_of(one_product, int x) { return x == 0 ? shape{3, 5} : x == 1 ? shape{5, 7} : shape{3, 7}; }
constexpr bool is_parameter(one_product, int x) { return x == 1; }
}  // namespace archetypes
static_assert(operator_graph<archetypes::one_product>);
static_assert(parameters(archetypes::one_product{}) == 35 && flops(archetypes::one_product{}) == 2 * 3 * 5 * 7);
static_assert(tensorpar::graph::is_series_parallel(archetypes::one_product{}));

// and graphs that lack one of the six
namespace negatives {
template <int Lacking> struct lacks {};
template <int L> constexpr int node_count(lacks<L>) { return 1; }
template <int L> constexpr tensorpar::core::slice<int> predecessors(lacks<L>, int) { return {nullptr, 0}; }
template <int L> requires(L != 0) constexpr tensorpar::op::any_op op_of(lacks<L>, int) { return matmul{}; }
template <int L> requires(L != 1) constexpr tensorpar::core::slice<int> operands(lacks<L>, int) { return {archetypes::ids, 2}; }
template <int L> requires(L != 2) constexpr tensorpar::core::slice<int> results(lacks<L>, int) { return {archetypes::ids + 2, 1}; }
template <int L> requires(L != 3) constexpr int value_count(lacks<L>) { return 3; }
template <int L> requires(L != 4) constexpr shape type_of(lacks<L>, int) { return shape{3}; }
template <int L> requires(L != 5) constexpr bool is_parameter(lacks<L>, int) { return false; }
}  // namespace negatives
static_assert(tensorpar::graph::topology<negatives::lacks<0>> && operator_graph<negatives::lacks<6>>);
static_assert(!operator_graph<negatives::lacks<0>> && !operator_graph<negatives::lacks<1>> && !operator_graph<negatives::lacks<2>>);
static_assert(!operator_graph<negatives::lacks<3>> && !operator_graph<negatives::lacks<4>> && !operator_graph<negatives::lacks<5>>);

// stages: operators, functions of a tensor, functions of a bundle; nothing else
static_assert(stage<linear> && stage<tensorpar::op::any_op> && !stage<int> && !stage<no_define>);
static_assert(block<decltype(sep(3))> && !block<linear>);
static_assert(op::operator_<rotary> && !op::operator_<no_define>);
