// tests/typed/check.test.cpp - a complaint is an undefined type whose arguments are its words; no complaint is the model itself
#include <tensorpar/typed/check.hpp>
#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <tensorpar/op/kinds/contraction.hpp>

using namespace tensorpar;

namespace {
struct my_model {};
constexpr axis rows{"rows"};

constexpr model_complaint fine{};
constexpr model_complaint mismatched{complaint_kind::shape_mismatch, op::mismatch("inner dimensions differ", shape{rows, 8}, shape{6, 4}),
                                     &op::info<matmul>, label("head"), {"dir/m.cpp", 12}};
constexpr model_complaint dangling{complaint_kind::dangling_tensor, op::mismatch("never used", shape{rows, 8}, scalar), &no_operator,
                                   label("x", 3), {"m.cpp", 5}};
constexpr model_complaint clash{complaint_kind::name_clash, op::mismatch("two inputs of one name", scalar, scalar), &no_operator,
                                label("x"), {"m.cpp", 6}};
constexpr model_complaint miscounted{complaint_kind::operand_count, op::mismatch("wrong number of operands", shape{2}, shape{1, 3}),
                                     &op::info<linear>, label("head"), {"m.cpp", 7}};
constexpr model_complaint too_deep{complaint_kind::too_many_axes, op::mismatch("too many axes", shape{7}, shape{6}), &no_operator,
                                   label("x"), {"m.cpp", 8}};

template <model_complaint const& C> using verdict = typename detail::verdict_type<my_model, C>::type;
template <class T> constexpr std::string_view spelled() { return __PRETTY_FUNCTION__; }
template <class T> concept complete = requires { sizeof(T); };

static_assert(std::is_same_v<verdict<fine>, my_model>);
static_assert(!complete<verdict<mismatched>> && !complete<verdict<dangling>> && !complete<verdict<clash>> &&
              !complete<verdict<miscounted>> && !complete<verdict<too_deep>>);

bool says(std::string_view all, std::initializer_list<std::string_view> words) {
  for (std::string_view w : words)
    if (all.find(w) == all.npos) {
      MESSAGE(std::string(w), " is not in ", std::string(all));
      return false;
    }
  return true;
}
}  // namespace

TEST_CASE("the words of a complaint are lifted with an end, so that compilers print them as text") {
  static constexpr detail::text words = detail::text{}.put("inner dimensions differ");
  constexpr auto lifted = detail::lift<refused::because, words>();
  static_assert(sizeof lifted.s == 24);
  CHECK(std::string_view(lifted.s) == "inner dimensions differ");
  CHECK(lifted == refused::because<24>{"inner dimensions differ"});
}

TEST_CASE("the type's name is the message: operator, shapes, reason, place and model") {
  CHECK(says(spelled<verdict<mismatched>>(),
             {"SHAPE_MISMATCH", "matmul(head)", "[rows,8]", "[6,4]", "inner dimensions differ", "m.cpp:12", "my_model"}));
  CHECK(says(spelled<verdict<dangling>>(), {"DANGLING_TENSOR", "input or weight(x.3)", "[rows,8]", "never used", "m.cpp:5", "my_model"}));
  CHECK(says(spelled<verdict<clash>>(), {"NAME_CLASH", "two inputs of one name", "m.cpp:6", "my_model"}));
  CHECK(says(spelled<verdict<miscounted>>(),
             {"WRONG_NUMBER_OF_OPERANDS", "linear(head)", "given<2>", "wanted<1, 3>", "m.cpp:7", "my_model"}));
  CHECK(says(spelled<verdict<too_deep>>(), {"TOO_MANY_AXES", "input or weight(x)", "given<7>", "at_most<6>", "m.cpp:8", "my_model"}));
}
