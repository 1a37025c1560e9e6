// expect: NAME_CLASH<.*name.*"head".*"two operators have one name".*"typed_name_clash.cpp:13".*tower
// expect-nvcc: NAME_CLASH_IN<13, tower>
#include <tensorpar/typed/typed.hpp>

using namespace tensorpar;
constexpr axis batch{"batch"}, features{"features"};

struct tower {
  static constexpr void define(auto& g) {
    auto x = g.input("x", {batch, features(8)});
    auto y = x | named("head", linear{8});
#ifdef TENSORPAR_FAIL
    y = y | relu{} | named("head", linear{8});
#endif
    g.output("y", y);
  }
};
constexpr auto net = typed<tower>;
static_assert(net.size() > 0);
