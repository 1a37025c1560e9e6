// expect: at most 6 axes
#include <tensorpar/op/core/shape.hpp>

using namespace tensorpar;
#ifdef TENSORPAR_FAIL
constexpr shape image{1, 2, 3, 4, 5, 6, 7};
#else
constexpr shape image{1, 2, 3, 4, 5, 6};
#endif
static_assert(image.rank <= 6);
