// examples/processes.cpp - one process per device: `mpirun -n 4 processes`; without mpirun, one process on one device
#include "standard_output.hpp"
#include <cstdio>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/exec/comm/mpi.hpp>
#include <tensorpar/exec/cpu/eigen.hpp>
#include <tensorpar/exec/executor.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/search/intra/optimize.hpp>
#include <tensorpar/typed/typed.hpp>

using namespace tensorpar;

constexpr axis batch{"batch"};
struct model {
  static constexpr void define(auto& g) {
    auto x = g.input("x", {batch, 32});
    auto y = g.input("y", {batch, 8});
    g.output("loss", all(x | linear{256} | relu{} | linear{8}, y) | mean_squared_error{});
  }
};

// [quoted: processes]
int train(comm::mpi_session const& mpi) {
  int const n = mpi.size();
  machine const cluster = make_cluster("processes", {"core", 2e10, 1e10, i64{1} << 30, 2e-6}, n, n, {"shared memory", 4, 2e-6, 5e9}, {});
  computation_graph const graph = lower(typed<model>, {batch = 96});
  plan const p = optimize(graph, cluster, analytical{}).plan;            // every process finds the same plan
  executor<compute::eigen<float>, comm::mpi> run(differentiate(graph), p);
  run.initialise(1);
  host_batch data{{"x", {{96, 32}, std::vector<float>(96 * 32, 1), {}}}, {"y", {{96, 8}, std::vector<float>(96 * 8, 0.5f), {}}}};
  double const first = run.step(data, 0.1).loss;                         // of the whole batch, on every process
  double loss = first;
  for (int k = 1; k < 20; ++k) loss = run.step(data, 0.1).loss;
  auto const mine = static_cast<std::size_t>(mpi.rank());
  std::printf("process %d of %d: loss %.6f, %lld bytes\n", mpi.rank(), n, loss, static_cast<long long>(run.allocated_bytes()[mine]));
  return loss < first / 2 && run.copies_agree() ? 0 : 1;
}

int main(int argc, char** argv) {
  comm::mpi_session mpi(argc, argv);
  return mpi.run([&] { return train(mpi); });                            // what it throws ends all processes
}
// [end]
