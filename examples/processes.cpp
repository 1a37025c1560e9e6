// examples/processes.cpp - one process per device: `mpirun -n 4 processes`; without mpirun, one process on one device
#include "standard_output.hpp"
#include <cstdio>
#include <tensorpar/exec/comm/mpi.hpp>
#include <tensorpar/plan.hpp>
#include <tensorpar/run.hpp>

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
  training_problem const problem{.graph = lower(typed<model>, {batch = 1}), .samples = 96};
  planned const found = plan_training(problem, preset("logical:" + std::to_string(n)),
                                      cost::analytical{});   // every process finds the same plan
  trainer<compute::eigen<float>, comm::mpi> run(found);
  run.initialise(1);
  host_batch const data{{"x", host_tensor::reals({96, 32}, std::vector<float>(96 * 32, 1))},
                        {"y", host_tensor::reals({96, 8}, std::vector<float>(96 * 8, 0.5f))}};
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
