// expect: DANGLING_TENSOR<.*in_operator.*"linear\(aside\)".*tensor.*"\[batch,features=16\]"
// expect: DANGLING_TENSOR<.*"neither used nor an output".*"typed_dangling_tensor.cpp:15".*tower
// expect-nvcc: DANGLING_TENSOR_IN<.*linear.*left_extents<-1L?, 16L?>.*, 15, tower>
#include <tensorpar/typed/typed.hpp>

using namespace tensorpar;
constexpr axis batch{"batch"}, features{"features"};

struct tower {
  static constexpr void define(auto& g) {
    auto x = g.input("x", {batch, features(8)});
    auto y = x | linear{32} | relu{};
#ifdef TENSORPAR_FAIL
    auto forgotten =
        y | named("aside", linear{16});
    static_cast<void>(forgotten);
#endif
    g.output("y", y);
  }
};
constexpr auto net = typed<tower>;
static_assert(net.size() > 0);
