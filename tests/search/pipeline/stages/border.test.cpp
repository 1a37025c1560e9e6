// tests/search/pipeline/stages/border.test.cpp - what crosses the border of sets that grow, and of branches with what follows them
#include "stage_oracle.hpp"
#include "support/effort.hpp"
#include <doctest/doctest.h>
#include <tensorpar/search/pipeline/stages/border.hpp>
#include <tensorpar/search/pipeline/stages/joins.hpp>

using namespace tensorpar;
using namespace tensorpar::search;
using namespace tests;

namespace {
void check_border(stage_border const& a, stage_border const& b) {
  CHECK(a.in == doctest::Approx(b.in));
  CHECK(a.out == doctest::Approx(b.out));
  CHECK(a.tensors_in == b.tensors_in);
  CHECK(a.tensors_out == b.tensors_out);
}
}  // namespace

TEST_CASE("a border counter agrees with the definition after every operator that is added, and after it is cleared") {
  random_source r{1};
  for (int turn = 0; turn < test_effort::cases(300); ++turn) {
    int const n = 1 + r.below(10);
    stage_problem const p = random_stage_problem(r, random_dag(r, n, 40), {});
    search::detail::tensor_uses const uses(p.model.tensors(), n);
    search::detail::border_counter c(uses);
    for (int again = 0; again < 2; ++again) {
      unsigned inside = 0;
      check_border(c.value(), {});
      for (int v : r.permutation(n)) {
        c.add(v);
        inside |= 1u << v;
        check_border(c.value(), oracle_border(p.model, inside));
      }
      c.clear();
    }
  }
}

TEST_CASE("branches, or the ends of branches, with any run of parts behind their block") {
  random_source r{2};
  int groups = 0, ends = 0;
  for (int turn = 0; turn < test_effort::cases(300); ++turn) {
    int const n = 4 + r.below(8);
    graph::sp_tree const t = random_sp_tree(r, n);
    stage_problem const p = random_stage_problem(r, graph_of(t, n, &r, 30), {.alike = 30});
    search::detail::stage_tree const tree(t, p.model.tensors(), n, [&](int v) { return p.model.kind(v); });
    search::detail::stage_blocks prepared(tree);
    auto bits = [&](int lo, int hi) {
      unsigned b = 0;
      for (int i = lo; i < hi; ++i) b |= 1u << tree.order()[at(i)];
      return b;
    };
    for (int e = 0; e < tree.tree().size(); ++e) {
      if (tree.tree().kind(e) != graph::sp_kind::series) continue;
      auto const& parts = tree.series(e);
      for (int q = 0; q + 1 < static_cast<int>(parts.size()); ++q) {
        int const block = parts[at(q)];
        if (!tree.is_block(block) || prepared.states(block).in_order) continue;
        search::detail::block_joins const& joins = prepared.joins(e, q);
        for (int j = q + 2; j <= static_cast<int>(parts.size()); ++j) {
          unsigned const after = bits(tree.lo(parts[at(q + 1)]), tree.hi(parts[at(j - 1)]));
          auto const& all = prepared.states(block).groups;
          for (std::size_t g = 0; g < all.size(); ++g, ++groups) {
            unsigned b = after;
            for (int c : all[g].children) b |= bits(tree.lo(c), tree.hi(c));
            check_border(joins.border(prepared.groups(e, q)[g], j), oracle_border(p.model, b));
          }
          for (auto const& c : tree.classes(block))
            for (bool every : {false, true})
              for (int k = 0; k < static_cast<int>(tree.series(c.children.front()).size()); ++k, ++ends) {
                unsigned b = after;
                for (int child : c.children) {
                  auto const& own = tree.series(child);
                  b |= bits(tree.lo(own[at(k)]), tree.hi(own.back()));
                  if (!every) break;
                }
                check_border(joins.border(prepared.ends(e, q, c, every)[at(k)], j), oracle_border(p.model, b));
              }
        }
      }
    }
  }
  CHECK(groups > test_effort::cases(100));
  CHECK(ends > test_effort::cases(100));
}
