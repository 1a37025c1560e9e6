// tensorpar/exec/profile.hpp - how long operators really take: a compute policy's kernels, measured on local
// blocks
#pragma once
#include <algorithm>
#include <chrono>
#include <set>
#include <tensorpar/core/index.hpp>
#include <tensorpar/cost/profiled.hpp>
#include <tensorpar/exec/device/arena_memory.hpp>
#include <tensorpar/exec/device/concepts.hpp>
#include <tensorpar/exec/device/narrow.hpp>
#include <tensorpar/exec/device/random.hpp>
#include <tensorpar/exec/device/scalar.hpp>
#include <tensorpar/exec/step/captured_graphs.hpp>
#include <tensorpar/ir/machine/machine_check.hpp>
#include <tensorpar/program/core/program.hpp>

namespace tensorpar {

struct profile_options {
  int warm_ups = 2, samples = 7;  // runs before, and runs whose median is taken
  // a sample repeats the kernel until so much time has passed, and is the mean
  double min_seconds = 2e-5;
  u64 seed = 1;                   // of the elements
};

namespace detail {

/// One operator's blocks on one device, in memory of their own; buffers that are in one place are one block,
/// as in the arena.
template <class Compute> class kernel_bench {
  using scalar = typename Compute::scalar_type;
  using memory = exec::detail::arena_memory<exec::detail::memory_of<Compute>>;
  struct block_memory {
    int buffer;
    op::tensor_block block;
    memory at;
  };
  Compute const& compute_;
  task const& task_;
  std::vector<block_memory> memory_;
  std::vector<op::tensor_block> in_, out_;
  std::vector<void const*> in_at_;
  std::vector<void*> out_at_;
  exec::kernel_call call_;

  memory space(i64 elements, i64 size) const {
    return memory(std::max<i64>(elements, 1) * size, exec::detail::memory_in(compute_));
  }
  static i64 element_bytes(op::tensor_block const& b) {
    return bytes_of(b.type, static_cast<i64>(sizeof(scalar)));
  }

  void wait() const { exec::detail::memory_in(compute_).wait(); }
  block_memory& place(program const& p, int b, int device) {
    buffer const& q = p.buffers[idx(b)];
    auto const root = [&](int i) {
      while (i >= 0 && p.buffers[idx(i)].in_place_of >= 0)
        i = p.buffers[idx(i)].in_place_of;
      return i;
    };
    for (block_memory& m : memory_)
      if (root(m.buffer) == root(b)) return m;
    op::tensor_block const box = ir::block_of(q.where, q.type, device);
    memory_.push_back({b, box, space(box.elements(), element_bytes(box))});
    return memory_.back();
  }
  /// Real numbers from [1/16, 1): no operator meets a root or a logarithm of less than nothing, nor numbers
  /// that make processors slow.
  void fill(exec::random_stream const& r, i64 index_end) {
    u64 drawn = 0;
    for (block_memory& m : memory_) {
      auto const n = idx(m.block.elements());
      auto put = [&]<class Element>(std::vector<Element> all, auto made) {
        // and again from the first: drawing takes long
        std::size_t const some = std::min(n, std::size_t{1} << 16);
        for (std::size_t i = 0; i < some; ++i) all[i] = made(r.uniform(drawn++));
        for (std::size_t done = some; done > 0 && done < n; done *= 2)
          std::copy_n(all.data(), std::min(done, n - done), all.data() + done);
        m.at.memory().write(m.at.data(), all.data(), static_cast<i64>(n * sizeof(Element)));
      };
      if (is_integer(m.block.type))
        put(std::vector<std::int32_t>(n),
            [&](double x) { return static_cast<std::int32_t>(x * static_cast<double>(index_end)); });
      else if (exec::detail::stored_narrow<scalar>(m.block.type))
        put(std::vector<bfloat16>(n),
            [](double x) { return bfloat16(static_cast<float>(0.0625 + 0.9375 * x)); });
      else
        put(std::vector<scalar>(n),
            [](double x) { return exec::scalar_traits<scalar>::from_double(0.0625 + 0.9375 * x); });
    }
  }

 public:
  kernel_bench(Compute const& compute, program const& p, task const& t, int device,
               exec::random_stream const& r)
      : compute_(compute), task_(t) {
    memory_.reserve(t.in.size() + t.out.size() + 1);
    std::vector<shape> in, out;
    for (int b : t.in) {
      block_memory& m = place(p, b, device);
      in_.push_back(m.block);
      in_at_.push_back(m.at.data());
      in.push_back(m.block.local_shape());
    }
    for (int b : t.out) {
      block_memory& m = place(p, b, device);
      out_.push_back(m.block);
      out_at_.push_back(m.at.data());
      out.push_back(m.block.local_shape());
    }
    call_.op = &task_.op;
    call_.inputs = static_cast<int>(in_.size());
    call_.outputs = static_cast<int>(out_.size());
    call_.in = in_at_.data();
    call_.in_block = in_.data();
    call_.out = out_at_.data();
    call_.out_block = out_.data();
    call_.state = {.seed = r.seed, .learning_rate = 1e-3};
    i64 const scratch = Compute::workspace(t.op, {in.data(), call_.inputs}, {out.data(), call_.outputs});
    op::tensor_block workspace;
    workspace.rank = 1;
    workspace.local[0] = workspace.global[0] = scratch;
    memory_.push_back({-1, workspace, space(scratch, sizeof(scalar))});
    call_.workspace = memory_.back().at.data();
    draw(r);
  }

  /// Indices reach as far as the operator allows: of the extents of its real tensors the largest that it does
  /// not refuse.
  void draw(exec::random_stream const& r) {
    std::set<i64> ends{1};
    i64 const most = INT32_MAX;
    for (block_memory const& m : memory_)
      for (int d = 0; d < m.block.rank; ++d)
        if (m.buffer >= 0 && !is_integer(m.block.type)) ends.insert(std::min(m.block.global[d], most));
    for (auto end = ends.rbegin();; ++end) {
      fill(r, *end);
      try {
        compute_.run(call_);
        wait();
        return;
      } catch (error const&) {
        if (*end == 1) throw;
      }
    }
  }

  /// Mean seconds of a run, over at least `least` seconds. A device of queues is given many runs at once and
  /// measured by its own clock. Where it can, they are replayed from a recording, as in a step, because the
  /// host takes longer to ask for a short kernel than the device to do it. Precondition there: it has run
  /// before, so that libraries have chosen their algorithms.
  double sample(double least) {
    if constexpr (exec::recording_memory<exec::detail::memory_of<Compute>>) {
      constexpr int runs = 8;
      auto const m = exec::detail::memory_in(compute_);
      auto const several = exec::detail::recorded(m,
          [&] { for (int k = 0; k < runs; ++k) compute_.run(call_); });
      return sample_by_device(m, least, [&] { m.replay(several); }) / runs;
    } else if constexpr (exec::queued_memory<exec::detail::memory_of<Compute>>) {
      return sample_by_device(exec::detail::memory_in(compute_), least, [&] { compute_.run(call_); });
    } else {
      return sample_by_host(least);
    }
  }

 private:
  template <class F>
  static double sample_by_device(exec::detail::memory_of<Compute> const& m, double least, F const& run) {
    auto begun = m.make_timed_mark(), ended = m.make_timed_mark();
    for (int n = 1;; n *= 2) {
      m.set(begun);
      for (int k = 0; k < n; ++k) run();
      m.set(ended);
      m.wait();
      if (double const t = m.seconds(begun, ended); (t > 0 && t >= least) || n >= 1 << 20) return t / n;
    }
  }
  double sample_by_host(double least) {
    auto const start = std::chrono::steady_clock::now();
    for (int n = 1;; ++n) {
      compute_.run(call_);
      wait();
      double const t = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      if (t > 0 && t >= least) return t / n;
    }
  }
};

}  // namespace detail

/// Measures every distinct (operator, local shapes, kind of device) of a program that was unrolled with this
/// policy's workspace rule, on this processor, one at a time on the caller's thread, with blocks in cache as
/// far as they fit. All kinds of device are measured here: the table is true for machines whose devices are
/// this one. What `have` holds already is kept and not measured again. Keys and samples are deterministic,
/// seconds are measured. O(samples * work of one step's distinct operators).
template <exec::compute_policy Compute>
cost::profile_table measure_operators(Compute const& compute, program const& p, machine const& cluster,
                                profile_options const& o = {}, cost::profile_table have = {}) {
  if (o.samples < 1 || o.warm_ups < 0)
    throw error("so many samples: " + std::to_string(o.samples), "measure_operators",
                "at least 1 sample, 0 warm-ups");
  require_machine(cluster);
  for (task const& t : p.tasks) {
    if (t.kind != task_kind::compute) continue;
    std::vector<shape> in, out;
    for (int b : t.in)
      in.push_back(
          ir::part_of(p.buffers[idx(b)].where, p.buffers[idx(b)].type));
    for (int b : t.out)
      out.push_back(
          ir::part_of(p.buffers[idx(b)].where, p.buffers[idx(b)].type));
    for (int d : t.devices) {
      device_kind const& kind =
          cluster.kinds[idx(cluster.device[idx(d)])];
      cost::compute_query const q{t.op,
                            {in.data(), static_cast<int>(in.size())},
                            {out.data(), static_cast<int>(out.size())},
                            p.scalar_bytes,
                            kind};
      cost::profile_key key = cost::profile_key_of(q);
      if (have.find(key)) continue;
      detail::kernel_bench<Compute> bench(compute, p, t, d, {o.seed, key.op_hash});
      for (int i = 0; i < o.warm_ups; ++i) bench.sample(0);
      std::vector<double> seconds;
      for (int i = 0; i < o.samples; ++i) seconds.push_back(bench.sample(o.min_seconds));
      std::nth_element(seconds.begin(), seconds.begin() + o.samples / 2, seconds.end());
      have.add({std::move(key), seconds[idx(o.samples / 2)], o.samples});
    }
  }
  return have;
}
/// By a policy of its own.
template <exec::compute_policy Compute>
cost::profile_table measure_operators(program const& p, machine const& cluster, profile_options const& o = {},
                                cost::profile_table have = {}) {
  return measure_operators(exec::detail::made_for<Compute>({}), p, cluster, o, std::move(have));
}

}  // namespace tensorpar
