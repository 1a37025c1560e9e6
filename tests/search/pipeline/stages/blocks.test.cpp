// tests/search/pipeline/stages/blocks.test.cpp - branches in groups: every way to group them comes about, and groups border on what they
// should
#include "stage_oracle.hpp"
#include "support/effort.hpp"
#include <doctest/doctest.h>
#include <tensorpar/search/pipeline/stages/blocks.hpp>

using namespace tensorpar;
using namespace tensorpar::search;
using namespace tests;
using search::detail::branch_states;
using search::detail::stage_tree;
using search::detail::states_of;

namespace {

/// Operators and tensors that hardly differ, so that many branches are equal.
stage_problem plain_problem(random_source& r, lists const& g) {
  std::vector<operator_numbers> ops(g.size(), operator_numbers{1, 1, 0, 0, 0, 0, 1, 0});
  std::vector<double> bytes(g.size(), 1);
  for (std::size_t v = 0; v < g.size(); ++v) {
    if (r.chance(5)) ops[v].forward = 2;
    if (r.chance(5)) bytes[v] = 2;
  }
  return {g, additive_stages(ops, tensors_of(g, bytes), tensorpar::search::stage_devices::equal(2), {.mini_batch = 4}), text(g)};
}

/// Leaves in a row, short branches side by side, a leaf: with implied edges, equal branches may read different tensors of the row.
graph::sp_tree random_fork(random_source& r, int n) {
  graph::sp_expr e;
  std::vector<int> const name = r.permutation(n);
  std::vector<int> row, branches;
  int used = 0;
  auto const leaf = [&] { return e.leaf(name[at(used++)]); };
  for (int k = r.below(5); k > 0 && used + 3 < n; --k) row.push_back(leaf());
  int const length = 1 + r.below(2);
  while (n - used > length) {
    std::vector<int> branch;
    while (static_cast<int>(branch.size()) < length) branch.push_back(leaf());
    branches.push_back(length == 1 ? branch[0] : e.compose(graph::sp_kind::series, branch));
  }
  if (!branches.empty()) row.push_back(branches.size() == 1 ? branches[0] : e.compose(graph::sp_kind::parallel, branches));
  while (used < n) row.push_back(leaf());
  return graph::normalise(e, row.size() == 1 ? row[0] : e.compose(graph::sp_kind::series, row));
}
graph::sp_tree random_tree(random_source& r, int n) { return r.chance(50) ? random_sp_tree(r, n) : random_fork(r, n); }

/// A random problem on a tree, prepared.
struct prepared {
  stage_problem p;
  stage_tree tree;
  prepared(random_source& r, graph::sp_tree const& t, int n, bool plain)
      : p(plain ? plain_problem(r, graph_of(t, n, &r, 50)) : random_stage_problem(r, graph_of(t, n, &r, 30), {})),
        tree(t, p.model.tensors(), n, [&](int v) { return p.model.kind(v); }) {}
  std::vector<int> blocks() const {
    std::vector<int> b;
    for (int e = 0; e < tree.tree().size(); ++e)
      if (tree.is_block(e)) b.push_back(e);
    return b;
  }
  unsigned bits(std::vector<int> const& branches) const {
    unsigned b = 0;
    for (int c : branches)
      for (int i = tree.lo(c); i < tree.hi(c); ++i) b |= 1u << tree.order()[at(i)];
    return b;
  }
};

/// What the moves from all branches to none say, one way after another: the groups that each way makes, as numbers, ascending.
std::multiset<std::vector<int>> ways(branch_states const& s) {
  std::multiset<std::vector<int>> r;
  std::vector<int> so_far;
  std::function<void(int)> go = [&](int state) {
    if (state == 0) {
      auto x = so_far;
      std::sort(x.begin(), x.end());
      r.insert(x);
      return;
    }
    for (auto const& m : s.moves[at(state)]) {
      so_far.push_back(m.group);
      go(m.before);
      so_far.pop_back();
    }
  };
  go(s.states - 1);
  return r;
}

/// The class of each branch: branches are numbered class by class.
std::vector<int> classes_in_order(branch_states const& s) {
  std::vector<int> r;
  for (std::size_t c = 0; c < s.count.size(); ++c) r.insert(r.end(), at(s.count[c]), static_cast<int>(c));
  return r;
}

/// Leaves side by side, nothing around them: so many of each kind.
branch_states side_by_side(std::vector<int> const& counts) {
  graph::sp_expr e;
  std::vector<int> all, kind;
  for (std::size_t k = 0; k < counts.size(); ++k)
    for (int i = 0; i < counts[k]; ++i) {
      all.push_back(e.leaf(static_cast<int>(kind.size())));
      kind.push_back(static_cast<int>(k));
    }
  std::vector<stage_tensor> const none;
  stage_tree const t(normalise(e, e.compose(graph::sp_kind::parallel, all)), none, static_cast<int>(kind.size()),
                     [&](int v) { return kind[at(v)]; });
  return states_of(t, t.root());
}

}  // namespace

