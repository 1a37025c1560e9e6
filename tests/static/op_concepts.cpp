// tests/static/op_concepts.cpp - operator_ and its parts: an archetype, and what lacks one thing
#include <tensorpar/op/core/any_op.hpp>
#include <tensorpar/op/core/concepts.hpp>

using namespace tensorpar;

// archetypes: nothing but what the concept asks for
struct least {
  static constexpr auto name = "least";
  static constexpr auto notation = "... -> ...";
  constexpr inference infer(shapes in) const { return in[0]; }
};
struct min_by_shape {
  static constexpr auto name = "min_by_shape";
  constexpr inference infer(shapes in) const { return in[0]; }
  constexpr notation_text notation_for(shapes) const {
    notation_text t;
    return t.put("a -> a");
  }
};
static_assert(operator_<least> && operator_<min_by_shape>);
static_assert(!described<least> && !differentiable<least>);

// one thing lacking or wrong
struct no_name {
  static constexpr auto notation = "... -> ...";
  constexpr inference infer(shapes in) const { return in[0]; }
};
struct no_notation {
  static constexpr auto name = "no_notation";
  constexpr inference infer(shapes in) const { return in[0]; }
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
  constexpr inference infer(shapes in) { return in[0]; }
};
struct name_is_a_number {
  static constexpr int name = 3;
  static constexpr auto notation = "... -> ...";
  constexpr inference infer(shapes in) const { return in[0]; }
};
struct notation_is_a_number {
  static constexpr auto name = "notation_is_a_number";
  static constexpr int notation = 3;
  constexpr inference infer(shapes in) const { return in[0]; }
};
static_assert(!operator_<no_name> && !operator_<no_notation> && !operator_<no_infer> && !operator_<infers_a_shape>);
static_assert(!operator_<infer_not_const> && !operator_<name_is_a_number> && !operator_<notation_is_a_number>);
static_assert(!operator_<int> && !operator_<void> && !operator_<least*>);

// optional parts
struct with_parts : least {
  static constexpr auto name = "with_parts";
  i64 width = 1;
  static constexpr void describe(auto& self, auto&& visit) { visit("width", self.width); }
  void derive(gradient_builder&) const;
};
struct derive_not_const : least {
  void derive(gradient_builder&);
};
static_assert(operator_<with_parts> && described<with_parts> && differentiable<with_parts> && !differentiable<derive_not_const>);
