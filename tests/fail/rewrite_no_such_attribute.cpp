// expect: degree.*not a member of .*linear|no member named .degree. in .tensorpar::linear|linear. has no member .degree
#include <tensorpar/op/operators.hpp>
#include <tensorpar/rewrite/pattern.hpp>

using namespace tensorpar;

rewrite::rule narrow() {
  rewrite::rule_writer g("narrow");
  auto const x = g.tensor("x"), w = g.tensor("w");
#ifdef TENSORPAR_FAIL
  g.becomes({g.apply<linear>({x, w}, set<&linear::degree>(2))});
#else
  g.becomes({g.apply<linear>({x, w})});
#endif
  g.with_outputs({g.apply<linear>({x, w})});
  return std::move(g).done();
}
