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
template <std::size_t N> void whole(rewrite::shipped_rule const (&group)[N], std::string const& family) {
  CAPTURE(family);
  auto const all = rewrite::shipped_rules();
  auto const same = [](rewrite::shipped_rule const& a, rewrite::shipped_rule const& b) {
    return a.name == b.name && a.text == b.text && a.axioms == b.axioms;
  };
  CHECK(std::search(all.begin(), all.end(), std::begin(group), std::end(group), same) != all.end());
  for (rewrite::shipped_rule const& s : group) CHECK(s.name.find(family) != s.name.npos);
}
}  // namespace

TEST_CASE("groups are shipped whole, under the names of their families") {
  whole(rewrite::rules::activated, "activated");
  whole(rewrite::rules::attention, "attention");
  whole(rewrite::rules::attention_sharded, "attention");
  whole(rewrite::rules::batched_matmul, "batched matmul");
  whole(rewrite::rules::concat, "concat");
  whole(rewrite::rules::convolution, "convolution");
  whole(rewrite::rules::element_wise, "element-wise");
  whole(rewrite::rules::embedding, "embedding");
  whole(rewrite::rules::heads, "heads");
  whole(rewrite::rules::linear, "linear");
  whole(rewrite::rules::matmul, "matmul");
  whole(rewrite::rules::matmul_sharded, "matmul");
  whole(rewrite::rules::pooling, "pooling");
  whole(rewrite::rules::spreads, "spreads");
  whole(rewrite::rules::sum, "sum");
  whole(rewrite::rules::transpose, "transpose");
}

TEST_CASE("normalisation is of two families") {
  bool layers = false, softmaxes = false;
  for (rewrite::shipped_rule const& s : rewrite::rules::normalisation) {
    CHECK(s.name.starts_with("layer norm") != s.name.starts_with("softmax"));
    (s.name.starts_with("softmax") ? softmaxes : layers) = true;
  }
  CHECK(layers);
  CHECK(softmaxes);
}

TEST_CASE("what brings parallel operators in is apart where a group is large") {
  auto const sharded = [](rewrite::shipped_rule const& s) { return s.name.ends_with(", spread"); };
  CHECK(std::ranges::all_of(rewrite::rules::attention_sharded, sharded));
  CHECK(std::ranges::all_of(rewrite::rules::matmul_sharded, sharded));
  CHECK(std::ranges::none_of(rewrite::rules::attention, sharded));
  CHECK(std::ranges::none_of(rewrite::rules::matmul, sharded));
}

TEST_CASE("rules about shardings change no operator") {
  for (rewrite::shipped_rule const& s : rewrite::rules::spreads) CHECK(s.kind == rewrite::rule_kind::parallel);
}

TEST_CASE("no group is shipped that this file does not know") {
  std::size_t const known = std::size(rewrite::rules::activated) + std::size(rewrite::rules::attention)
      + std::size(rewrite::rules::attention_sharded) +
                            std::size(rewrite::rules::batched_matmul) + std::size(rewrite::rules::matmul_sharded) +
                            std::size(rewrite::rules::concat) +
                            std::size(rewrite::rules::convolution) + std::size(rewrite::rules::element_wise)
                                + std::size(rewrite::rules::embedding) +
                            std::size(rewrite::rules::heads) + std::size(rewrite::rules::linear) + std::size(rewrite::rules::matmul) +
                            std::size(rewrite::rules::normalisation) + std::size(rewrite::rules::pooling)
                                + std::size(rewrite::rules::spreads) +
                            std::size(rewrite::rules::sum) + std::size(rewrite::rules::transpose);
  CHECK(rewrite::shipped_rules().size() == known);
}
