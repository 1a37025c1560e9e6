// tests/typed/hana.test.cpp - visiting a typed graph with the concrete types of its operators
#include <doctest/doctest.h>

#include <string>
#include <tensorpar/typed/hana.hpp>
#include <support/typed_models.hpp>

using namespace tensorpar;

TEST_CASE("every node is visited in order, with its own type and attributes") {
  constexpr auto net = typed<models::language>;
  computation_graph const g = lower(net, {models::batch = 8});
  int v = 0;
  double work = 0;
  hana::for_each(net, [&](auto node) {
    using op = typename decltype(node)::op_type;
    CHECK(node.index == v);
    CHECK(tensorpar::op::any_op(node.op()) == op_of(graph_view(net), v));
    CHECK(std::string_view(op::name) == op_of(graph_view(net), v).op->name);
    shape const y = bind(node.result(), {&(binding const&)(models::batch = 8), 1});
    work += static_cast<double>(y.elements());
    ++v;
  });
  CHECK(v == net.size());
  CHECK(work > 0);
  CHECK(hana::fold_left(net, 0, [](int n, auto node) { return n + node.results(); }) == net.size() + 1);   // the split has two
}

TEST_CASE("an operator's attributes by name") {
  std::string keys;
  hana::for_each(hana::keys(conv2d{}), [&](auto k) { keys += std::string(k.c_str()) + " "; });
  CHECK(keys == "out kernel stride pad groups bias kernel_w pad_w ");
  double sum = 0;
  hana::for_each(hana::members(adamw_update{}), [&](double x) { sum += x; });
  CHECK(sum == doctest::Approx(0.9 + 0.999 + 1e-8 + 0.01));
}
