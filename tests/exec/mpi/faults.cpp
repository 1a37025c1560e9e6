// tests/exec/mpi/faults.cpp - a run with one thing wrong: `faults KIND SCENARIO [FOLDER]`; check_faults.py says how each must end
#include <csignal>
#include <string>
#include <tensorpar/exec/files/checkpoint.hpp>
#include "support/spine.hpp"
#include <tensorpar/exec/comm/mpi.hpp>
#include <thread>

using namespace tests;

namespace {

constexpr std::chrono::milliseconds deadline{2000};
/// With a deadline that a test can wait for.
comm::mpi_world hasty_world(int ranks) { return comm::mpi_world(ranks, deadline); }

/// Dies in the middle of a step, when it is told to.
struct mortal : compute::eigen<prime_field> {
  static inline bool dies = false;
  void run(tensorpar::exec::kernel_call const& c) const {
    if (dies) std::raise(SIGKILL);
    compute::eigen<prime_field>::run(c);
  }
};

void collectives(std::string const& what, int rank, int ranks) {
  comm::mpi_world h(ranks, deadline);
  comm::mpi c(h, rank);
  std::vector<int> all, some;
  for (int i = 0; i < ranks; ++i) all.push_back(i);
  for (int i = 1; i < ranks; ++i) some.push_back(i);
  auto const g = c.make_group({all.data(), ranks});
  std::vector<float> x(64, 1), y(64 * static_cast<std::size_t>(ranks));
  bool const odd = rank == 1;
  c.all_reduce(g, x.data(), y.data(), 64);
  if (what == "other call" && odd) c.all_gather(g, x.data(), y.data(), 64);
  else if (what == "other count" && odd) c.all_reduce(g, x.data(), y.data(), 63);
  else if (what == "other root" && odd) c.broadcast(g, 1, x.data(), 64);
  else if (what == "other root") c.broadcast(g, 0, x.data(), 64);
  else if (what == "other size of a message") {
    if (odd) c.send(0, 3, x.data(), 5);
    if (rank == 0) c.receive(1, 3, x.data(), 6);
  } else if (what == "late" && odd) std::this_thread::sleep_for(4 * deadline);
  else if (what == "no message" && rank == 0) c.receive(1, 3, x.data(), 6);
  else if (what == "no group" && rank == 2) c.make_group({some.data(), ranks - 1});
  else if (what == "circle" && odd) c.receive(0, 5, x.data(), 1);
  c.all_reduce(g, x.data(), y.data(), 64);
  c.barrier(g);
}

/// Six steps. With a folder, a checkpoint after each; at the end a digest of all parameters, which are field elements: the same under any
/// plan.
void training(std::string const& what, std::string const& folder, int rank, int ranks) {
  computation_graph const g = residual_mlp();
  std::mt19937 draw(1);
  plan const p = random_plan(g, what == "devices" ? ranks + 1 : ranks, draw);
  executor<mortal, comm::mpi> run(differentiate(g), p, hasty_world);
  run.initialise(1);
  if (what == "resumed") {
    found_checkpoint const found = load_checkpoint(run, folder);
    if (rank == 0) std::printf("resumes %s after step %llu\n", found.path.c_str(), static_cast<unsigned long long>(run.steps()));
  }
  for (int k = static_cast<int>(run.steps());; ++k) {
    host_batch b = random_batch(g, 1, static_cast<u64>(k));
    if ((what == "bad batch" || (what == "bad batch on one" && rank == 1)) && k == 3) b["labels"].index[3] = 99;
    if (what == "other steps" && k == 3 && rank == 1) run.set_steps(7);
    if ((what == "other values" && k == 3 && rank == 2) || (what == "wrong store" && k == 3 && rank == 1))
      for (buffer const& w : run.program().buffers)
        if (w.persistent)
          run.store(w.value, std::vector<prime_field>(what == "wrong store" ? 1 : static_cast<std::size_t>(w.type.elements()),
                                                      prime_field(3)));
    if (what == "other checkpoints" && k == 3) load_checkpoint(run, folder + (rank == 1 ? "/step-2" : "/step-3"));
    if (what == "nothing to load" && k == 3) load_checkpoint(run, rank == 1 ? "/dev/null/none" : folder);
    mortal::dies = what == "killed" && k == 3 && rank == 1;
    if (what == "throws" && k == 3 && rank == 1) throw std::runtime_error("no more data");
    bool const caught = what.starts_with("caught") && k == 3;
    if (caught) {
      host_batch bad = b;
      bad["labels"].index[3] = 99;
      try { run.step(bad, 0.1); } catch (error const&) {         // all get it, and one leaves, with it or in silence; or all, one late
        if (what == "caught, thrown on by all") {
          if (rank == 2) std::this_thread::sleep_for(std::chrono::milliseconds(200));
          throw;
        }
        if (rank == 1 && what == "caught, thrown on by one") throw;
        if (rank == 1) return;
      }
    }
    run.step(b, 0.1);
    if (rank == 0) std::printf("step %d\n", k);
    if (!folder.empty()) save_checkpoint(run, folder);
    if (k == 5 && what != "endless") break;
  }
  u64 digest = 0;
  for (auto const& tensor : parameters_of(run)) for (prime_field x : tensor) digest = digest * 1000003 + x.v;
  if (rank == 0) std::printf("parameters %llu\n", static_cast<unsigned long long>(digest));
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 1 << 12);      // what was said before a process is killed
  comm::mpi_session mpi(argc, argv);
  return mpi.run([&] {
    std::string const what = argc > 2 ? argv[2] : "";
    if (argc > 2 && std::string(argv[1]) == "training") training(what, argc > 3 ? argv[3] : "", mpi.rank(), mpi.size());
    else if (argc == 3) collectives(what, mpi.rank(), mpi.size());
    return 0;
  });
}
