// expect: NOT_AN_OPERATOR<nothing_of_the_kind>
#include <tensorpar/typed/typed.hpp>

using namespace tensorpar;

struct nothing_of_the_kind {};

#ifdef TENSORPAR_FAIL
constexpr auto body = linear{8} | nothing_of_the_kind{};
#else
constexpr auto body = linear{8} | relu{};
#endif
constexpr shape in{4, 8};
constexpr auto net = typed<chain<body, in>>;
static_assert(net.size() == 2);
