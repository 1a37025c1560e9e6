// tests/op/kinds/parallel.test.cpp - the six parallel operators: identity on the logical tensor, derivatives that swap, names of their own
#include <set>
#include <support/laws/operator.hpp>
#include <tensorpar/op/kinds/parallel.hpp>

using namespace tensorpar;

namespace {

/// Records what `derive` emits: handle 0 is the operand, 1 the result, 2 the gradient of the result, 3 ... what was emitted.
struct recorder final : op::gradient_builder {
  shape of;
  bool want = true;
  std::vector<op::any_op> emitted;
  std::vector<tensor> taken, given;
  int operands() const override { return 1; }
  tensor operand(int) const override { return 0; }
  tensor result(int) const override { return 1; }
  tensor gradient(int) override { return 2; }
  bool has_gradient(int) const override { return true; }
  bool wanted(int) const override { return want; }
  shape type(tensor) const override { return of; }
  tensor emit(op::any_op const& op, std::initializer_list<tensor> in) override { return emit(op, in.begin(), static_cast<int>(in.size())); }
  tensor emit(op::any_op const& op, tensor const* in, int k) override {
    emitted.push_back(op);
    taken.insert(taken.end(), in, in + k);
    return 2 + static_cast<int>(emitted.size());
  }
  void give(int i, tensor t) override {
    CHECK(i == 0);
    given.push_back(t);
  }
};

op::any_op derivative(op::any_op const& o) {
  recorder r;
  r.of = shape{8, 4};
  o.op->derive(o.attr, r);
  REQUIRE(r.emitted.size() == 1);
  CHECK(r.taken == std::vector<value_id>{2});
  CHECK(r.given == std::vector<value_id>{3});
  recorder nobody;
  nobody.want = false;
  o.op->derive(o.attr, nobody);
  CHECK((nobody.emitted.empty() && nobody.given.empty()));
  return r.emitted[0];
}

op::any_op const six[] = {parallel::partition{1, 4}, parallel::combine{1, 4},  parallel::replicate{4},
                      parallel::reduce{4},       parallel::pipeline{0, 4}, parallel::batch{0, 4}};

}  // namespace

TEST_CASE("derivatives swap in pairs, attributes kept; twice is the operator itself") {
  for (int i = 0; i < 6; ++i) {
    INFO(op::spell(six[i]));
    CHECK(derivative(six[i]) == six[i ^ 1]);
    CHECK(derivative(derivative(six[i])) == six[i]);
  }
}

TEST_CASE("the logical tensor stays what it is, for nothing") {
  for (op::any_op const& o : six)
    for (shape const& s : {shape{8, 4}, shape({axis("batch"), 4, 2}, dtype::i32), shape{16, 16, 2, 2}}) {
      CHECK(tests::results_of(o, {s}) == std::vector<shape>{s});
      CHECK(tests::weights_of(o, {s}).empty());
      CHECK(o.op->flops(o.attr, {&s, 1}, {&s, 1}) == 0);
    }
  CHECK(tests::check_operator_laws(six[0], {{8, 4}}) == 5);   // 2, 4 and 8 parts of 8, 2 and 4 parts of 4
}

TEST_CASE("attributes and names") {
  std::set<std::string> names;
  for (op::any_op const& o : six) {
    names.insert(std::string(o.op->name));
    CHECK(is_parallel(o));
    CHECK(o.op->arity == 1);
  }
  CHECK(names == std::set<std::string>{"batch", "combine", "partition", "pipeline", "reduce", "replicate"});
  CHECK(!is_parallel(linear{4}));
  CHECK(!is_parallel(add{}));
  CHECK(op::spell(six[0]) == "partition{dim=1,degree=4}");
  CHECK(op::spell(six[3]) == "reduce{degree=4}");
  tests::check_attribute_laws(parallel::partition{3, 5});
  tests::check_attribute_laws(parallel::replicate{5});
  tests::check_attribute_laws(parallel::batch{2, 7});
}
