// expect: NOT_AN_OPERATOR<nothing_of_the_kind>
#include <tensorpar/typed/typed.hpp>

using namespace tensorpar;
constexpr axis batch{"batch"}, features{"features"};

struct nothing_of_the_kind {};

struct tower {
  static constexpr void define(auto& g) {
    auto x = g.input("x", {batch, features(8)});
    auto y = g.input("y", {batch, features(8)});
#ifdef TENSORPAR_FAIL
    auto z = all(x, y) | nothing_of_the_kind{};
#else
    auto z = all(x, y) | concat{};
#endif
    g.output("z", z);
  }
};
constexpr auto net = typed<tower>;
static_assert(net.size() == 1);
