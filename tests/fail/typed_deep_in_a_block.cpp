// expect: SHAPE_MISMATCH<.*in_operator.*"add".*"\[batch,hidden=64\]".*"\[batch,hidden=32\]"
// expect: SHAPE_MISMATCH<.*"operands must have one shape".*"typed_deep_in_a_block.cpp:17".*tower
// expect-nvcc: SHAPE_MISMATCH_IN<.*add.*left_extents<-1L?, 64L?>.*right_extents<-1L?, 32L?>, 17, tower>
// The error is as short where the fault lies inside of a residual block, repeated, inside of a function.
#include <tensorpar/typed/typed.hpp>

using namespace tensorpar;
constexpr axis batch{"batch"}, hidden{"hidden"};

#ifdef TENSORPAR_FAIL
constexpr i64 width = 32;
#else
constexpr i64 width = 64;
#endif
constexpr auto body = seq(layernorm{}, linear{256}, gelu{}, linear{width});
constexpr auto block_of = [](ref x) {
  return x | repeat<24>(residual(body)) | relu{};
};

struct tower {
  static constexpr void define(auto& g) {
    auto x = g.input("x", {batch, hidden(64)});
    for (int i = 0; i < 3; ++i) x = x | block_of;
    g.output("y", x);
  }
};
constexpr auto net = typed<tower>;
static_assert(net.size() > 0);
static_assert(parameters(net) == 3 * 24 * (128 + 64 * 256 + 256 + 256 * 64 + 64));
