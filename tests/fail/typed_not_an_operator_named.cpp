// expect: NOT_AN_OPERATOR<
// Blocks have no names: what is named is an operator.
#include <tensorpar/typed/typed.hpp>

using namespace tensorpar;
constexpr axis batch{"batch"}, features{"features"};

struct tower {
  static constexpr void define(auto& g) {
    auto x = g.input("x", {batch, features(8)});
#ifdef TENSORPAR_FAIL
    g.output("y", x | named("tower", residual(relu{})));
#else
    g.output("y", x | residual(named("tower", relu{})));
#endif
  }
};
constexpr auto net = typed<tower>;
static_assert(net.size() >= 1);