TEST_CASE("a state is how many branches of each class: each combination has one number") {
  random_source r{1};
  int equal = 0;
  for (int round = 0; round < test_effort::cases(200); ++round) {
    int const n = 2 + r.below(8);
    prepared const x(r, random_tree(r, n), n, round % 2 == 1);
    for (int b : x.blocks()) {
      branch_states const s = states_of(x.tree, b);
      INFO(x.p.text, " tree ", to_string(x.tree.tree()));
      REQUIRE_FALSE(s.in_order);
      std::vector<int> branches = s.ordered, parts(x.tree.tree().parts(b).begin(), x.tree.tree().parts(b).end());
      std::sort(branches.begin(), branches.end());
      std::sort(parts.begin(), parts.end());
      CHECK(branches == parts);
      std::set<std::vector<int>> seen;
      int all = 1;
      for (int c : s.count) all *= c + 1;
      for (int i = 0; i < s.states; ++i) {
        auto const d = s.digits(i);
        REQUIRE(d.size() == s.count.size());
        for (std::size_t c = 0; c < d.size(); ++c) CHECK((d[c] >= 0 && d[c] <= s.count[c]));
        seen.insert(d);
      }
      CHECK(static_cast<int>(seen.size()) == all);
      CHECK(s.states == all);
      CHECK(s.digits(0) == std::vector<int>(s.count.size(), 0));
      CHECK(s.digits(all - 1) == s.count);
      equal += s.count.size() < branches.size();
    }
  }
  CHECK(equal > test_effort::cases(200) / 20);
}

TEST_CASE("moves make every partition of the branches into groups; where no two are equal, once") {
  random_source r{2};
  int equal = 0, distinct = 0;
  for (int round = 0; round < test_effort::cases(150); ++round) {
    int const n = 2 + r.below(6);
    prepared const x(r, random_tree(r, n), n, round % 2 == 1);
    for (int b : x.blocks()) {
      branch_states const s = states_of(x.tree, b);
      INFO(x.p.text, " tree ", to_string(x.tree.tree()));
      auto const of = classes_in_order(s);
      std::set<std::vector<int>> want;
      auto const partitions = set_partitions(static_cast<int>(of.size()));
      for (auto const& groups : partitions) {  // a group is the number of its state, which says how many of each class
        std::vector<int> numbers;
        for (unsigned g : groups) {
          std::vector<int> d(s.count.size(), 0);
          for (std::size_t i = 0; i < of.size(); ++i) d[at(of[i])] += static_cast<int>(g >> i & 1);
          int state = 0;
          while (s.digits(state) != d) ++state;
          numbers.push_back(s.group_of_state(state));
        }
        std::sort(numbers.begin(), numbers.end());
        want.insert(numbers);
      }
      auto const got = ways(s);
      REQUIRE(std::set<std::vector<int>>(got.begin(), got.end()) == want);
      bool const no_two = s.count.size() == of.size();
      if (no_two) CHECK(got.size() == partitions.size());
      ++(no_two ? distinct : equal);
    }
  }
  CHECK(equal > test_effort::cases(150) / 10);
  CHECK(distinct > test_effort::cases(150) / 10);
}

TEST_CASE("a move takes away its group, and says how many branches that is and of which class a single one is") {
  random_source r{3};
  for (int round = 0; round < test_effort::cases(150); ++round) {
    int const n = 2 + r.below(8);
    prepared const x(r, random_tree(r, n), n, round % 2 == 1);
    for (int b : x.blocks()) {
      branch_states const s = states_of(x.tree, b);
      INFO(x.p.text, " tree ", to_string(x.tree.tree()));
      CHECK(s.moves[0].empty());
      for (int state = 1; state < s.states; ++state)
        for (auto const& m : s.moves[at(state)]) {
          auto const &group = s.groups[at(m.group)].children, all = s.digits(state), left = s.digits(m.before);
          REQUIRE(m.size == static_cast<int>(group.size()));
          REQUIRE(m.size > 0);
          for (std::size_t c = 0; c < all.size(); ++c) {
            auto const& of_class = x.tree.classes(b)[c].children;
            auto const taken = std::count_if(group.begin(), group.end(), [&](int child) {
              return std::find(of_class.begin(), of_class.end(), child) != of_class.end();
            });
            REQUIRE(all[c] - left[c] == taken);
            if (m.size == 1) REQUIRE((taken == 1) == (m.one == static_cast<int>(c)));
          }
        }
    }
  }
}

