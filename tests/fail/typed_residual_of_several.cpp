// expect: RESIDUAL_IS_NOT_ONE_TENSOR<.*lambda
#include <tensorpar/typed/typed.hpp>

using namespace tensorpar;
constexpr axis batch{"batch"}, features{"features"};

struct tower {
  static constexpr void define(auto& g) {
    auto x = g.input("x", {batch, features(8)});
#ifdef TENSORPAR_FAIL
    g.output("y", x | residual([](ref h) { return all(h, h); }));
#else
    g.output("y", x | residual([](ref h) { return h | relu{}; }));
#endif
  }
};
constexpr auto net = typed<tower>;
static_assert(net.size() >= 1);
