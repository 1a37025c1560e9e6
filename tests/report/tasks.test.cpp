// tests/report/tasks.test.cpp - what tasks do: local copies talk to nobody, an exchange in two halves counts once
#include <tensorpar/report/tasks.hpp>
#include <doctest/doctest.h>

#include <report/report_subject.hpp>

using namespace tensorpar;

TEST_CASE("computing and cutting out are local, all else talks; a span without a task goes by its lane") {
  program q;
  q.tasks.resize(5);
  task_kind const kinds[] = {task_kind::compute, task_kind::reshard, task_kind::reshard, task_kind::send, task_kind::receive};
  for (std::size_t i = 0; i < 5; ++i) {
    q.tasks[i].kind = kinds[i];
    q.tasks[i].step.kind = i == 1 ? ir::reshard_kind::slice : i == 2 ? ir::reshard_kind::all_gather : ir::reshard_kind::exchange;
    CHECK(report::communicates(q.tasks[i]) == (i >= 2));
    CHECK(report::is_movement(q.tasks[i]) == (i >= 1 && i <= 3));
    CHECK(report::communicates(q, span{0, lane::communication, static_cast<int>(i), "", 0, 1}) == (i >= 2));
    CHECK(report::bytes_of_move(q, q.tasks[i]) == 0);                   // of no buffer
  }
  for (int none : {-1, 5}) {
    CHECK(report::communicates(q, span{0, lane::communication, none, "", 0, 1}));
    CHECK_FALSE(report::communicates(q, span{0, lane::compute, none, "", 0, 1}));
  }
  CHECK(report::move_text(ir::reshard_kind::reduce_scatter) == "reduce-scatter");
}

TEST_CASE("every task of a program works for the operator that its node came from") {
  auto const s = tests::report_of(tests::residual_mlp(), 4, 3);
  for (task const& t : s.q.tasks) CHECK(report::served(s.t.graph, t) == s.t.graph.node(t.node).origin);
  task lost;
  CHECK(report::served(s.t.graph, lost) == -1);
  lost.node = s.t.graph.node_count();
  CHECK(report::served(s.t.graph, lost) == -1);
}
