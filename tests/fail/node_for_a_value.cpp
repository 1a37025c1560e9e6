// expect: value_kind.*node_(kind|id)|node_(kind|id).*value_kind
// The number of an operator where that of a value is wanted: an operator reads results, not operators.
#include <tensorpar/ir/computation_graph.hpp>

using namespace tensorpar;

value_id twice(computation_graph& g, value_id x) {
  node_id const once = g.add(relu{}, {x});
#ifdef TENSORPAR_FAIL
  node_id const again = g.add(relu{}, {once});
#else
  node_id const again = g.add(relu{}, {g.node(once).out[0]});
#endif
  return g.node(again).out[0];
}
