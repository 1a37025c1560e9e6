// tests/program/passes/merge_orders.test.cpp - groups' orders become one that respects operands, or it is said who waits for whom
#include <tensorpar/program/passes/merge_orders.hpp>
#include <doctest/doctest.h>

#include <functional>
#include <random>
#include <support/effort.hpp>
#include <tensorpar/op/operators.hpp>
#include <vector>

using namespace tensorpar;

namespace {
/// Two stages on two groups, `m` micro-batches each: forward down the stages, backward up; one operator per pass, and an update at the end.
struct subject {
  computation_graph g;
  std::vector<pass_entry> passes;
  pipeline pipe;
};
subject make(int m) {
  subject s;
  s.pipe.mini_batch = m;
  s.pipe.groups = {{0, 1}, {1, 1}};
  s.pipe.stages.resize(2);
  s.pipe.stages[1].group = 1;
  s.pipe.schedule.resize(2);
  int last = -1;
  auto add = [&](int from, pass_entry const& e) {
    s.passes.push_back(e);
    return s.g.node(s.g.add(relu{}, {from})).out[0];
  };
  for (int i = 0; i < m; ++i) {
    int v = s.g.add_input("x" + std::to_string(i), {2});
    for (pass_entry const& e : {pass_entry{0, pass::forward, i}, {1, pass::forward, i}, {1, pass::backward, i}, {0, pass::backward, i}})
      v = add(v, e);
    last = v;
  }
  add(last, {-1, pass::forward, 0});
  for (int i = 0; i < m; ++i)     // 1F1B on the last stage, all forward passes first on the first
    for (pass what : {pass::forward, pass::backward}) s.pipe.schedule[1].push_back({1, what, i});
  for (pass what : {pass::forward, pass::backward})
    for (int i = 0; i < m; ++i) s.pipe.schedule[0].push_back({0, what, i});
  return s;
}
void refuse(std::function<void(subject&)> const& spoil, std::string_view why) {
  subject s = make(3);
  spoil(s);
  CHECK_THROWS_WITH_AS(passes::detail::merge_orders(s.g, s.passes, s.pipe), doctest::Contains(std::string(why).c_str()), error);
}
}  // namespace

TEST_CASE("operands come first, every group keeps its order, what belongs to no pass comes last") {
  std::mt19937 draw(1);
  for (int turn = 0; turn < test_effort::cases(60); ++turn) {
    int const m = 1 + static_cast<int>(draw() % 6);
    subject s = make(m);
    // another order of the first group that is possible: a backward pass may come as soon as its forward pass has
    std::vector<pass_entry> mixed;
    for (int f = 0, b = 0; b < m;)
      if (f < m && (f == b || draw() % 2)) mixed.push_back({0, pass::forward, f++});
      else mixed.push_back({0, pass::backward, b++});
    s.pipe.schedule[0] = mixed;
    std::vector<int> const order = passes::detail::merge_orders(s.g, s.passes, s.pipe);
    REQUIRE(static_cast<int>(order.size()) == s.g.node_count());
    CHECK(order.back() == s.g.node_count() - 1);
    std::vector<int> at(order.size(), -1);
    for (std::size_t i = 0; i < order.size(); ++i) at[static_cast<std::size_t>(order[i])] = static_cast<int>(i);
    for (int v = 0; v < s.g.node_count(); ++v)
      for (int u : s.g.predecessors(v)) CHECK(at[static_cast<std::size_t>(u)] < at[static_cast<std::size_t>(v)]);
    for (std::size_t group = 0; group < 2; ++group) {
      std::vector<pass_entry> kept;
      for (int v : order)
        if (pass_entry const& e = s.passes[static_cast<std::size_t>(v)]; e.stage == static_cast<int>(group)) kept.push_back(e);
      CHECK(kept == s.pipe.schedule[group]);
    }
  }
}

TEST_CASE("orders that mean nothing or never end are refused") {
  refuse([](subject& s) { s.pipe.schedule[0][0].stage = 1; }, "stage 1 (at pipeline: order of group 0, entry 0)");
  refuse([](subject& s) { s.pipe.schedule[0][0].micro_batch = 3; }, "a pass of this stage");
  refuse([](subject& s) { s.pipe.schedule[0][0].what = pass::weights; }, "a pass of this stage");
  refuse([](subject& s) { s.pipe.schedule[0][1] = s.pipe.schedule[0][0]; }, "comes twice");
  refuse([](subject& s) { std::swap(s.pipe.schedule[0][0], s.pipe.schedule[0][1]); }, "before its micro-batch's turn");
  refuse([](subject& s) { s.pipe.schedule[0].pop_back(); }, "stage 0's backward pass 2 is missing");
  // each waits for the other: the first stage wants its gradient before it has sent what that is made of
  refuse([](subject& s) { std::rotate(s.pipe.schedule[0].begin(), s.pipe.schedule[0].begin() + 3, s.pipe.schedule[0].begin() + 4); },
         "stage 0's backward pass 0 waits for stage 1's backward pass 0, which can never come before it");
}
