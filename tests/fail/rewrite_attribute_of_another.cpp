// expect: attribute_of_another_operator: a pattern sets an attribute that its operator does not have
#include <tensorpar/op/kinds/parallel.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/rewrite/pattern.hpp>

using namespace tensorpar;

rewrite::rule data_parallel() {
  rewrite::rule_writer g("data");
  auto const x = g.tensor("x");
  auto const k = g.degree("k");
#ifdef TENSORPAR_FAIL
  g.becomes({g.apply<parallel::replicate>({x}, set<&parallel::partition::degree>(k))});
#else
  g.becomes({g.apply<parallel::replicate>({x}, rewrite::set<&parallel::replicate::degree>(k))});
#endif
  g.with_outputs({x});
  return std::move(g).done();
}
