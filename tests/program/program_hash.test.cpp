// tests/program/program_hash.test.cpp - whatever a device does or where a buffer lies is in the hashes; scratch space is not
#include <tensorpar/program/program_hash.hpp>
#include <doctest/doctest.h>

#include <functional>
#include <check/check_subject.hpp>
#include <tensorpar/program/unroll.hpp>

using namespace tensorpar;

TEST_CASE("every field of every task and buffer is in the hash of tasks") {
  std::mt19937 draw(1);
  for (int turn : {1, 4, 5, 9}) {
    tests::subject const s = tests::checked_step(turn, draw);
    u64 const was = passes::task_hash(s.q);
    auto changed = [&](std::function<void(program&)> const& f) {
      program q = s.q;
      f(q);
      return passes::task_hash(q) != was;
    };
    program one = s.q;                                         // of which one thing is changed, and changed back
    auto changed_there = [&](auto& there, auto const& f) {
      auto const given = there;
      f(there);
      bool const r = passes::task_hash(one) != was;
      there = given;
      return r;
    };
    for (std::size_t i = 0; i < s.q.tasks.size(); ++i) {
      auto task_changed = [&](std::function<void(task&)> const& f) { return changed_there(one.tasks[i], f); };
      task const& t = s.q.tasks[i];
      CHECK(task_changed([](task& x) { x.node += 1; }));
      CHECK(task_changed([](task& x) { x.micro_batch += 1; }));
      CHECK(task_changed([](task& x) { x.other_half += 1; }));
      CHECK(task_changed([](task& x) { x.kind = x.kind == task_kind::compute ? task_kind::reshard : task_kind::compute; }));
      CHECK(task_changed([](task& x) { x.in.push_back(0); }));
      CHECK(task_changed([](task& x) { x.out.push_back(0); }));
      if (t.kind == task_kind::compute) {
        CHECK(task_changed([](task& x) { x.op.attr[0] += 1; }));
        CHECK(task_changed([](task& x) { x.mesh.start += 1; }));
        CHECK(task_changed([](task& x) { x.mesh.axes.push_back({'\0', 1, 1}); }));
        continue;
      }
      CHECK(task_changed([](task& x) { x.step.from_dim += 1; }));
      CHECK(task_changed([](task& x) { x.step.to_dim += 1; }));
      CHECK(task_changed([](task& x) { x.step.group.push_back({1, 1}); }));
      CHECK(task_changed([](task& x) { x.step.before.start += 1; }));
      CHECK(task_changed([](task& x) { x.step.after.axes.push_back({ir::part_kind::replicate, -1, 1, 1}); }));
    }
    for (std::size_t b = 0; b < s.q.buffers.size(); ++b) {
      auto buffer_changed = [&](std::function<void(buffer&)> const& f) { return changed_there(one.buffers[b], f); };
      bool const scratch = s.q.buffers[b].value < 0;
      CHECK(buffer_changed([](buffer& x) { x.first += 1; }) == !scratch);
      CHECK(buffer_changed([](buffer& x) { x.last += 1; }) == !scratch);
      CHECK(buffer_changed([](buffer& x) { x.where.start += 1; }) == !scratch);
      CHECK(buffer_changed([](buffer& x) { x.persistent = !x.persistent; }) == !scratch);
    }
    CHECK(passes::task_hash(one) == was);
    CHECK(changed([](program& q) { std::swap(q.tasks.front(), q.tasks.back()); }));
    CHECK(changed([](program& q) { q.tasks.pop_back(); }));
    CHECK(passes::task_hash(unroll(s.t, s.p)) == was);                 // without the scratch space that the subject has
    plan wide = s.p;
    wide.scalar_bytes = 8;
    CHECK(passes::task_hash(unroll(s.t, wide)) == was);
  }
}

TEST_CASE("every offset on every device is in its hash; devices with the same buffers are alike, and no others") {
  std::mt19937 draw(2);
  int classes = 0;
  for (int turn = 0; turn < 24; ++turn) {
    tests::subject const s = tests::checked_step(turn, draw);
    program const q = unroll(s.t, s.p);
    int const n = s.p.cluster.size();
    std::vector<int> const like = passes::alike_devices(q, n);
    std::map<std::vector<int>, int> first;                     // buffers of a device -> the first that has these
    for (int d = 0; d < n; ++d) {
      std::vector<int> mine;
      for (std::size_t b = 0; b < q.buffers.size(); ++b)
        if (q.buffers[b].value >= 0 && std::binary_search(q.buffers[b].devices.begin(), q.buffers[b].devices.end(), d))
          mine.push_back(static_cast<int>(b));
      CHECK(like[static_cast<std::size_t>(d)] == first.insert({std::move(mine), d}).first->second);
      u64 const was = passes::offset_hash(q, d);
      program moved = q;
      moved.arena[static_cast<std::size_t>(d)] += 64;
      CHECK(passes::offset_hash(moved, d) != was);
      moved.arena[static_cast<std::size_t>(d)] -= 64;
      for (std::size_t b = 0; b < q.buffers.size(); b += 3) {
        auto const& on = q.buffers[b].devices;
        for (std::size_t k = 0; k < on.size(); ++k) {
          moved.buffers[b].offset[k] += 64;
          CHECK((passes::offset_hash(moved, d) != was) == (on[k] == d));
          moved.buffers[b].offset[k] -= 64;
        }
      }
    }
    classes += static_cast<int>(first.size());
  }
  CHECK(classes > 24);                                          // some plans have devices that differ
}
