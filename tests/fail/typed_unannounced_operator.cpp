// expect: the model uses an operator that it does not announce
#include <tensorpar/typed/hana.hpp>

using namespace tensorpar;
constexpr axis batch{"batch"}, features{"features"};

struct leaky {
  static constexpr auto name = "leaky";
  static constexpr auto notation = "... -> ...";
  constexpr op::inference infer(shapes in) const { return in[0]; }
};
struct tower {
#ifndef TENSORPAR_FAIL
  using operators = op::op_set<leaky>;
#endif
  static constexpr void define(auto& g) { g.output("y", g.input("x", {batch, features(8)}) | leaky{}); }
};
constexpr auto types = op_types(typed<tower>);
