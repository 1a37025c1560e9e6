// tests/rewrite/vocabulary.test.cpp - operators by name
#include <tensorpar/rewrite/vocabulary.hpp>
#include <doctest/doctest.h>

using namespace tensorpar;

TEST_CASE("operators are found by name, of two the later; there are four functions") {
  vocabulary const& v = standard_vocabulary();
  CHECK(v.find("linear") == &info<linear>);
  CHECK(v.find("reduce") == &info<parallel::reduce>);
  CHECK(v.find("relu_grad") == nullptr);
  CHECK(v.find("") == nullptr);
  CHECK(v.with(backward_operators{}).find("relu_grad") == &info<relu_grad>);
  std::string functions;
  for (op_info const* o : v) if (is_function(*o)) functions += std::string(o->name) + " ";
  CHECK(functions == "relu gelu sigmoid tanh ");
}
