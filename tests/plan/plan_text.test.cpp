// tests/plan/plan_text.test.cpp - plans as text, read and written node by node, are what they are as values; errors too
#include <tensorpar/plan/plan_text.hpp>
#include <doctest/doctest.h>

#include <plan/random_plan.hpp>
#include <random>
#include <support/cpu_seconds.hpp>
#include <support/effort.hpp>

using namespace tensorpar;

namespace {

struct outcome {
  std::optional<plan> read;
  std::string what, where, valid;
  friend bool operator==(outcome const&, outcome const&) = default;
};
template <class Read> outcome outcome_of(Read const& read) {
  try {
    return {read(), {}, {}, {}};
  } catch (error const& e) { return {std::nullopt, e.what(), e.where(), e.valid()}; }
}
/// A text that may be no plan any more: a few bytes changed, left out or said twice, most of them among the nodes.
std::string damaged(std::string text, std::mt19937& r) {
  static constexpr std::string_view bits[] = {"{", "}", "[", "]", ",", ":", "\"", "-", "1", "0", "1e0", ".5", "null", "true", "false",
                                              "\"start\":1,",
                                              "\"axes\":[],", "\"sharding\":\"none\",", "\"recompute\":true,", "\"o\"", "99999999999",
                                                  "{}"};
  std::size_t const nodes = text.find("\"nodes\"");
  for (int k = 0, n = 1 + static_cast<int>(r() % 2); k < n && !text.empty(); ++k) {
    std::size_t const from = r() % 4 && nodes < text.size() ? nodes : 0, at = from + r() % (text.size() - from);
    switch (r() % 4) {
      case 0: text.erase(at, 1 + r() % 3); break;
      case 1: text.insert(at, bits[r() % std::size(bits)]); break;
      case 2: text[at] = static_cast<char>('0' + r() % 10); break;
      default: text.insert(at, text.substr(at, r() % 20)); break;
    }
  }
  return text;
}
plan saving(std::mt19937& r) {
  plan p = test::random_plan(r);
  if (p.pipeline.empty())
    for (op_strategy& n : p.nodes) n.zero = static_cast<ir::zero_stage>(r() % 4), n.recompute = r() % 2 == 0;
  return p;
}

}  // namespace

TEST_CASE("a plan's text is that of its value") {
  std::mt19937 r(1);
  for (int turn = 0; turn < test_effort::cases(200); ++turn) {
    plan const p = saving(r);
    std::string const text = text_of(p, "t");
    CHECK(text == encode(p).dump(1) + "\n");
    CHECK(decode_plan(text, "t") == p);
    std::optional<plan> const at_once = detail::decode_at_once(text, "t");
    REQUIRE(at_once);
    CHECK(*at_once == p);
  }
}

TEST_CASE("what is no plan any more is refused as a value of it is") {
  std::mt19937 r(2);
  int refused = 0;
  for (int turn = 0; turn < test_effort::cases(3000); ++turn) {
    plan const p = saving(r);
    std::string const text = damaged(encode(p).dump(r() % 2 ? 1 : -1), r);
    CAPTURE(text);
    outcome const here = outcome_of([&] { return decode_plan(text, "t"); }),
        there = outcome_of([&] { return decode(core::parse_json(text, "t"), "t"); });
    CHECK(here == there);
    refused += !here.read;
  }
  CHECK(refused > 100);
}

TEST_CASE("a node that no plan can hold is not written") {
  plan p;
  p.cluster = make_cluster("t", {"d", 1e9, 1e9, 1 << 20, 0}, 4, 4, {"in", 4, 1e-6, 1e9}, {});
  p.reduction = loss_reduction::mean;
  for (ir::sharding const& s : {ir::sharding{-1, {}}, ir::sharding{4, {}}, ir::sharding{0, {{'-', 2, 1}}}, ir::sharding{0, {{'o', 0, 1}}},
                                ir::sharding{0, {{'o', 5, 1}}},
                          ir::sharding{1, {{'o', 4, 1}}}, ir::sharding{0, {{'o', 2, 1}, {'i', 4, 1}}}, ir::sharding{0, {{'o', 2, 8}}}}) {
    p.nodes = {{s, ir::zero_stage::none, false}};
    CHECK_THROWS_AS(text_of(p, "t"), error);
    CHECK_THROWS_AS(decode(encode(p), "t"), error);
  }
}

TEST_CASE("twice as many nodes take no more than about twice as long to write and to read") {
  plan p;
  p.cluster = make_cluster("t", {"d", 1e9, 1e9, 1 << 20, 0}, 8, 8, {"in", 8, 1e-6, 1e9}, {});
  p.reduction = loss_reduction::mean;
  auto const seconds = [&](std::size_t n) {
    p.nodes.assign(n, {{0, {{'0', 4, 2}, {'o', 2, 1}}}, ir::zero_stage::updates, true});
    return tests::cpu_seconds([&] { CHECK(decode_plan(text_of(p, "t"), "t").nodes.size() == n); });
  };
  double const some = seconds(10'000);
  CHECK(seconds(40'000) < 10 * some + 0.05);
}