TEST_CASE("a group borders on what the definition says, whichever of equal branches it has") {
  random_source r{4};
  int others = 0;
  for (int round = 0; round < test_effort::cases(800); ++round) {
    int const n = 2 + r.below(8);
    prepared const x(r, random_tree(r, n), n, round % 2 == 1);
    for (int b : x.blocks()) {
      branch_states const s = states_of(x.tree, b);
      INFO(x.p.text, " tree ", to_string(x.tree.tree()));
      for (int state = 1; state < s.states; ++state) {
        search::detail::branch_group const& g = s.groups[at(s.group_of_state(state))];
        REQUIRE(g.border == oracle_border(x.p.model, x.bits(g.children)));
        std::vector<int> chosen;
        auto const d = s.digits(state);
        for (std::size_t c = 0; c < d.size(); ++c) {
          auto const& of_class = x.tree.classes(b)[c].children;
          auto const name = r.permutation(static_cast<int>(of_class.size()));
          for (int i = 0; i < d[c]; ++i) chosen.push_back(of_class[at(name[at(i)])]);
        }
        REQUIRE(g.border == oracle_border(x.p.model, x.bits(chosen)));
        others += x.bits(chosen) != x.bits(g.children);
        // intervals: as many operators of each kind as the branches have
        std::multiset<int> by_interval, by_branch;
        for (auto const& i : g.intervals)
          for (int k = i.lo; k < i.hi; ++k)
            for (int t = 0; t < i.times; ++t) by_interval.insert(x.p.model.kind(x.tree.order()[at(k)]));
        for (int v = 0; v < n; ++v)
          if (x.bits(chosen) >> v & 1) by_branch.insert(x.p.model.kind(v));
        REQUIRE(by_interval == by_branch);
      }
    }
  }
  CHECK(others > test_effort::cases(800) / 20);
}

TEST_CASE("more than 512 states: branches in their order, groups of neighbours, each division into runs once") {
  random_source r{5};
  for (int n : {10, 11}) {  // 2^10 sets
    graph::sp_expr e;
    std::vector<int> branches;
    auto const name = r.permutation(2 * n + 2);
    for (int i = 0; i < n; ++i)
      branches.push_back(e.compose(graph::sp_kind::series, std::vector<int>{e.leaf(name[at(2 * i)]), e.leaf(name[at(2 * i + 1)])}));
    int const block = e.compose(graph::sp_kind::parallel, branches), all = 2 * n + 2;
    std::vector<int> const whole{e.leaf(name[at(2 * n)]), block, e.leaf(name[at(2 * n + 1)])};
    prepared const x(r, graph::normalise(e, e.compose(graph::sp_kind::series, whole)), all, false);
    branch_states const s = states_of(x.tree, x.blocks().front());
    REQUIRE(s.count.size() == at(n));
    REQUIRE(s.in_order);
    REQUIRE(s.states == n + 1);
    REQUIRE(s.ordered.size() == at(n));
    std::set<std::vector<unsigned>> seen;
    std::vector<unsigned> so_far;
    int count = 0;
    std::function<void(int)> go = [&](int state) {
      if (state == 0) {
        ++count;
        seen.insert(so_far);
        return;
      }
      for (auto const& m : s.moves[at(state)]) {
        REQUIRE(m.before == state - m.size);
        std::vector<int> group(s.ordered.begin() + m.before, s.ordered.begin() + state);
        if (m.size == 1) {
          REQUIRE(m.group == -1);
          REQUIRE(m.one == m.before);
        } else {
          search::detail::branch_group const& g = s.groups[at(m.group)];
          REQUIRE(std::is_permutation(group.begin(), group.end(), g.children.begin(), g.children.end()));
          unsigned by_interval = 0;
          for (auto const& i : g.intervals)
            for (int k = i.lo; k < i.hi; ++k) by_interval |= 1u << x.tree.order()[at(k)];
          REQUIRE(by_interval == x.bits(group));
          for (auto const& i : g.intervals) REQUIRE(i.times == 1);
          REQUIRE(g.border == oracle_border(x.p.model, x.bits(group)));
        }
        so_far.push_back(x.bits(group));
        go(m.before);
        so_far.pop_back();
      }
    };
    go(s.states - 1);
    CHECK(count == 1 << (n - 1));
    CHECK(static_cast<int>(seen.size()) == count);
  }
}

TEST_CASE("512 states are not too many, one more is; however many, the number does not overflow") {
  auto const states = [](std::vector<int> const& counts, bool in_order) {
    branch_states const s = side_by_side(counts);
    CHECK(s.in_order == in_order);
    return s.states;
  };
  CHECK(states(std::vector<int>(9, 1), false) == 512);
  CHECK(states({7, 7, 7}, false) == 512);
  CHECK(states({511}, false) == 512);
  CHECK(states({26, 18}, true) == 45);  // 27 * 19 = 513 sets
  CHECK(states({7, 7, 8}, true) == 23);
  for (int n : {31, 32, 33, 63, 64, 65, 100}) CHECK(states(std::vector<int>(at(n), 1), true) == n + 1);
}
