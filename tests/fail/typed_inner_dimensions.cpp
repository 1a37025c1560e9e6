// expect: SHAPE_MISMATCH<.*in_operator.*"matmul".*"\[batch,rows=8,k=16\]".*"\[batch,k2=15,cols=4\]"
// expect: SHAPE_MISMATCH<.*"inner dimensions differ".*"typed_inner_dimensions.cpp:14".*product
// expect-nvcc: SHAPE_MISMATCH_IN<.*matmul.*left_extents<-1L?, 8L?, 16L?>.*right_extents<-1L?, 15L?, 4L?>, 14, product>
#include <tensorpar/typed/typed.hpp>

using namespace tensorpar;
constexpr axis batch{"batch"}, rows{"rows"}, inner{"k"}, other{"k2"}, cols{"cols"};

struct product {
  static constexpr void define(auto& g) {
    auto a = g.input("a", {batch, rows(8), inner(16)});
#ifdef TENSORPAR_FAIL
    auto b = g.input("b", {batch, other(15), cols(4)});
    g.output("c", all(a, b) | matmul{});
#else
    auto b = g.input("b", {batch, inner(16), cols(4)});
    g.output("c", all(a, b) | matmul{});
#endif
  }
};
constexpr auto net = typed<product>;
static_assert(net.size() == 1);
