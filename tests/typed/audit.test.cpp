// tests/typed/audit.test.cpp - what is left over, and names given twice, are found in complete models
#include <tensorpar/typed/audit.hpp>
#include <doctest/doctest.h>

#include <set>
#include <string_view>
#include <tensorpar/typed/typed.hpp>

using namespace tensorpar;

namespace {

constexpr axis samples{"samples"}, f{"features"};

struct own_relu {
  static constexpr auto name = "relu";                         // a name of the library's
  static constexpr auto notation = "... -> ...";
  constexpr op::inference infer(shapes in) const { return in[0]; }
};

model_complaint found(auto&& define) {
  model_builder g;
  define(g);
  return audit(g.view());
}

}  // namespace

TEST_CASE("names: as many as are put in are told apart, by hash and kind") {
  detail::name_table t(500);
  std::set<u64> seen;
  for (int i = 0; i < 500; ++i) {
    u64 const hash = core::mix(static_cast<u64>(i) % 300);
    CHECK((t.insert(hash, 0, i) < 0) == seen.insert(hash).second);
  }
  CHECK(t.insert(core::mix(7), 0, 1000) == 7);                       // who was first
  detail::name_table kinds(4);
  CHECK(kinds.insert(1, 0, 10) == -1);
  CHECK(kinds.insert(1, 1, 11) == -1);
  CHECK(kinds.insert(1, 1, 12) == 11);
}

TEST_CASE("a complete model is accepted, also with what was discarded on purpose") {
  CHECK(found([](auto& g) { g.output("y", g.input("x", {samples, f(8)}) | linear{4} | relu{}); }).ok());
  CHECK(found([](auto& g) {
          auto x = g.input("x", {samples, f(8)});
          g.discard(x | relu{});
          g.output("y", x | linear{4});
        }).ok());
}

TEST_CASE("what is neither used nor an output is named with its operator or port") {
  model_complaint const left = found([](auto& g) {
    auto x = g.input("x", {samples, f(8)});
    x | sigmoid{};
    g.output("y", x | linear{4});
  });
  CHECK(left.kind == complaint_kind::dangling_tensor);
  REQUIRE(!left.op->name.empty());
  CHECK(left.op->name == "sigmoid");
  model_complaint const input = found([](auto& g) {
    g.input("unread", {samples, f(8)});
    g.output("y", g.input("x", {samples, f(8)}) | relu{});
  });
  CHECK(input.kind == complaint_kind::dangling_tensor);
  CHECK(std::string_view(input.name.text) == "unread");
  CHECK(input.op->name.empty());
}

TEST_CASE("names given twice: of inputs, outputs and operators; and an operator type of another's name") {
  model_complaint const inputs = found([](auto& g) {
    auto a = g.input("x", {samples, f(8)}), b = g.input("x", {samples, f(8)});
    g.output("y", all(a, b) | add{});
  });
  CHECK(inputs.kind == complaint_kind::name_clash);
  CHECK(std::string_view(inputs.name.text) == "x");
  model_complaint const outputs = found([](auto& g) {
    auto x = g.input("x", {samples, f(8)});
    g.output("y", x | relu{});
    g.output("y", x | sigmoid{});
  });
  CHECK(outputs.kind == complaint_kind::name_clash);
  auto const two = [](auto& g, char const* a, char const* b) {
    g.output("y", g.input("x", {samples, f(8)}) | named(a, relu{}) | named(b, sigmoid{}));
  };
  CHECK(found([&](auto& g) { two(g, "one", "one"); }).kind == complaint_kind::name_clash);
  CHECK(found([&](auto& g) { two(g, "one", "other"); }).ok());
  model_complaint const types = found([](auto& g) { g.output("y", g.input("x", {samples, f(8)}) | own_relu{}); });
  CHECK(types.kind == complaint_kind::name_clash);
  REQUIRE(!types.op->name.empty());
  CHECK(types.op->name == "relu");
}
