// tests/exec/step/prepared_task.test.cpp - who adds what is added once, what memory a task touches, and what the host writes
#include <tensorpar/exec/step/prepared_task.hpp>
#include <doctest/doctest.h>

#include "support/spine.hpp"

using namespace tests;

TEST_CASE("of the devices that hold partial sums of one box exactly one has the first share") {
  computation_graph const g = small_transformer();
  training_graph const t = differentiate(g);
  std::mt19937 draw(8);
  int sums = 0;
  for (int trial = 0; trial < 20; ++trial) {
    program const q = unroll(t, random_plan(g, 2 + trial % 5, draw), {&compute::eigen<float>::workspace});
    for (task const& x : q.tasks) {
      if (x.kind != task_kind::compute || x.node < 0 || x.out.empty()) continue;
      buffer const& made = q.buffers[static_cast<std::size_t>(x.out[0])];
      if (made.where.degree(tensorpar::ir::part_kind::replicate) > 1) continue;                    // a copy computes the same share again
      bool passed_on = false;                                                  // sums that come in as sums: no one's share
      for (int b : x.in) passed_on |= q.buffers[static_cast<std::size_t>(b)].where.degree(tensorpar::ir::part_kind::partial) > 1;
      if (passed_on) continue;
      std::map<std::vector<i64>, int> first, all;
      for (int d : x.devices) {
        tensorpar::op::tensor_block const box = tensorpar::ir::block_of(made.where, made.type, d);
        std::vector<i64> const at(box.offset, box.offset + box.rank);
        first[at] += tensorpar::exec::detail::is_first_share(t.graph, x, d);
        ++all[at];
      }
      for (auto const& [at, n] : first) CHECK(n == 1);
      for (auto const& [at, n] : all) sums += n > 1;
    }
  }
  CHECK(sums > 20);
}

TEST_CASE("a task touches its operands, results and work space, and writes the inputs that it feeds") {
  computation_graph const g = small_cnn();
  training_graph const t = differentiate(g);
  std::mt19937 draw(8);
  program const q = unroll(t, random_plan(g, 3, draw), {&compute::eigen<float>::workspace});
  tensorpar::exec::detail::device_memory<float> const memory(q, {0, 1, 2});
  for (std::size_t i = 0; i < q.tasks.size(); ++i)
    for (int d : q.tasks[i].devices) {
      task const& x = q.tasks[i];
      tensorpar::exec::lane_task const none = tensorpar::exec::detail::touched_by(q, i, d, {}, memory);
      i64 reads = 0, writes = 0, read = 0, written = 0;
      for (int b : x.in) if (memory.has(b, d)) reads += q.buffers[static_cast<std::size_t>(b)].bytes;
      for (int b : x.out) if (memory.has(b, d)) writes += q.buffers[static_cast<std::size_t>(b)].bytes;
      if (x.workspace >= 0 && memory.has(x.workspace, d)) writes += q.buffers[static_cast<std::size_t>(x.workspace)].bytes;
      for (tensorpar::exec::byte_range r : none.reads) read += r.end - r.begin;
      for (tensorpar::exec::byte_range r : none.writes) {
        written += r.end - r.begin; CHECK(r.end <= q.arena[static_cast<std::size_t>(d)]);
      }
      CHECK(read == reads);
      CHECK(written == writes);
      if (!x.in.empty() && memory.has(x.in[0], d))
        CHECK(tensorpar::exec::detail::touched_by(q, i, d, {{0, 0}}, memory).writes.size() == none.writes.size() + 1);
    }
}

TEST_CASE("a device gets its box of its micro-batch, whatever the scalar") {
  shape const rows{4, 6};
  tensorpar::ir::layout const halves{0, {{tensorpar::ir::part_kind::shard, 1, 2, 1}}};
  host_tensor h{{8, 6}, {}, {}};
  for (int i = 0; i < 48; ++i) h.real.push_back(static_cast<float>(i));
  for (int d = 0; d < 2; ++d)
    for (int micro = 0; micro < 2; ++micro) {
      tensorpar::op::tensor_block const box = tensorpar::ir::block_of(halves, rows, d);
      std::vector<double> real(static_cast<std::size_t>(box.elements()));
      std::vector<prime_field> field(real.size());
      tensorpar::exec::detail::feed_box<double>(h, micro, box, real.data(), tensorpar::exec::host_memory{});
      tensorpar::exec::detail::feed_box<prime_field>(h, micro, box, field.data(), tensorpar::exec::host_memory{});
      for (int r = 0; r < 4; ++r)
        for (int c = 0; c < 3; ++c) {
          double const want = micro * 24 + r * 6 + d * 3 + c;
          CHECK(real[static_cast<std::size_t>(r * 3 + c)] == want);
          CHECK(field[static_cast<std::size_t>(r * 3 + c)] == tensorpar::exec::scalar_traits<prime_field>::from_double(want));
        }
    }
  host_tensor labels{shape({8}, dtype::i32), {}, {0, 1, 2, 3, 4, 5, 6, 7}};
  std::vector<std::int32_t> got(2);
  tensorpar::op::tensor_block const second = tensorpar::ir::block_of(tensorpar::ir::layout{0, {{tensorpar::ir::part_kind::shard, 0, 2, 1}}},
                                                                     shape({4}, dtype::i32), 1);
  tensorpar::exec::detail::feed_box<float>(labels, 1, second, got.data(), tensorpar::exec::host_memory{});
  CHECK(got == std::vector<std::int32_t>{6, 7});
  for (tensorpar::ir::layout const& l : {tensorpar::ir::layout{0, {{tensorpar::ir::part_kind::shard, 0, 2, 1}}}, tensorpar::ir::layout{0,
      {{tensorpar::ir::part_kind::shard, 1, 2, 1}}}, tensorpar::ir::layout{}}) {
    tensorpar::op::tensor_block const box = tensorpar::ir::block_of(l, rows,
        l.axes.empty() ? 0 : 1);        // the host's own elements: in one piece, or row by row
    std::vector<float> part(static_cast<std::size_t>(box.elements()));
    tensorpar::exec::detail::feed_box<float>(h, 1, box, part.data(), tensorpar::exec::host_memory{});
    for (i64 r = 0; r < box.local[0]; ++r)
      for (i64 c = 0; c < box.local[1]; ++c)
        CHECK(part[static_cast<std::size_t>(r * box.local[1] + c)] == static_cast<float>(24 + (box.offset[0] + r) * 6 + box.offset[1] + c));
  }
  float scalar = 0;                                // one for all micro-batches
  tensorpar::exec::detail::feed_box<float>({{}, {2.5f}, {}}, 1, tensorpar::ir::block_of(tensorpar::ir::layout{}, shape{}, 0), &scalar,
                                           tensorpar::exec::host_memory{});
  CHECK(scalar == 2.5f);
}
