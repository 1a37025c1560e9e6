// tests/exec/comm/traffic.test.cpp - groups and messages of a program, and the rounds that set them up
#include <tensorpar/exec/comm/traffic.hpp>

#include <doctest/doctest.h>

#include <map>
#include <random>
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/program/unroll.hpp>

#include "support/small_graphs.hpp"

using namespace tests;

namespace {
bool apart(tensorpar::exec::channel const& a, tensorpar::exec::channel const& b) {
  for (int x : a.members) for (int y : b.members) if (x == y) return false;
  return true;
}
}  // namespace

TEST_CASE("rounds hold every group and every way once, disjoint within a round") {
  tensorpar::exec::traffic const t{{{0, 1}, {0, 1, 2, 3}, {2, 3}}, {{0, 2, 1, 8}, {0, 2, 4, 8}, {2, 0, 9, 8}, {3, 1, 9, 8}}};
  auto const rounds = tensorpar::exec::channel_rounds(t, 4);
  using all = std::vector<std::vector<tensorpar::exec::channel>>;
  CHECK(rounds == all{{{{0, 1}}, {{2, 3}}}, {{{0, 1, 2, 3}}}, {{{0, 2}, true}, {{3, 1}, true}}, {{{2, 0}, true}}});
  CHECK(tensorpar::exec::channel_rounds({}, 4).empty());
}

TEST_CASE("the traffic of random plans is what their tasks say, in the senders' order") {
  std::mt19937 draw(4);
  std::size_t groups = 0, messages = 0;
  for (computation_graph const& g : {residual_mlp(), small_cnn(), small_transformer()})
    for (int devices : {2, 4, 6, 8}) {
      plan const p = random_plan(g, devices, draw);
      program const q = unroll(differentiate(g), p);
      tensorpar::exec::traffic const t = tensorpar::exec::traffic_of(q);
      groups += t.groups.size();
      messages += t.messages.size();
      std::map<std::pair<int, int>, std::vector<tensorpar::exec::planned_message>> by_way, wanted;
      for (tensorpar::exec::planned_message const& m : t.messages) by_way[{m.from, m.to}].push_back(m);
      for (std::size_t i = 0; i < q.tasks.size(); ++i) {
        task const& x = q.tasks[i];
        if (x.kind == task_kind::compute) continue;
        for (int d : x.devices) {
          tensorpar::exec::prepared_move const mine = tensorpar::exec::prepare_move(x.step,
              q.buffers[static_cast<std::size_t>((x.in.empty() ? x.out : x.in)[0])].type, d);
          if (mine.group.devices.size() > 1) CHECK(std::count(t.groups.begin(), t.groups.end(), mine.group.devices) == 1);
          for (tensorpar::ir::transfer const& y : mine.transfers)
            if (y.from == d && y.to != d && x.kind != task_kind::receive)
              wanted[{y.from, y.to}].push_back({y.from, y.to, tensorpar::exec::message_tag(x, i), y.box.elements(), 4});
        }
      }
      CHECK(by_way == wanted);
      for (auto const& round : tensorpar::exec::channel_rounds(t, devices))
        for (std::size_t a = 0; a < round.size(); ++a) for (std::size_t b = 0; b < a; ++b) CHECK(apart(round[a], round[b]));
    }
  CHECK(groups > 10);
  CHECK(messages > 10);
}
