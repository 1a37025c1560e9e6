// tests/rewrite/rule.test.cpp - rules that mean nothing are found, and what attributes are for rules
#include <tensorpar/rewrite/rule.hpp>
#include <doctest/doctest.h>

#include <functional>
#include <tensorpar/op/kinds/parallel.hpp>
#include <tensorpar/op/operators.hpp>

using namespace tensorpar;

namespace {
/// relu(partition{d,k}(x)) => partition{d,k}(relu(x))
rule relu_rule() {
  rule r;
  r.name = "relu";
  r.tensors = {"x"};
  r.parameters = {{"d", parameter_kind::axis}, {"k", parameter_kind::degree}};
  pattern_node split, relu_node;
  split.op = &info<parallel::partition>;
  split.attr = {parameter_term(0), parameter_term(1)};
  relu_node.op = &info<relu>;
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
  CHECK(problems(relu_rule()).empty());
  struct mistake { char const* what; std::function<void(rule&)> make; };
  std::vector<mistake> const all{
      {"source node 1: operand 0 is not there", [](rule& r) { r.source.nodes[1].in[0] = {1, 0}; }},
      {"source node 0: operand 0 is not there", [](rule& r) { r.source.nodes[0].in[0] = {-1, 1}; }},
      {"target: output 0 is not there", [](rule& r) { r.target.outputs[0] = {2, 0}; }},
      {"must have the same outputs", [](rule& r) { r.target.outputs.push_back({0, 0}); }},
      {"must have the same outputs", [](rule& r) { r.source.outputs.clear(); r.target.outputs.clear(); }},
      {"an output of the source must be made by an operator", [](rule& r) { r.source.outputs[0] = {-1, 0}; }},
      {"partition has 2 attributes, not 1", [](rule& r) { r.source.nodes[0].attr.pop_back(); }},
      {"relu takes 1 operands", [](rule& r) { r.source.nodes[1].in.clear(); }},
      {"attribute dim has a parameter of another kind", [](rule& r) { r.source.nodes[0].attr[0] = parameter_term(1); }},
      {"attribute degree must be written", [](rule& r) { r.source.nodes[0].attr[1] = open_term(); }},
      {"names a parameter or tensor that is not there", [](rule& r) { r.target.nodes[1].attr[1] = parameter_term(7); }},
      {"has neither operator nor function", [](rule& r) { r.source.nodes[1].op = nullptr; }},
      {"an attribute depends on a sharding",
       [](rule& r) { r.source.nodes[0].attr[1].factors[0] = {term_kind::copies, 0, 0, -1}; }},
      {"tensor y is not in the source", [](rule& r) { r.tensors.push_back("y"); r.target.nodes[0].in[0] = {-1, 1}; }},
      {"parameter m is in neither side", [](rule& r) { r.parameters.push_back({"m", parameter_kind::degree}); }},
      {"a term's axis is no axis", [](rule& r) {
         r.conditions.push_back({condition_kind::equal, {1, {{term_kind::extent, 0, 0, 1}}, false}, number_term(1), -1});
       }},
  };
  for (mistake const& m : all) {
    INFO(m.what);
    rule r = relu_rule();
    m.make(r);
    auto const found = problems(r);
    bool named = false;
    for (std::string const& p : found) named = named || p.find(m.what) != std::string::npos;
    CHECK(named);
  }
}

TEST_CASE("a number or function of the target must be bound, a degree or axis may be chosen") {
  rule r = relu_rule();
  r.parameters.push_back({"m", parameter_kind::degree});
  r.target.nodes[1].attr[1] = parameter_term(2);
  CHECK(problems(r).empty());
  r.parameters.push_back({"f", parameter_kind::function});
  r.target.nodes[0] = {nullptr, 3, {}, {{-1, 0}}};
  REQUIRE(problems(r).size() == 1);
  CHECK(problems(r)[0] == "parameter f is not bound by the source");
}

TEST_CASE("what follows from operands is filled in") {
  CHECK(role_of(info<linear>, 0) == attr_role::follows);
  CHECK(role_of(info<linear>, 2) == attr_role::label);
  CHECK(role_of(info<transpose>, 0) == attr_role::axis);
  CHECK(role_of(info<attention>, 0) == attr_role::number);
  CHECK(role_of(info<parallel::reduce>, 0) == attr_role::degree);
  i64 const none[max_attrs] = {};
  std::vector<shape> const in{{4, 8}, {6, 8}, {6}};
  CHECK(with_followers(info<linear>, none, {in.data(), 2}) == any_op(linear{6, false}));
  CHECK(with_followers(info<linear>, none, {in.data(), 3}) == any_op(linear{6, true}));
  std::vector<shape> const image{{2, 4, 9, 9}, {6, 4, 3, 1}};
  i64 const conv[max_attrs] = {0, 0, 2, 1, 1, 0, 0, 0};
  CHECK(with_followers(info<conv2d>, conv, {image.data(), 2}) == any_op(conv2d{6, 3, 2, 1, 1, false, 1, 0}));
  std::vector<shape> const words{shape({5}, dtype::i64), {100, 16}};
  CHECK(with_followers(info<embedding>, none, {words.data(), 2}) == any_op(embedding{100, 16}));
}
