// tests/package/consumer.cpp - a program outside the project; says which parts it was built with
#include <cstdio>
#include <string>
#include <tensorpar/core/config.hpp>
#include <tensorpar/core/hash.hpp>
#if __has_include(<tensorpar/tensorpar.hpp>)
#include <tensorpar/tensorpar.hpp>
#endif
#ifdef WITH_JSON
#include <tensorpar/core/json.hpp>
#endif
#ifdef WITH_EIGEN
#include <Eigen/Core>
#endif
#ifdef WITH_THREADS
#include <thread>
#endif
#ifdef WITH_PEERS
#include <tensorpar/peers/profiles/piper.hpp>
#endif
#ifdef WITH_RANGES
#include <tensorpar/report/queries.hpp>
#endif
#ifdef WITH_Z3
#include <tensorpar/prover/z3.hpp>
#endif
#ifdef WITH_MPI
#include <tensorpar/exec/comm/mpi.hpp>
#include <tensorpar/exec/device/concepts.hpp>
#endif
#ifdef WITH_COMPILED
#include <tensorpar/plan/plan_file.hpp>
#ifndef TENSORPAR_COMPILED
#error "tensorpar::compiled does not say that it is there"
#endif
#endif

int main() {
  static_assert(tensorpar::core::name_hash("") == 14695981039346656037ull);
  std::string parts = "core";
#ifdef WITH_JSON
  if (tensorpar::core::parse_json(R"({"parts": ["json"]})", "text")["parts"][0] != "json") return 1;
  parts += " json";
#endif
#ifdef WITH_EIGEN
  if (Eigen::Matrix2f::Identity().sum() != 2) return 1;
  parts += " eigen";
#endif
#ifdef WITH_THREADS
  std::thread([&] { parts += " threads"; }).join();
#endif
#ifdef WITH_PEERS
  if (!tensorpar::peers::piper_profile{}.inputs.empty()) return 1;
  parts += " peers";
#endif
#ifdef WITH_RANGES
  if (tensorpar::queries::total(tensorpar::queries::tasks(tensorpar::program{}) | tensorpar::queries::bytes) != 0) return 1;
  parts += " ranges";
#endif
#ifdef WITH_TOOL
  parts += " tool";              // own_tool.cpp uses it
#endif
#ifdef WITH_Z3
  auto const joined = tensorpar::rewrite::parse_rule("combine{d,k}(partition{d,k}(x)) => x");
  if (tensorpar::prover::z3_prover().prove(joined).status != tensorpar::prover::proof_status::proved) return 1;
  parts += " z3";
#endif
#ifdef WITH_MPI
  static_assert(tensorpar::exec::full_communicator<tensorpar::comm::mpi, float>);
  int major = 0, minor = 0;
  if (MPI_Get_version(&major, &minor) != MPI_SUCCESS || major < 3) return 1;
  parts += " mpi";
#endif
#ifdef WITH_COMPILED
  try {
    tensorpar::read_plan("/no/such/plan.json");
    return 1;
  } catch (tensorpar::error const&) { parts += " compiled"; }
#endif
  std::printf("tensorpar %d.%d: %s\n", tensorpar::version_major, tensorpar::version_minor, parts.c_str());
  return 0;
}
