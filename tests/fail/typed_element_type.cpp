// expect: SHAPE_MISMATCH<.*in_operator.*"linear".*"\[batch,seq=16\]i32".*"linear takes real numbers".*"typed_element_type.cpp:12".*language
// expect-nvcc: SHAPE_MISMATCH_IN<.*linear.*left_extents<-1L?, 16L?>.*right_extents<>, 12, language>
#include <tensorpar/typed/typed.hpp>

using namespace tensorpar;
constexpr axis batch{"batch"}, seq_{"seq"};

struct language {
  static constexpr void define(auto& g) {
    auto tokens = g.input("tokens", {batch, seq_(16)}, dtype::i32);
#ifdef TENSORPAR_FAIL
    g.output("y", tokens | linear{32});
#else
    g.output("y", tokens | embedding{.rows = 100, .width = 32} | linear{32});
#endif
  }
};
constexpr auto net = typed<language>;
static_assert(net.size() > 0);
