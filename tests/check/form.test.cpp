// tests/check/form.test.cpp - plans that do not fit, and programs whose indices, shapes, layouts or sizes mean nothing
#include <tensorpar/check/form.hpp>
#include <doctest/doctest.h>

#include <functional>
#include <check/check_subject.hpp>
#include <string>
#include <vector>

using namespace tensorpar;
using tests::subject;

namespace {
/// What the form check says of a subject that was spoiled.
std::vector<finding> form_of(subject const& s) {
  findings out(50);
  detail::check::facts known(s.p.cluster.size());
  detail::check::check_plan(s.t, s.p, known, out);
  if (out.empty()) detail::check::check_program_form(s.t, s.p, s.q, known, out);
  return out.take();
}
int first_of(subject const& s, task_kind k) {
  for (std::size_t i = 0; i < s.q.tasks.size(); ++i)
    if (s.q.tasks[i].kind == k) return static_cast<int>(i);
  return -1;
}
}  // namespace

TEST_CASE("what the unrolling makes has a good form") {
  std::mt19937 draw(1);
  for (int turn = 0; turn < 30; ++turn) CHECK(form_of(tests::checked_step(turn, draw)).empty());
}

TEST_CASE("a plan for another graph, batch, cluster or number of operators is refused") {
  std::mt19937 draw(2);
  subject const good = tests::checked_step(3, draw);
  auto first = [&](std::function<void(plan&)> const& spoil) {
    subject s = good;
    spoil(s.p);
    auto const all = form_of(s);
    REQUIRE(!all.empty());
    return all[0];
  };
  CHECK(first([](plan& p) { ++p.graph; }).code == fault::wrong_graph);
  CHECK(first([](plan& p) { p.nodes.pop_back(); }).code == fault::wrong_graph);
  CHECK(first([](plan& p) { p.pipeline.stages.emplace_back(); }).text.find("pipeline_pass(graph, plan)") != std::string::npos);
  CHECK(first([](plan& p) { p.nodes[1].recompute = true; }).text.find("memory_pass(graph, plan)") != std::string::npos);
  CHECK(first([](plan& p) { p.nodes[1].zero = ir::zero_stage::updates; }).text.find("memory_pass") != std::string::npos);
  CHECK(first([](plan& p) { p.micro_batches = 0; }).code == fault::malformed);
  CHECK(first([](plan& p) { p.precision = precision::bf16; }).text == "the plan is for training in bf16, the graph is in f32");
  CHECK(first([](plan& p) { p.scalar_bytes = 0; }).code == fault::malformed);
  CHECK(first([](plan& p) { p.cluster.kinds.clear(); }).code == fault::malformed);
  CHECK(first([](plan& p) { p.cluster.device[0] = 7; }).code == fault::malformed);
  finding const f = first([](plan& p) { p.nodes[2].sharding = {0, {{'0', 7, 1}}}; });
  CHECK(f.code == fault::sharding);
  CHECK(f.node == 2);
  CHECK(f.text.find("operator 2 (fc2: linear) cannot be sharded as planned") != std::string::npos);
}

TEST_CASE("what means nothing is found where it stands") {
  std::mt19937 draw(3);
  struct spoiled { char const* what; fault code; std::function<void(subject&)> spoil; };
  int const b = 1, k = 4;
  std::vector<spoiled> const all{
      {"arenas for", fault::malformed, [](subject& s) { s.q.arena.pop_back(); }},
      {"differ in micro-batches", fault::malformed, [](subject& s) { ++s.q.micro_batches; }},
      {"buffer 1 holds a value that is not there", fault::malformed, [&](subject& s) { s.q.buffers[b].value = 1 << 20; }},
      {"buffer 1 has no good list of devices", fault::malformed, [&](subject& s) { s.q.buffers[b].devices.push_back(0); }},
      {"buffer 1 has no good list of devices", fault::malformed, [&](subject& s) { s.q.buffers[b].offset.pop_back(); }},
      {"buffer 1 lives from task", fault::lifetime, [&](subject& s) { s.q.buffers[b].last = 1 << 20; }},
      {"buffer 1 has -1 bytes", fault::bytes, [&](subject& s) { s.q.buffers[b].bytes = -1; }},
      {"bytes for a part of", fault::bytes, [&](subject& s) { s.q.buffers[b].bytes += 4; }},
      {"has shape", fault::malformed, [&](subject& s) { s.q.buffers[b].type = s.q.buffers[b].type.with(0, 1000); }},
      {"lists other devices than its layout", fault::devices,
       [&](subject& s) { s.q.buffers[b].devices.pop_back(); s.q.buffers[b].offset.pop_back(); }},
      {"has a layout that does not fit", fault::malformed,
       [&](subject& s) { s.q.buffers[b].where.axes = {{ir::part_kind::shard, 5, 2, 1}}; }},
      {"takes over the bytes of a buffer that is not like it", fault::malformed, [&](subject& s) { s.q.buffers[b].in_place_of = 5; }},
      {"task 4 is of an operator that is not there", fault::malformed, [&](subject& s) { s.q.tasks[k].node = -1; }},
      {"task 4 is of a micro-batch that is not there", fault::malformed, [&](subject& s) { s.q.tasks[k].micro_batch = 99; }},
      {"task 4 has no good list of devices", fault::malformed, [&](subject& s) { s.q.tasks[k].devices = {}; }},
      {"task 4 is neither an operator nor a reshard", fault::malformed, [&](subject& s) { s.q.tasks[k].kind = static_cast<task_kind>(9); }},
      {"task 4 uses a buffer that is not there", fault::malformed, [&](subject& s) { s.q.tasks[k].in[0] = 1 << 20; }},
      {"task 4 has a workspace that is none", fault::malformed, [&](subject& s) { s.q.tasks[k].workspace = 1; }},
      {"has no operator", fault::malformed, [](subject& s) { s.q.tasks[idx(first_of(s, task_kind::compute))].op = op::any_op{}; }},
      {"moves not one buffer to one other", fault::malformed, [](subject& s) { s.q.tasks[idx(first_of(s, task_kind::reshard))].in.clear(); }},
      {"without a matching other half", fault::malformed,
       [](subject& s) { s.q.tasks[idx(first_of(s, task_kind::reshard))].kind = task_kind::send; }},
  };
  for (spoiled const& x : all) {
    INFO(x.what);
    bool found = false;
    for (int turn : {3, 9, 15, 21}) {  // four devices, several shardings
      subject s = tests::checked_step(turn, draw);
      if (s.q.buffers[b].devices.size() < 2 || s.q.tasks[k].in.empty() || first_of(s, task_kind::reshard) < 0) continue;
      x.spoil(s);
      bool here = false;
      for (finding const& f : form_of(s)) here = here || (f.code == x.code && f.text.find(x.what) != std::string::npos);
      CHECK(here);
      found = true;
    }
    CHECK(found);
  }
}
