// tests/typed/documented.test.cpp - the list of operators in docs/how-to/declare-a-model.md names all of them
#include <tensorpar/op/operators.hpp>

#include <doctest/doctest.h>

#include <fstream>
#include <sstream>
#include <string>

using namespace tensorpar;

namespace {
/// `name{`, `name(`, `name`, each in op:: too, or ("name").
template <class Op> void is_listed(std::string const& page) {
  std::string const name(Op::name);
  bool found = false;
  for (std::string const space : {"`", "`op::"})
    for (char const* end : {"{", "(", "`"}) found = found || page.find(space + name + end) != page.npos;
  found = found || page.find('"' + name + '"') != page.npos;
  CHECK_MESSAGE(found, name, " is not in the list");
}
template <class... Op> void are_listed(op::op_set<Op...>, std::string const& page) { (is_listed<Op>(page), ...); }
}  // namespace

TEST_CASE("every operator that a model may be written with is in the how-to's list") {
  std::ifstream file(TENSORPAR_SOURCE "/docs/how-to/declare-a-model.md");
  std::stringstream page;
  page << file.rdbuf();
  REQUIRE(page.str().size() > 1000);
  are_listed(op::forward_operators{}, page.str());
}
