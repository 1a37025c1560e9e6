// examples/own_communicator.cpp - a communicator of your own: anything with a world, groups and the collectives; here one that counts
#include "standard_output.hpp"
#include <atomic>
#include <cstdio>
#include <tensorpar/exec/comm/threads.hpp>
#include <tensorpar/exec/cpu/eigen.hpp>
#include <tensorpar/exec/executor.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/typed/typed.hpp>

using namespace tensorpar;

// [quoted: communicator]
/// What comm::threads does, and how many bytes each collective handed in.
class counting : public comm::threads {
 public:
  using comm::threads::threads;
  static inline std::atomic<i64> reduced{0}, gathered{0};
  template <class E> void all_reduce(group const& g, E const* in, E* out, i64 n) {
    reduced += n * static_cast<i64>(sizeof(E));
    comm::threads::all_reduce(g, in, out, n);
  }
  template <class E> void all_gather(group const& g, E const* in, E* out, i64 n) {
    gathered += n * static_cast<i64>(sizeof(E));
    comm::threads::all_gather(g, in, out, n);
  }
};
static_assert(exec::full_communicator<counting, float>);
// [end]

constexpr axis batch{"batch"};
struct model {
  static constexpr void define(auto& g) {
    auto x = g.input("x", {batch, 16});
    auto y = g.input("y", {batch, 4});
    g.output("loss", all(x | linear{4}, y) | mean_squared_error{});
  }
};

int main() {
  computation_graph const graph = lower(typed<model>, {batch = 8});
  plan p;
  p.graph = graph.hash();
  p.cluster = logical(4);
  for (int v = 0; v < graph.node_count(); ++v) p.nodes.push_back({{0, {{'0', 4, 1}}}});
  executor<compute::eigen<float>, counting> run(differentiate(graph), p);
  run.initialise(1);
  host_batch data{{"x", host_tensor::reals({8, 16}, std::vector<float>(128, 1))},
                  {"y", host_tensor::reals({8, 4}, std::vector<float>(32, 0))}};
  run.step(data, 0.1);
  // data parallelism all-reduces every gradient once: (16 * 4 + 4) numbers on each of 4 devices
  std::printf("all-reduced %lld bytes, gathered %lld\n", static_cast<long long>(counting::reduced),
              static_cast<long long>(counting::gathered));
  return counting::reduced == 4 * (16 * 4 + 4) * 4 && counting::gathered == 0 ? 0 : 1;
}
