// tests/rewrite/vocabulary.test.cpp - operators by name
#include <tensorpar/rewrite/vocabulary.hpp>
#include <doctest/doctest.h>

using namespace tensorpar;

TEST_CASE("operators are found by name, of two the later; there are four functions") {
  rewrite::vocabulary const& v = rewrite::standard_vocabulary();
  CHECK(v.find("linear") == &op::info<linear>);
  CHECK(v.find("reduce") == &op::info<parallel::reduce>);
  CHECK(v.find("relu_grad") == nullptr);
  CHECK(v.find("") == nullptr);
  CHECK(v.with(op::backward_operators{}).find("relu_grad") == &op::info<relu_grad>);
  std::string functions;
  for (op::op_info const* o : v) if (rewrite::is_function(*o)) functions += std::string(o->name) + " ";
  CHECK(functions == "relu gelu sigmoid tanh ");
}
