// tests/search/intra/nested_forks.test.cpp - branches that fork again, and searches that must not trust an order of devices then
#include <tensorpar/search/intra/nested_forks.hpp>

#include <doctest/doctest.h>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/search/intra/part_list.hpp>

using namespace tensorpar;

namespace {
/// A chain, a fork of two branches, or branches that fork again.
computation_graph forked(int depth) {
  computation_graph g;
  int const x = g.add_input("x", {dim(4), dim(4)});
  auto const tower = [&](auto const& self, int from, int left) -> int {
    int const begin = g.node(g.add(relu{}, {from})).out[0];
    if (left == 0) return begin;
    int const a = self(self, begin, left - 1), b = self(self, begin, left - 1);
    return g.node(g.add(add{}, {a, b})).out[0];
  };
  g.add_output("y", tower(tower, x, depth));
  return g;
}
}  // namespace

TEST_CASE("nested forks: a chain and forks one after another have none") {
  CHECK_FALSE(search::detail::has_nested_forks(forked(0)));
  CHECK_FALSE(search::detail::has_nested_forks(forked(1)));
  CHECK(search::detail::has_nested_forks(forked(2)));
  computation_graph g = forked(1);
  int x = g.output("y");
  for (int i = 0; i < 2; ++i) {                                              // fork after fork
    int const a = g.node(g.add(relu{}, {x})).out[0], b = g.node(g.add(gelu{}, {x})).out[0];
    x = g.node(g.add(add{}, {a, b})).out[0];
  }
  CHECK_FALSE(search::detail::has_nested_forks(g));
  computation_graph n;                                                       // not series-parallel: a, b; c = a + b, d = a; c + d, b + d
  int const i = n.add_input("x", {dim(4), dim(4)});
  auto const one = [&](auto const& op, std::vector<value_id> in) { return n.node(n.add(op, std::move(in))).out[0]; };
  int const s = one(relu{}, {i}), a = one(relu{}, {s}), b = one(gelu{}, {s}), c = one(add{}, {a, b}), d = one(relu{}, {a});
  one(add{}, {one(add{}, {c, d}), one(add{}, {b, d})});
  CHECK(search::detail::has_nested_forks(n));
}

TEST_CASE("nested forks: a fork of many branches is searched as forks of forks") {
  for (int n : {2, 32, 33, 100}) {
    computation_graph g;
    int const x = g.add_input("x", {dim(4), dim(4)}), begin = g.node(g.add(relu{}, {x})).out[0];
    std::vector<value_id> ends;
    for (int i = 0; i < n; ++i) ends.push_back(g.node(g.add(relu{}, {begin})).out[0]);
    g.add_output("y", g.node(g.add(concat{1}, ends)).out[0]);
    CHECK(search::detail::has_nested_forks(g) == (n > 32));
  }
}

TEST_CASE("nested forks: of several kinds every part counts then, and nothing is said of devices that are no neighbours") {
  device_kind const fast{"fast", 2e12, 2e11, i64{1} << 34, 1e-6}, slow{"slow", 1e12, 1e11, i64{1} << 34, 1e-6};
  machine const mixed{"mixed", {fast, slow}, {0, 1, 0, 1}, {{"net", 4, 1e-6, 1e10}}};
  for (bool nested : {false, true}) {
    search::detail::part_list const list = search::detail::parts_of(mixed, {1, 2}, nested);
    CHECK(list.neighbours);
    CHECK(list.every != nested);
    for (search::detail::machine_part const& p : list.parts) CHECK(p.counts == nested);
    machine equal = mixed;
    equal.device = {0, 0, 0, 0};
    CHECK(search::detail::parts_of(equal, {1, 2}, nested).every);
  }
}
