// tests/search/problem/substitution_rules.test.cpp - which of the shipped rules a search of graphs may try
#include <tensorpar/search/problem/substitution_rules.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <tensorpar/op/kinds/parallel.hpp>
#include <tensorpar/search/problem/activation_sites.hpp>

using namespace tensorpar;
using namespace tensorpar::search;

namespace {
rewrite::rule read(char const* text) { return parse_rule(text, rewrite::standard_vocabulary(), "test"); }
}  // namespace

TEST_CASE("no rule that is tried names a sharding, and none leaves its source as it is") {
  auto const& all = substitution_rules();
  CHECK(all.size() > 100);
  CHECK(std::count_if(all.begin(), all.end(), [](rewrite::rule const& r) { return activates(r); }) == 8);
  for (rewrite::rule const& r : all) {
    CAPTURE(r.name);
    for (rewrite::pattern_graph const* g : {&r.source, &r.target})
      for (rewrite::pattern_node const& n : g->nodes) CHECK((!n.op || !is_parallel(*n.op)));
    CHECK(!search::detail::repeats_source(r));
    CHECK(!r.source.nodes.empty());
  }
  CHECK(search::detail::repeats_source(read("?f(x) => merge_axes{-2}(split_axis{-1,2}(?f(x)))")));
  CHECK(!search::detail::repeats_source(read("add(x, y) => add(y, x)")));
}
