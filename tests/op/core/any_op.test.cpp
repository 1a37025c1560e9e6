// tests/op/core/any_op.test.cpp - any operator as plain data; a user's operator is one like the others
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <support/laws/operator.hpp>
#include <support/operator_samples.hpp>

using namespace tensorpar;

namespace {
struct rotary {
  i64 base = 10000;
  bool interleaved = false;
  double factor = 1;
  static constexpr auto name = "rotary";
  static constexpr auto notation = "bsE -> bsE";
  static constexpr void describe(auto& s, auto&& visit) {
    visit("base", s.base);
    visit("interleaved", s.interleaved);
    visit("factor", s.factor);
  }
  constexpr op::inference infer(shapes in) const {
    return in[0].last().n % 2 ? op::inference(op::mismatch("width must be even", in[0], scalar)) : op::inference(in[0]);
  }
};
static_assert(op::operator_<rotary> && !op::differentiable<rotary> && op::described<rotary>);
}  // namespace

TEST_CASE("a user's operator keeps the laws") {
  tests::check_attribute_laws(rotary{.base = 7, .interleaved = true, .factor = 0.5});
  CHECK(tests::check_operator_laws(rotary{}, {{4, 6, 8}}) == 5);   // 2 and 4 parts of 4, 2, 3 and 6 parts of 6
  CHECK(!op::info<rotary>.derive);
  CHECK((op::info<relu>.derive != nullptr));
  CHECK(op::info<rotary>.attr_kind(1) == 'b');
  CHECK(op::info<rotary>.attr_name(2) == "factor");
}

TEST_CASE("the default work counts every loop once, twice where one is reduced") {
  op::any_op const o = contraction("mk,kn->mn");
  shape const in[2]{{3, 5}, {5, 7}}, out[1]{{3, 7}};
  CHECK(o.op->flops(o.attr, {in, 2}, {out, 1}) == 2.0 * 3 * 5 * 7);
  op::any_op const r = rotary{};
  shape const x[1]{{3, 5, 8}};
  CHECK(r.op->flops(r.attr, {x, 1}, {x, 1}) == 120);
}

TEST_CASE("a contraction's work is that of its parsed notation") {
  std::mt19937 r(5);
  for (int turn = 0; turn < 300; ++turn) {
    i64 extent[6];
    for (i64& e : extent) e = 1 + static_cast<i64>(r() % 9);
    std::string text;
    std::vector<shape> in(1 + r() % 2);
    std::string letters;
    for (shape& x : in) {
      if (!text.empty()) text += turn % 3 ? "," : " , ";
      for (char c = 'a'; c < 'g'; ++c) {
        if (r() % 2) continue;
        text += c;
        x.d[x.rank++] = dim(extent[c - 'a']);
        if (letters.find(c) == letters.npos) letters += c;
      }
    }
    text += "->";
    shape y;
    std::shuffle(letters.begin(), letters.end(), r);
    for (char c : letters) {
      if (r() % 2) continue;
      text += c;
      y.d[y.rank++] = dim(extent[c - 'a']);
    }
    op::any_op const o = contraction(text);
    shapes const from{in.data(), static_cast<int>(in.size())}, to{&y, 1};
    CAPTURE(text);
    CHECK(o.op->flops(o.attr, from, to) == op::detail::points(op::parse_notation(text), from, to));
  }
}

TEST_CASE("names and places are labels, not values") {
  op::any_op const a = linear{3}, b = named("head", linear{3});
  CHECK(a == b);
  CHECK(a.hash() == b.hash());
  CHECK(b.name == std::string("head"));
  CHECK(std::string(a.at.file).find("any_op.test.cpp") != std::string::npos);
  CHECK(a.at.line > 0);
  CHECK(!(a == op::any_op(linear{4})));
  CHECK(!(op::any_op(relu{}) == op::any_op(gelu{})));
  CHECK(op::any_op{} == op::any_op{});
  CHECK(!(op::any_op{} == op::any_op(relu{})));
}

TEST_CASE("hashes are the same on every machine and in every run") {
  CHECK(op::info<linear>.id == 0xac3191c5ecc66e60ull);
  CHECK(op::any_op(linear{512}).hash() == 0xf8ad0232d3a25207ull);
  CHECK(op::any_op(linear{.out = 512, .to = axis("hidden")}).hash() == 0x71bbc3496e0062afull);
  std::set<u64> seen;
  for (i64 i = 0; i < 5000; ++i) seen.insert(op::any_op(linear{i}).hash());
  CHECK(seen.size() == 5000);
}
