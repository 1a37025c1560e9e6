// expect: DEFINE_MUST_BE_A_CONSTANT_EXPRESSION.*tower
// expect-nvcc: DEFINE_MUST_BE_A_CONSTANT_EXPRESSION
// A width that is known at run time only; the compiler's next lines say which call it is.
#include <tensorpar/typed/typed.hpp>

using namespace tensorpar;
constexpr axis batch{"batch"}, features{"features"};

#ifdef TENSORPAR_FAIL
inline i64 width() { return 8; }
#else
constexpr i64 width() { return 8; }
#endif

struct tower {
  static constexpr void define(auto& g) { g.output("y", g.input("x", {batch, features(width())}) | relu{}); }
};
constexpr auto net = typed<tower>;
static_assert(net.size() == 1);
