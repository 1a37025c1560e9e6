// tests/search/solve/branches.test.cpp - branches between forks and joins: against the dynamic program over all structures
#include <tensorpar/search/solve/branch_alike.hpp>
#include <tensorpar/search/solve/branch_links.hpp>
#include <tensorpar/search/solve/branches.hpp>
#include <doctest/doctest.h>

#include <cmath>
#include "handmade.hpp"
#include "random_problem.hpp"
#include <support/effort.hpp>
#include <support/search_once.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/search/solve/dealt_tree.hpp>
#include <tensorpar/search/solve/exact.hpp>
#include <tensorpar/search/solve/objective.hpp>

using namespace tensorpar;
using namespace tensorpar::search;
using namespace tensorpar::search_test;

namespace {

double exact_least(mapping_problem const& p) {
  auto const r = exact_mappings(p, {false, false, 1'000'000'000});
  REQUIRE(r);
  return r->front().cost.seconds;
}
mapping_problem problem_of(recipe const& r) {
  sharding_limits l;
  l.max_axes = r.max_axes;
  l.replicas = r.replicas;
  objective_options o;
  o.grain = r.grain;
  o.micro_batches = r.micro_batches;
  return make_problem(r.build(), r.cluster(), arbitrary_model{r.seed}, l, o);
}
/// Empty if the bound is one, and the assignment is as dear as the bound or dearer.
std::string verdict(recipe const& r, int* exact = nullptr) {
  mapping_problem const p = problem_of(r);
  double const want = exact_least(p);
  auto const got = map_branches(p, 100'000'000);
  if (!got) return "no answer";
  double const cost = evaluator(p)(got->choices).seconds;
  if (got->bound > want * (1 + 1e-12)) return "bound " + std::to_string(got->bound) + " above the optimum " + std::to_string(want);
  if (cost < want * (1 - 1e-12)) return "cost " + std::to_string(cost) + " below the optimum " + std::to_string(want);
  if (exact) *exact += got->bound >= want * (1 - 1e-12) && cost <= want * (1 + 1e-12);
  return {};
}
/// Towers of operators of their own, from one fork or from inputs, to one join.
recipe towers(u64 seed) {
  std::mt19937_64 g(seed);
  recipe r;
  r.seed = seed;
  r.devices = 2 + pick(g, 3);
  r.grain = pick(g, 3) ? 1 : 2;
  r.extent = {pick(g, 2) ? 4 : 6};
  r.max_axes = 1 + pick(g, 2);
  bool const fork = pick(g, 2);
  if (fork) r.nodes.push_back({{}, -1, false});
  std::vector<int> ends;
  for (int k = 0, n = 2 + pick(g, 2); k < n; ++k) {
    int last = fork ? 0 : -1;
    for (int l = 0, m = 1 + pick(g, 2); l < m; ++l) {
      recipe::node x;
      if (last >= 0) x.from = {last};
      last = static_cast<int>(r.nodes.size());
      r.nodes.push_back(x);
    }
    ends.push_back(last);
  }
  r.nodes.push_back({ends, -1, false});
  return r;
}
int apply(computation_graph& g, op::any_op const& o, std::vector<value_id> in) {
  return g.node(g.add_with_weights(o, std::move(in), {})).out[0];
}
enum class joined { at_once, as_tree, in_a_row };
/// So many layers of one input, of one width or of five, and what joins them.
computation_graph fan(int branches, joined how, bool alike) {
  computation_graph g;
  value_id const x = g.add_input("x", shape{dim(32), dim(64)}), h = apply(g, linear{64}, {x});
  std::vector<value_id> ends;
  for (int i = 0; i < branches; ++i) {
    ends.push_back(apply(g, relu{}, {apply(g, linear{alike ? 64 : 64 * (1 + i % 5)}, {h})}));
    if (!alike) ends.back() = apply(g, linear{64}, {ends.back()});
  }
  if (how == joined::at_once) ends = {apply(g, concat{1}, ends), x};
  while (how != joined::at_once && ends.size() > 1) {
    std::vector<value_id> next;
    std::size_t i = 0;
    for (; i + 1 < ends.size() && (how == joined::as_tree || i == 0); i += 2) next.push_back(apply(g, add{}, {ends[i], ends[i + 1]}));
    next.insert(next.end(), ends.begin() + static_cast<std::ptrdiff_t>(i), ends.end());
    ends = next;
  }
  int const last = apply(g, linear{64}, {ends[0]});
  g.add_output("loss", apply(g, mean_squared_error{}, {last, x}));
  return g;
}

}  // namespace

TEST_CASE("10 to 1,000 branches, at once and as a tree: answered, side by side, and with a bound or the reason why it is far") {
  for (joined how : {joined::at_once, joined::as_tree})
    for (int n : {10, 50, 200, 1000})
      for (bool alike : {true, false}) {
        if (!alike && n != 50) continue;
        CAPTURE(n);
        CAPTURE(static_cast<int>(how));
        search_options o;
        o.compare = o.reorder = o.fewer_devices = false;
        o.threads = 1;
        machine const on = make_cluster("t", {"d", 1e12, 1e11, i64{1} << 40, 1e-6}, 4, 4, {"in", 4, 1e-6, 1e10}, {});
        search_result const r = optimize(fan(n, how, alike), on, cost::analytical{}, o);
        REQUIRE(r.feasible());
        CHECK(r.bound <= r.cost.seconds);
        CHECK((r.gap < 0.4 || r.statistics.branches_left));
        if (n < 50) continue;
        int beside = 0;                                      // these layers take as long on one device as on all
        for (op_strategy const& c : r.plan.nodes) beside += c.sharding.start > 0;
        if (how == joined::as_tree) CHECK(beside > n / 2);
        o.mapping.branch_budget = 0;                         // in sequence
        if (n == 50) CHECK(r.cost.seconds < 0.98 * optimize(fan(n, how, alike), on, cost::analytical{}, o).cost.seconds);
      }
}

TEST_CASE("where points of forks are left out the bound is still one") {
  int const cases = test_effort::cases(80);
  int below = 0;
  for (int k = 0; k < cases; ++k) {
    recipe const r = k % 4 == 0 ? towers(static_cast<u64>(k) / 4) : random_recipe(static_cast<u64>(k) + 500, 5, 3);
    mapping_problem const p = problem_of(r);
    double const want = exact_least(p);
    for (std::size_t most : {1, 2, 5}) {
      auto const got = map_branches(p, 100'000'000, most);
      REQUIRE(got);
      if (got->bound > want * (1 + 1e-12)) FAIL_CHECK(r.text() << ": bound " << got->bound << " above " << want);
      double const cost = evaluator(p)(got->choices).seconds;
      if (cost < want * (1 - 1e-12)) FAIL_CHECK(r.text() << ": cost " << cost << " below " << want);
      below += got->bound < want * (1 - 1e-9);
    }
  }
  CHECK(below > 0);
}

TEST_CASE("one of all points within the factor is kept") {
  std::mt19937_64 g(3);
  for (int k = 0; k < 200; ++k) {
    search::detail::branch_points all;
    double t = 1, p = 1000;
    for (int i = 0, n = 1 + pick(g, 60); i < n; ++i) all.push_back({t += pick(g, 9) + 1.0, p -= pick(g, 9) + 1.0, i});
    search::detail::branch_points some = all;
    std::size_t const most = static_cast<std::size_t>(1 + pick(g, 20));
    double const factor = search::detail::thin(some, most);
    CHECK(some.size() <= most);
    for (search::detail::branch_point const& x : all)
      CHECK(std::any_of(some.begin(), some.end(), [&](auto const& y) { return y.t <= x.t * factor && y.p <= x.p * factor; }));
  }
}

TEST_CASE("many branches of one fork are dealt out in halves of equal work; few stand as they are") {
  for (int n : {2, 31, 32, 33, 100, 101}) {
    graph::sp_expr e;
    std::vector<int> leaves;
    for (int i = 0; i < n; ++i) leaves.push_back(e.leaf(i));
    graph::sp_tree const t = graph::normalise(e, e.compose(graph::sp_kind::parallel, leaves));
    graph::sp_binary const b = search::detail::dealt_binary(t, [](int v) { return 1 + v % 7; });
    CHECK(graph::nary(b).size() == t.size());
    if (n <= 32) CHECK(b == graph::binary(t, graph::sp_shape::left));
    else {
      CHECK(b.height() == static_cast<int>(std::ceil(std::log2(n))));
      std::vector<double> work(static_cast<std::size_t>(b.size()), 0);
      for (int i = 0; i < b.size(); ++i) {
        auto const at = [](int k) { return static_cast<std::size_t>(k); };
        work[at(i)] = b[i].kind == graph::sp_kind::leaf ? 1 + b[i].left % 7 : work[at(b[i].left)] + work[at(b[i].right)];
      }
      auto const& root = b[b.root()];
      CHECK(std::abs(work[static_cast<std::size_t>(root.left)] - work[static_cast<std::size_t>(root.right)]) <= 7);
    }
  }
}

TEST_CASE("on random problems the bound is one, and is mostly the optimum") {
  int const cases = test_effort::cases(150);
  int exact = 0;
  for (int k = 0; k < cases; ++k) {
    recipe const r = random_recipe(static_cast<u64>(k) + 500, 5, 3);
    std::string const wrong = verdict(r, &exact);
    if (wrong.empty()) continue;
    recipe const small = shrink(r, [](recipe const& x) { return !verdict(x).empty(); });
    FAIL_CHECK(small.text() << ": " << verdict(small));
  }
  CHECK(exact > cases / 2);
}

TEST_CASE("towers between a fork, or inputs, and a join: the optimum itself") {
  for (int k = 0; k < test_effort::cases(60); ++k) {
    recipe const r = towers(static_cast<u64>(k));
    CAPTURE(r.text());
    mapping_problem const p = problem_of(r);
    double const want = exact_least(p);
    auto const got = map_branches(p, 100'000'000);
    REQUIRE(got);
    CHECK(got->bound == doctest::Approx(want).epsilon(1e-12));
    CHECK(evaluator(p)(got->choices).seconds == doctest::Approx(want).epsilon(1e-12));
  }
}

TEST_CASE("what branches exchange with the join is not hidden by a longer branch") {
  // two operators side by side on a device each, 1 s and 2 s; the first pays 5 s to be joined in its fast place, none in its slow one (3 s)
  mapping_problem p = handmade(2, "S(P(0,1),2)", {{{0, 1, 1, 0}, {0, 1, 3, 0}, {1, 1, 9, 0}}, {{1, 1, 2, 0}, {0, 1, 2, 0}},
                                                  {{0, 2, 1, 0}}});
  connect(p, 0, 2, [](int i, int) { return i == 0 ? 5.0 : 0.0; });
  auto const r = map_branches(p);
  REQUIRE(r);
  CHECK(r->bound == 4);                                  // max(3, 2) + 1
  CHECK(r->choices == assignment{1, 0, 0});
  CHECK(evaluator(p)(r->choices).seconds == 4);
}

TEST_CASE("a budget that does not suffice gives nothing") {
  mapping_problem const p = problem_of(towers(3));
  CHECK(!map_branches(p, 3));
  CHECK(map_branches(p, 100'000'000));
}

TEST_CASE("forks in a row, forks at the ends, and operators that exchange tensors across them: nothing counts twice") {
  std::vector<choice> const one{{0, 1, 1, 0}};
  auto const with = [&](char const* tree, int n, std::vector<std::pair<int, int>> const& pairs) {
    mapping_problem p = handmade(1, tree, std::vector<std::vector<choice>>(static_cast<std::size_t>(n), one));
    for (auto const& [a, b] : pairs) connect(p, a, b, [](int, int) { return 5.0; });
    auto const r = map_branches(p);
    REQUIRE(r);
    CHECK(r->bound <= exact_least(p));
    CHECK(evaluator(p)(r->choices).seconds == exact_least(p));
    return r->bound;
  };
  CHECK(with("S(0,P(1,2),P(3,4),5)", 6, {{0, 3}}) == 11);
  CHECK(with("S(0,P(1,2),P(3,4),5)", 6, {{0, 5}}) == 11);
  CHECK(with("S(0,P(1,2),P(3,4),5)", 6, {{1, 3}, {2, 5}}) == 16);
  CHECK(with("S(1,0)", 2, {{0, 1}}) == 7);               // the tree's order is not the numbers'
  CHECK(with("S(P(0,1),P(2,3))", 4, {}) == 4);
  CHECK(with("P(S(0,P(1,2)),S(P(3,4),5))", 6, {{0, 1}, {3, 5}}) == 16);
}

TEST_CASE("on random trees with random reshards between any two operators the bound is one") {
  std::mt19937_64 g(21);
  int exact = 0, cases = test_effort::cases(300);
  for (int k = 0; k < cases; ++k) {
    auto const [p, text] = random_tree(g, 1);
    CAPTURE(text);
    double const want = exact_least(p);
    auto const r = map_branches(p, 100'000'000);
    REQUIRE(r);
    CHECK(r->bound <= want);
    double const cost = evaluator(p)(r->choices).seconds;
    CHECK(cost >= want);
    exact += r->bound == want && cost == want;
  }
  CHECK(exact > cases / 10);
}

TEST_CASE("along a chain the answer is that of trying every state before every choice, ties to the first state") {
  int ties = 0;
  for (u64 seed = 0; seed < static_cast<u64>(test_effort::cases(60)); ++seed) {
    recipe r;
    r.seed = seed;
    r.devices = 2 + static_cast<int>(seed % 4);
    r.extent = {seed % 2 ? 4 : 6};
    r.max_axes = 2;
    for (int k = 0, n = 2 + static_cast<int>(seed % 5); k < n; ++k) {
      recipe::node x;
      if (k > 0) x.from = {k - 1};
      r.nodes.push_back(x);
    }
    mapping_problem p = problem_of(r);
    for (choice_set& s : p.sets) for (double& x : s.seconds) x = std::floor(x / 40);          // so that there are ties
    for (pair_cost& c : p.costs) for (double& x : c.seconds) x = std::floor(x / 40);
    auto const place = [](int i) { return static_cast<std::size_t>(i); };
    std::vector<double> t{0};
    std::vector<std::vector<int>> from;
    for (int v = 0; v < p.operators(); ++v) {
      choice_set const& s = p.choices(v);
      std::vector<double> next;
      from.emplace_back();
      for (int c = 0; c < s.count(); ++c) {
        double best = infinity;
        int first = -1;
        for (std::size_t i = 0; i < t.size() && p.fits(v, c, {0, p.devices}); ++i) {
          double between = 0;
          for (operator_pair const& q : p.pairs) if (q.first == v - 1 && q.second == v) between = p.seconds(q, static_cast<int>(i), c);
          double const x = t[i] + between + s.seconds[place(c)];
          ties += x == best;
          if (x < best) { best = x; first = static_cast<int>(i); }
        }
        next.push_back(best);
        from.back().push_back(first);
      }
      t = next;
    }
    auto const least = std::min_element(t.begin(), t.end());
    assignment want(place(p.operators()), 0);
    int at = static_cast<int>(least - t.begin());
    for (int v = p.operators(); v-- > 0; at = from[place(v)][place(at)]) want[place(v)] = at;
    bool chain = true;                                          // what else there is between operators makes this another problem
    for (operator_pair const& q : p.pairs) chain = chain && q.second == q.first + 1;
    if (!chain) continue;
    auto const got = map_branches(p);
    REQUIRE(got);
    CHECK(got->bound == *least);
    CHECK(got->choices == want);
  }
  CHECK(ties > 100);
}
