// expect: WRONG_NUMBER_OF_OPERANDS<.*in_operator.*"linear".*given<2>.*wanted<1, ?3>.*"typed_operand_count.cpp:17".*tower
// expect-nvcc: WRONG_NUMBER_OF_OPERANDS_IN<.*linear.*given<2L?>.*wanted<1L?, 3L?>, 17, tower>
// A shared weight without the bias that belongs to it.
#include <tensorpar/typed/typed.hpp>

using namespace tensorpar;
constexpr axis batch{"batch"}, features{"features"}, hidden{"hidden"};

struct tower {
  static constexpr void define(auto& g) {
    auto x = g.input("x", {batch, features(8)});
    auto w = g.weight("w", {hidden(16), features(8)});
    auto b = g.weight("b", {hidden(16)});
    g.output("z", all(x, w, b) | linear{16});
#ifdef TENSORPAR_FAIL
    g.output("y", all(x, w)
        | linear{16});
#else
    g.output("y", all(x, w, b) | linear{16});
#endif
  }
};
constexpr auto net = typed<tower>;
static_assert(net.size() == 2);
