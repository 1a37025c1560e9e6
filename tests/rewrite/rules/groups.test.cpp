// tests/rewrite/rules/groups.test.cpp - every generated group is shipped whole and in order, and no other
#include <tensorpar/rewrite/rules/activated.hpp>
#include <tensorpar/rewrite/rules/attention.hpp>
#include <tensorpar/rewrite/rules/attentionsharded.hpp>
#include <tensorpar/rewrite/rules/batchedmatmul.hpp>
#include <tensorpar/rewrite/rules/concat.hpp>
#include <tensorpar/rewrite/rules/convolution.hpp>
#include <tensorpar/rewrite/rules/elementwise.hpp>
#include <tensorpar/rewrite/rules/embedding.hpp>
#include <tensorpar/rewrite/rules/heads.hpp>
#include <tensorpar/rewrite/rules/linear.hpp>
#include <tensorpar/rewrite/rules/matmul.hpp>
#include <tensorpar/rewrite/rules/matmulsharded.hpp>
#include <tensorpar/rewrite/rules/normalisation.hpp>
#include <tensorpar/rewrite/rules/pooling.hpp>
#include <tensorpar/rewrite/rules/spreads.hpp>
#include <tensorpar/rewrite/rules/sum.hpp>
#include <tensorpar/rewrite/rules/transpose.hpp>
#include <tensorpar/rewrite/shipped_rule.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <tensorpar/rewrite/rules/standard_rules.hpp>

using namespace tensorpar;

namespace {
// The group is shipped in one piece, and its rules' names tell the family of terms that they were found in.
template <std::size_t N> void whole(shipped_rule const (&group)[N], std::string const& family) {
  CAPTURE(family);
  auto const all = shipped_rules();
  auto const same = [](shipped_rule const& a, shipped_rule const& b) {
    return a.name == b.name && a.text == b.text && a.axioms == b.axioms;
  };
  CHECK(std::search(all.begin(), all.end(), std::begin(group), std::end(group), same) != all.end());
  for (shipped_rule const& s : group) CHECK(s.name.find(family) != s.name.npos);
}
}  // namespace

TEST_CASE("groups are shipped whole, under the names of their families") {
  whole(rules::activated, "activated");
  whole(rules::attention, "attention");
  whole(rules::attention_sharded, "attention");
  whole(rules::batched_matmul, "batched matmul");
  whole(rules::concat, "concat");
  whole(rules::convolution, "convolution");
  whole(rules::element_wise, "element-wise");
  whole(rules::embedding, "embedding");
  whole(rules::heads, "heads");
  whole(rules::linear, "linear");
  whole(rules::matmul, "matmul");
  whole(rules::matmul_sharded, "matmul");
  whole(rules::pooling, "pooling");
  whole(rules::spreads, "spreads");
  whole(rules::sum, "sum");
  whole(rules::transpose, "transpose");
}

TEST_CASE("normalisation is of two families") {
  bool layers = false, softmaxes = false;
  for (shipped_rule const& s : rules::normalisation) {
    CHECK(s.name.starts_with("layer norm") != s.name.starts_with("softmax"));
    (s.name.starts_with("softmax") ? softmaxes : layers) = true;
  }
  CHECK(layers);
  CHECK(softmaxes);
}

TEST_CASE("what brings parallel operators in is apart where a group is large") {
  auto const sharded = [](shipped_rule const& s) { return s.name.ends_with(", spread"); };
  CHECK(std::ranges::all_of(rules::attention_sharded, sharded));
  CHECK(std::ranges::all_of(rules::matmul_sharded, sharded));
  CHECK(std::ranges::none_of(rules::attention, sharded));
  CHECK(std::ranges::none_of(rules::matmul, sharded));
}

TEST_CASE("rules about shardings change no operator") {
  for (shipped_rule const& s : rules::spreads) CHECK(s.kind == rule_kind::parallel);
}

TEST_CASE("no group is shipped that this file does not know") {
  std::size_t const known = std::size(rules::activated) + std::size(rules::attention) + std::size(rules::attention_sharded) +
                            std::size(rules::batched_matmul) + std::size(rules::matmul_sharded) +
                            std::size(rules::concat) +
                            std::size(rules::convolution) + std::size(rules::element_wise) + std::size(rules::embedding) +
                            std::size(rules::heads) + std::size(rules::linear) + std::size(rules::matmul) +
                            std::size(rules::normalisation) + std::size(rules::pooling) + std::size(rules::spreads) +
                            std::size(rules::sum) + std::size(rules::transpose);
  CHECK(shipped_rules().size() == known);
}
