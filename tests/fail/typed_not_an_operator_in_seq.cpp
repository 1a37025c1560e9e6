// expect: NOT_AN_OPERATOR<nothing_of_the_kind>
#include <tensorpar/typed/typed.hpp>

using namespace tensorpar;
constexpr axis batch{"batch"}, features{"features"};

struct nothing_of_the_kind {};

struct tower {
  static constexpr void define(auto& g) {
    auto x = g.input("x", {batch, features(8)});
#ifdef TENSORPAR_FAIL
    g.output("y", x | seq(linear{8}, nothing_of_the_kind{}));
#else
    g.output("y", x | seq(linear{8}, relu{}));
#endif
  }
};
constexpr auto net = typed<tower>;
static_assert(net.size() >= 1);
