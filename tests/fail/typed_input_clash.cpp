// expect: NAME_CLASH<.*name.*"x".*"two inputs or weights have one name".*"typed_input_clash.cpp:12".*sum
// expect-nvcc: NAME_CLASH_IN<12, sum>
#include <tensorpar/typed/typed.hpp>

using namespace tensorpar;
constexpr axis batch{"batch"}, features{"features"};

struct sum {
  static constexpr void define(auto& g) {
    auto x = g.input("x", {batch, features(8)});
#ifdef TENSORPAR_FAIL
    auto y = g.input("x", {batch, features(8)});
#else
    auto y = g.input("y", {batch, features(8)});
#endif
    g.output("sum", x + y);
  }
};
constexpr auto net = typed<sum>;
static_assert(net.size() == 1);
