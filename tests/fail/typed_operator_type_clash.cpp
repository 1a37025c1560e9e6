// expect: NAME_CLASH<.*name.*"relu".*"two operator types have one name".*"typed_operator_type_clash.cpp:23".*tower
// expect-nvcc: NAME_CLASH_IN<23, tower>
// Operators are told apart by the hash of their names: a user's own "relu" would be run by the library's kernel.
#include <tensorpar/typed/typed.hpp>

using namespace tensorpar;
constexpr axis batch{"batch"}, features{"features"};

struct leaky {
#ifdef TENSORPAR_FAIL
  static constexpr auto name = "relu";
#else
  static constexpr auto name = "leaky";
#endif
  static constexpr auto notation = "... -> ...";
  constexpr op::inference infer(shapes in) const { return in[0]; }
};

struct tower {
  static constexpr void define(auto& g) {
    auto x = g.input("x", {batch, features(8)});
    auto y = x | linear{8};
    y = y | leaky{};
    g.output("y", y);
  }
};
constexpr auto net = typed<tower>;
static_assert(net.size() == 2);
