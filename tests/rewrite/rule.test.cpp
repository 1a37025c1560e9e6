// tests/rewrite/rule.test.cpp - rules that mean nothing are found, and what attributes are for rules
#include <tensorpar/rewrite/rule.hpp>
#include <doctest/doctest.h>

#include <functional>
#include <tensorpar/op/kinds/parallel.hpp>
#include <tensorpar/op/operators.hpp>

using namespace tensorpar;

namespace {
/// relu(partition{d,k}(x)) => partition{d,k}(relu(x))
rewrite::rule relu_rule() {
  rewrite::rule r;
  r.name = "relu";
  r.tensors = {"x"};
  r.parameters = {{"d", rewrite::parameter_kind::axis}, {"k", rewrite::parameter_kind::degree}};
  rewrite::pattern_node split, relu_node;
  split.op = &op::info<parallel::partition>;
  split.attr = {rewrite::parameter_term(0), rewrite::parameter_term(1)};
  relu_node.op = &op::info<relu>;
  split.in = {{-1, 0}};
  relu_node.in = {{0, 0}};
  r.source.nodes = {split, relu_node};
  std::swap(split.in, relu_node.in);
  r.target.nodes = {relu_node, split};
  r.source.outputs = r.target.outputs = {{1, 0}};
  return r;
}
}  // namespace

TEST_CASE("a good rule has no problems, and every mistake is named") {
  CHECK(rewrite::problems(relu_rule()).empty());
  struct mistake { char const* what; std::function<void(rewrite::rule&)> make; };
  std::vector<mistake> const all{
      {"source node 1: operand 0 is not there", [](rewrite::rule& r) { r.source.nodes[1].in[0] = {1, 0}; }},
      {"source node 0: operand 0 is not there", [](rewrite::rule& r) { r.source.nodes[0].in[0] = {-1, 1}; }},
      {"target: output 0 is not there", [](rewrite::rule& r) { r.target.outputs[0] = {2, 0}; }},
      {"must have the same outputs", [](rewrite::rule& r) { r.target.outputs.push_back({0, 0}); }},
      {"must have the same outputs", [](rewrite::rule& r) { r.source.outputs.clear(); r.target.outputs.clear(); }},
      {"an output of the source must be made by an operator", [](rewrite::rule& r) { r.source.outputs[0] = {-1, 0}; }},
      {"partition has 2 attributes, not 1", [](rewrite::rule& r) { r.source.nodes[0].attr.pop_back(); }},
      {"relu takes 1 operands", [](rewrite::rule& r) { r.source.nodes[1].in.clear(); }},
      {"attribute dim has a parameter of another kind", [](rewrite::rule& r) { r.source.nodes[0].attr[0] = rewrite::parameter_term(1); }},
      {"attribute degree must be written", [](rewrite::rule& r) { r.source.nodes[0].attr[1] = rewrite::open_term(); }},
      {"names a parameter or tensor that is not there", [](rewrite::rule& r) { r.target.nodes[1].attr[1] = rewrite::parameter_term(7); }},
      {"has neither operator nor function", [](rewrite::rule& r) { r.source.nodes[1].op = nullptr; }},
      {"an attribute depends on a sharding",
       [](rewrite::rule& r) { r.source.nodes[0].attr[1].factors[0] = {rewrite::term_kind::copies, 0, 0, -1}; }},
      {"tensor y is not in the source", [](rewrite::rule& r) { r.tensors.push_back("y"); r.target.nodes[0].in[0] = {-1, 1}; }},
      {"parameter m is in neither side", [](rewrite::rule& r) { r.parameters.push_back({"m", rewrite::parameter_kind::degree}); }},
      {"a term's axis is no axis", [](rewrite::rule& r) {
         r.conditions.push_back({rewrite::condition_kind::equal, {1, {{rewrite::term_kind::extent, 0, 0, 1}}, false},
                                 rewrite::number_term(1), -1});
       }},
  };
  for (mistake const& m : all) {
    INFO(m.what);
    rewrite::rule r = relu_rule();
    m.make(r);
    auto const found = rewrite::problems(r);
    bool named = false;
    for (std::string const& p : found) named = named || p.find(m.what) != std::string::npos;
    CHECK(named);
  }
}

TEST_CASE("a number or function of the target must be bound, a degree or axis may be chosen") {
  rewrite::rule r = relu_rule();
  r.parameters.push_back({"m", rewrite::parameter_kind::degree});
  r.target.nodes[1].attr[1] = rewrite::parameter_term(2);
  CHECK(rewrite::problems(r).empty());
  r.parameters.push_back({"f", rewrite::parameter_kind::function});
  r.target.nodes[0] = {nullptr, 3, {}, {{-1, 0}}};
  REQUIRE(rewrite::problems(r).size() == 1);
  CHECK(rewrite::problems(r)[0] == "parameter f is not bound by the source");
}

TEST_CASE("what follows from operands is filled in") {
  CHECK(rewrite::role_of(op::info<linear>, 0) == rewrite::attr_role::follows);
  CHECK(rewrite::role_of(op::info<linear>, 2) == rewrite::attr_role::label);
  CHECK(rewrite::role_of(op::info<transpose>, 0) == rewrite::attr_role::axis);
  CHECK(rewrite::role_of(op::info<attention>, 0) == rewrite::attr_role::number);
  CHECK(rewrite::role_of(op::info<parallel::reduce>, 0) == rewrite::attr_role::degree);
  i64 const none[op::max_attrs] = {};
  std::vector<shape> const in{{4, 8}, {6, 8}, {6}};
  CHECK(rewrite::with_followers(op::info<linear>, none, {in.data(), 2}) == op::any_op(linear{6, false}));
  CHECK(rewrite::with_followers(op::info<linear>, none, {in.data(), 3}) == op::any_op(linear{6, true}));
  std::vector<shape> const image{{2, 4, 9, 9}, {6, 4, 3, 1}};
  i64 const conv[op::max_attrs] = {0, 0, 2, 1, 1, 0, 0, 0};
  CHECK(rewrite::with_followers(op::info<conv2d>, conv, {image.data(), 2}) == op::any_op(conv2d{6, 3, 2, 1, 1, false, 1, 0}));
  std::vector<shape> const words{shape({5}, dtype::i64), {100, 16}};
  CHECK(rewrite::with_followers(op::info<embedding>, none, {words.data(), 2}) == op::any_op(embedding{100, 16}));
}
