// expect: SHAPE_MISMATCH<.*in_operator.*"conv2d\(first\)".*"\[batch,pixels=64\]".*"conv2d takes \[n,c,h,w\]".*"typed_rank.cpp:14".*picture
// expect-nvcc: SHAPE_MISMATCH_IN<.*conv2d.*left_extents<-1L?, 64L?>.*right_extents<>, 14, picture>
#include <tensorpar/typed/typed.hpp>

using namespace tensorpar;
constexpr axis batch{"batch"}, pixels{"pixels"};

struct picture {
  static constexpr void define(auto& g) {
    auto x = g.input("image", {batch, pixels(64)});
    auto y = x | linear{64} | relu{};
    y = y
#ifdef TENSORPAR_FAIL
        | named("first", conv2d{.out = 8});
#else
        | reshape{.keep = 1, .rank = 3, .d = {1, 8, 8}} | conv2d{.out = 8};
#endif
    g.output("features", y);
  }
};
constexpr auto net = typed<picture>;
static_assert(net.size() > 0);
