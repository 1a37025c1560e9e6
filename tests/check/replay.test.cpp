// tests/check/replay.test.cpp - sets of contributions, and what a step leaves behind
#include <tensorpar/check/replay.hpp>
#include <doctest/doctest.h>

#include <check/check_subject.hpp>
#include <set>
#include <tensorpar/check/compute.hpp>
#include <tensorpar/check/moves.hpp>

using namespace tensorpar;
using namespace tensorpar::detail::check;

TEST_CASE("contributions are sets that may not meet") {
  std::mt19937 draw(1);
  for (int turn = 0; turn < 300; ++turn) {
    i64 const all = 1 + static_cast<i64>(draw() % 200);
    auto range = [&](std::set<i64>& s) {
      i64 const from = static_cast<i64>(draw() % static_cast<unsigned>(all)), n = static_cast<i64>(draw() % static_cast<unsigned>(all - from + 1));
      for (i64 i = from; i < from + n; ++i) s.insert(i);
      return atom_range(from, n);
    };
    std::set<i64> x, y;
    atoms a = range(x), b = range(y);
    bool apart = true;
    for (i64 i : y) apart = apart && !x.count(i);
    CHECK(unite(a, b) == apart);
    x.insert(y.begin(), y.end());
    if (apart) CHECK(a == atoms(x.begin(), x.end()));
  }
}

TEST_CASE("a step that lacks its updates is a forward step; findings end a replay that has enough of them") {
  std::mt19937 draw(2);
  tests::subject s = tests::checked_step(3, draw);
  facts known(s.p.cluster.size());
  for (bool updates : {true, false}) {
    findings out(100);
    detail::check::replay(s.t, s.p, s.q, known, out).run(updates);
    CHECK(out.take().empty());
  }
  std::erase_if(s.q.tasks, [&](task const& t) { return t.node >= 0 && s.t.graph.node(t.node).phase == step_phase::update; });
  for (buffer& b : s.q.buffers) b.last = std::min(b.last, static_cast<int>(s.q.tasks.size()) - 1);
  findings with(100), without(100), few(2);
  detail::check::replay(s.t, s.p, s.q, known, with).run(true);
  detail::check::replay(s.t, s.p, s.q, known, few).run(true);
  CHECK(!with.take().empty());
  CHECK(few.take().size() == 2);
}
