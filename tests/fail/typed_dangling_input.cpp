// expect: DANGLING_TENSOR<.*in_operator.*"input or weight\(labels\)".*tensor.*"\[batch\]i32"
// expect: DANGLING_TENSOR<.*"neither used nor an output".*"typed_dangling_input.cpp:13".*tower
// expect-nvcc: DANGLING_TENSOR_IN<.*left_extents<-1L?>, 13, tower>
#include <tensorpar/typed/typed.hpp>

using namespace tensorpar;
constexpr axis batch{"batch"}, features{"features"};

struct tower {
  static constexpr void define(auto& g) {
    auto x = g.input("x", {batch, features(8)});
#ifdef TENSORPAR_FAIL
    g.input("labels", {batch}, dtype::i32);
#endif
    g.output("y", x | linear{32} | relu{});
  }
};
constexpr auto net = typed<tower>;
static_assert(net.size() > 0);
