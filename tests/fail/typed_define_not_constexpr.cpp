// expect: DEFINE_MUST_BE_A_CONSTANT_EXPRESSION.*tower
// expect-nvcc: DEFINE_MUST_BE_A_CONSTANT_EXPRESSION
#include <tensorpar/typed/typed.hpp>

using namespace tensorpar;
constexpr axis batch{"batch"}, features{"features"};

#ifdef TENSORPAR_FAIL
#define WHEN
#else
#define WHEN constexpr
#endif

struct tower {
  static WHEN void define(auto& g) { g.output("y", g.input("x", {batch, features(8)}) | relu{}); }
};
constexpr auto net = typed<tower>;
static_assert(net.size() == 1);
