// expect: WRONG_NUMBER_OF_OPERANDS<.*in_operator.*"matmul\(scores\)".*given<1>.*wanted<2>.*"typed_too_few_operands.cpp:12".*tower
// expect-nvcc: WRONG_NUMBER_OF_OPERANDS_IN<.*matmul.*given<1L?>.*wanted<2L?>, 12, tower>
#include <tensorpar/typed/typed.hpp>

using namespace tensorpar;
constexpr axis batch{"batch"}, a{"a"};

struct tower {
  static constexpr void define(auto& g) {
    auto x = g.input("x", {batch, a(8), a(8)});
#ifdef TENSORPAR_FAIL
    g.output("y", x | named("scores", matmul{}));
#else
    g.output("y", all(x, x) | named("scores", matmul{}));
#endif
  }
};
constexpr auto net = typed<tower>;
static_assert(net.size() == 1);
