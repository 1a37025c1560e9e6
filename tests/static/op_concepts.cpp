// tests/static/op_concepts.cpp - operator_ and its parts: an archetype, and what lacks one thing
#include <tensorpar/op/core/any_op.hpp>
#include <tensorpar/op/core/concepts.hpp>

using namespace tensorpar;

// archetypes: nothing but what the concept asks for
struct least {
  static constexpr auto name = "least";
  static constexpr auto notation = "... -> ...";
  constexpr op::inference infer(shapes in) const { return in[0]; }
};
struct min_by_shape {
  static constexpr auto name = "min_by_shape";
  constexpr op::inference infer(shapes in) const { return in[0]; }
  constexpr op::notation_text notation_for(shapes) const {
    op::notation_text t;
    return t.put("a -> a");
  }
};
static_assert(op::operator_<least> && op::operator_<min_by_shape>);
static_assert(!op::described<least> && !op::differentiable<least>);

// one thing lacking or wrong
struct no_name {
  static constexpr auto notation = "... -> ...";
  constexpr op::inference infer(shapes in) const { return in[0]; }
};
struct no_notation {
  static constexpr auto name = "no_notation";
  constexpr op::inference infer(shapes in) const { return in[0]; }
};
struct no_infer {
  static constexpr auto name = "no_infer";
  static constexpr auto notation = "... -> ...";
};
struct infers_a_shape {
  static constexpr auto name = "infers_a_shape";
  static constexpr auto notation = "... -> ...";
  constexpr shape infer(shapes in) const { return in[0]; }
};
struct infer_not_const {
  static constexpr auto name = "infer_not_const";
  static constexpr auto notation = "... -> ...";
  constexpr op::inference infer(shapes in) { return in[0]; }
};
struct name_is_a_number {
  static constexpr int name = 3;
  static constexpr auto notation = "... -> ...";
  constexpr op::inference infer(shapes in) const { return in[0]; }
};
struct notation_is_a_number {
  static constexpr auto name = "notation_is_a_number";
  static constexpr int notation = 3;
  constexpr op::inference infer(shapes in) const { return in[0]; }
};
static_assert(!op::operator_<no_name> && !op::operator_<no_notation> && !op::operator_<no_infer> && !op::operator_<infers_a_shape>);
static_assert(!op::operator_<infer_not_const> && !op::operator_<name_is_a_number> && !op::operator_<notation_is_a_number>);
static_assert(!op::operator_<int> && !op::operator_<void> && !op::operator_<least*>);

// optional parts
struct with_parts : least {
  static constexpr auto name = "with_parts";
  i64 width = 1;
  static constexpr void describe(auto& self, auto&& visit) { visit("width", self.width); }
  void derive(op::gradient_builder&) const;
};
struct derive_not_const : least {
  void derive(op::gradient_builder&);
};
static_assert(op::operator_<with_parts> && op::described<with_parts> && op::differentiable<with_parts> &&
              !op::differentiable<derive_not_const>);
