// tests/typed/text.test.cpp - texts made by the compiler say what texts made at run time say, and are cut where they are told
#include <tensorpar/typed/text.hpp>
#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <tensorpar/op/core/spelling.hpp>

using namespace tensorpar;
using detail::text;

namespace {
constexpr axis rows{"rows"}, features{"features"};
static_assert(text{}.put("linear").put('(').put(i64{-12}).put(')').view() == "linear(-12)");
static_assert(text{}.put(shape{rows, features(784)}).view() == "[rows,features=784]");

std::string of(auto const& x) { return std::string(text{}.put(x).view()); }
}  // namespace

TEST_CASE("numbers, names and nothing at all") {
  for (i64 n : {i64{0}, i64{7}, i64{-7}, i64{1234567890123}, std::numeric_limits<i64>::max(), std::numeric_limits<i64>::min()})
    CHECK(of(n) == std::to_string(n));
  CHECK(of(axis("abc_xyz_0189")) == "abc_xyz_0189");
  CHECK(of(axis{}) == "");
  CHECK(of(static_cast<char const*>(nullptr)) == "");
  CHECK(of(label("sparse", 12)) == "sparse.12");
  CHECK(of(label("dense")) == "dense");
}

TEST_CASE("shapes read as they do at run time") {
  for (shape const& s : {shape{}, shape{4, 8}, shape{rows, 8}, shape{rows, features(16)}, shape{rows, features(16)}.of(dtype::i32),
                         shape{dim(3), features(2)}.of(dtype::i64)})
    CHECK(of(s) == op::spell(s));
}

TEST_CASE("a place is a file's own name and a line; of a long name the end") {
  CHECK(of(op::place{"/home/somebody/models/mlp.cpp", 15}) == "mlp.cpp:15");
  CHECK(of(op::place{"mlp.cpp", 3}) == "mlp.cpp:3");
  CHECK(of(op::place{nullptr, 0}) == ":0");
  std::string const name(40, 'a');
  std::string const file = "src/" + name + "b.cpp";
  CHECK(of(op::place{file.c_str(), 1}) == std::string(25, 'a') + "b.cpp:1");
}

TEST_CASE("what does not fit is cut, and the cut is seen") {
  std::string const full(text::capacity, 'x');
  CHECK(of(full.c_str()) == full);
  std::string const cut = of((full + "y").c_str());
  CHECK(cut.size() == full.size());
  CHECK(cut == full.substr(1) + "~");
  CHECK(text{}.put(full.c_str()).put(shape{4}).view().ends_with('~'));
}

TEST_CASE("the subject of a complaint is the operator, or what stands for it, with its name") {
  model_complaint c{};
  CHECK(detail::subject(c, "input").view() == "input");
  c.name = label("x", 2);
  CHECK(detail::subject(c, "input").view() == "input(x.2)");
}
