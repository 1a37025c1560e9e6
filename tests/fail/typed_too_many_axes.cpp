// expect: TOO_MANY_AXES<.*tensor.*"input or weight\(video\)".*given<7>.*at_most<6>.*"typed_too_many_axes.cpp:11".*tower
// expect-nvcc: TOO_MANY_AXES_IN<.*given<7L?>.*at_most<6L?>, 11, tower>
#include <tensorpar/typed/typed.hpp>

using namespace tensorpar;
constexpr axis batch{"batch"}, a{"a"};

struct tower {
  static constexpr void define(auto& g) {
#ifdef TENSORPAR_FAIL
    auto x = g.input("video", {batch, a(2), a(2), a(2), a(2), a(2), a(2)});
#else
    auto x = g.input("video", {batch, a(2), a(2), a(2), a(2), a(2)});
#endif
    auto w = g.weight({a(2), a(2)});
    auto label = g.input("label", {batch}, dtype::i32);
    g.discard(label);
    g.output("y", all(x, w) | linear{.out = 2, .bias = false});
  }
};
constexpr auto net = typed<tower>;
