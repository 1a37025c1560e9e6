// tests/search/problem/layout_lists.test.cpp - lists of layouts against each layout by itself, and choices that are alike against their
// parts
#include <tensorpar/search/problem/layout_lists.hpp>
#include <doctest/doctest.h>

#include <set>
#include <tensorpar/op/kinds/contraction.hpp>
#include <tensorpar/op/kinds/pointwise.hpp>
#include <tensorpar/search/problem/layout_prices.hpp>
#include <tensorpar/search/problem/shardings.hpp>

using namespace tensorpar;
using namespace tensorpar::search;

namespace {
std::vector<int> one_by_one(std::vector<ir::sharding> const& all, ir::iteration_space const& own, std::string const& letters, int port,
                            bool result, std::vector<ir::layout>& seen) {
  std::vector<int> r;
  for (ir::sharding const& s : all) {
    ir::layout const l = result ? result_layout(own, letters, s, port) : operand_layout(own, letters, s, port);
    std::size_t i = 0;
    while (i < seen.size() && !(seen[i] == l)) ++i;
    if (i == seen.size()) seen.push_back(l);
    r.push_back(static_cast<int>(i));
  }
  return r;
}
}  // namespace

TEST_CASE("every operand and result has the layouts that it has by itself, and those that are alike share a list") {
  shape const x{8, 12}, w{6, 12}, y{8, 6};
  ir::iteration_space const forward = ir::space_of(linear{6, false}, {x, w}, {y});
  auto const all = legal_shardings(forward, 2, 12, 16, {});
  std::string loops;
  for (ir::node_loop const& l : forward.loops) loops.push_back(l.letter);
  layout_lists lists;
  std::vector<ir::layout> seen;
  auto const id = [&](ir::layout const& l) {
    std::size_t i = 0;
    while (i < seen.size() && !(seen[i] == l)) ++i;
    if (i == seen.size()) seen.push_back(l);
    return static_cast<int>(i);
  };
  std::set<std::vector<int> const*> different;
  int slots = 0;
  auto const check = [&](ir::iteration_space const& own, std::string const& letters, int ins) {
    for (int k = 0; k <= ins; ++k) {
      bool const result = k == ins;
      int const port = result ? 0 : k;
      auto const& got = lists.at(all, loops, own, letters, port, result, id);
      CHECK(got == one_by_one(all, own, letters, port, result, seen));
      different.insert(&got);
      ++slots;
    }
  };
  check(forward, "", 2);
  check(forward, "", 2);
  // the gradient of the weight, an operator over the same loops by other letters, and one that follows none but the samples
  ir::iteration_space const weight = ir::space_of(contraction("bo,bi->oi"), {y, x}, {w});
  std::string letters;
  for (ir::node_loop const& l : weight.loops) letters.push_back(l.letter == 'b' ? forward.loops[0].letter : l.letter);
  check(weight, letters, 2);
  ir::iteration_space const pointwise = ir::space_of(relu{}, {y}, {y});
  check(pointwise, std::string(pointwise.loops.size(), forward.loops[0].letter), 1);
  CHECK(static_cast<int>(different.size()) < slots);
  CHECK(different.size() > 4);
  std::vector<int> const other{1, 2, 3};
  CHECK(lists.add(other) == other);
}

TEST_CASE("alike are the choices that split all loops in equally many parts: their parts are equal, and no others") {
  shape const x{8, 12}, w{6, 12}, y{8, 6};
  ir::iteration_space const own = ir::space_of(linear{6, false}, {x, w}, {y});
  auto const all = legal_shardings(own, 0, 12, 12, {});
  std::string loops;
  for (ir::node_loop const& l : own.loops) loops.push_back(l.letter);
  layout_lists lists;
  auto const& alike = lists.alike(all, loops);
  REQUIRE(alike.size() == all.size());
  std::map<std::vector<i64>, int> number;
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::vector<i64> parts;
    for (int k = 0; k < 3; ++k) {
      shape const p = ir::part_of(k < 2 ? ir::operand_layout(own, "", all[i], k) : ir::result_layout(own, "", all[i], 0),
                                  k == 0 ? x : k == 1 ? w : y);
      for (int d = 0; d < p.rank; ++d) parts.push_back(p.d[d].n);
    }
    CHECK(alike[i] == number.try_emplace(parts, static_cast<int>(number.size())).first->second);
  }
  CHECK(lists.kinds() == static_cast<int>(number.size()));
  CHECK(lists.kinds() < static_cast<int>(all.size()));
}
