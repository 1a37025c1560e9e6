// tests/exec/launch.test.cpp - who am I, from what torchrun, MPI and Slurm say; what is missing or contradicts is named
#include <doctest/doctest.h>
#include <map>
#include <tensorpar/exec/launch.hpp>
#include <vector>

using namespace tensorpar;

namespace {
using variables = std::map<std::string, std::string>;
launch read(variables const& v) {
  return read_launch([&](char const* name) -> char const* {
    auto const at = v.find(name);
    return at == v.end() ? nullptr : at->second.c_str();
  });
}
variables with(variables v, variables const& more) {
  for (auto const& [name, value] : more) v[name] = value;
  return v;
}
variables const torchrun{{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}, {"MASTER_ADDR", "node0"}, {"MASTER_PORT", "29500"}};
variables const open_mpi{{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}};
variables const mpich{{"PMI_RANK", "2"}, {"PMI_SIZE", "3"}, {"MPI_LOCALRANKID", "0"}};
variables const slurm{{"SLURM_PROCID", "6"},  {"SLURM_STEP_NUM_TASKS", "16"}, {"SLURM_LOCALID", "2"},
                      {"SLURM_JOB_ID", "81234"}, {"SLURM_STEP_NODELIST", "gpu[007-010]"}};
variables const slurm_script{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}};              // the job's script, not one of four
}  // namespace

TEST_CASE("every launcher is understood; without one this is the only process") {
  CHECK(read({}) == launch{});
  CHECK(read(torchrun) == launch{5, 8, 1, "node0", 29500, "torchrun"});
  CHECK(read(open_mpi) == launch{3, 4, 1, "", 0, "Open MPI"});
  CHECK(read(mpich) == launch{2, 3, 0, "", 0, "MPICH"});
  CHECK(read(slurm) == launch{6, 16, 2, "gpu007", 11234, "Slurm"});
  CHECK(read({{"RANK", "0"}, {"WORLD_SIZE", "1"}}) == launch{0, 1, 0, "", 0, "torchrun"});
  for (auto const& [uses, port] : std::vector<std::pair<char const*, int>>{{"True", 29501}, {"False", 29500}})
    CHECK(read(with(torchrun, {{"TORCHELASTIC_USE_AGENT_STORE", uses}})).port == port);
  CHECK(read(with(torchrun, {{"MASTER_PORT", "65535"}, {"TORCHELASTIC_USE_AGENT_STORE", "True"}})).port == 65534);
  CHECK(place_of("node0", 80) == "node0:80");
  CHECK(place_of("fd00::1", 80) == "[fd00::1]:80");
  CHECK(place_of("[fd00::1]", 80) == "[fd00::1]:80");
  CHECK(read(with(open_mpi, {{"MASTER_ADDR", "10.0.0.7"}, {"MASTER_PORT", "4000"}})) == launch{3, 4, 1, "10.0.0.7", 4000, "Open MPI"});
  CHECK(read(with(slurm, {{"MASTER_ADDR", "b"}, {"MASTER_PORT", "1"}, {"WORLD_SIZE", "16"}})) == launch{6, 16, 2, "b", 1, "Slurm"});
  CHECK(read(slurm_script) == launch{});
}

TEST_CASE("a launcher that was started by another is believed, one that contradicts another is not") {
  CHECK(read(with(slurm, torchrun)) == read(torchrun));
  CHECK(read(with(slurm, open_mpi)).by == "Open MPI");
  CHECK(read(with(torchrun, {{"OMPI_COMM_WORLD_RANK", "5"}, {"OMPI_COMM_WORLD_SIZE", "8"}})) == read(torchrun));
  CHECK_THROWS_WITH_AS(read(with(torchrun, open_mpi)), doctest::Contains("OMPI_COMM_WORLD_RANK is 3, but torchrun says 5"), error);
  CHECK_THROWS_WITH_AS(read(with(torchrun, {{"PMI_RANK", "5"}, {"PMI_SIZE", "9"}})), doctest::Contains("PMI_SIZE is 9"), error);
  CHECK_THROWS_WITH_AS(read(with(open_mpi, {{"WORLD_SIZE", "8"}})), doctest::Contains("WORLD_SIZE is 8, but Open MPI says 4"), error);
}

TEST_CASE("what is missing or no number is named, with what would do") {
  for (char const* name : {"WORLD_SIZE", "LOCAL_RANK", "MASTER_PORT"}) {
    variables v = torchrun;
    v.erase(name);
    std::string const words = std::string(name) + " is missing (at the environment that torchrun made)";
    CHECK_THROWS_WITH_AS(read(v), doctest::Contains(words.c_str()), error);
  }
  std::pair<char const*, char const*> const wrong[] = {{"RANK", "8"},       {"RANK", "-1"}, {"RANK", "five"},
                                                       {"RANK", "5x"},      {"RANK", ""},   {"WORLD_SIZE", "0"},
                                                       {"LOCAL_RANK", "8"}, {"WORLD_SIZE", "99999999999"}, {"MASTER_PORT", "65536"}};
  for (auto const& [name, text] : wrong) {
    std::string const words = std::string(name) + " is '" + text + "'";
    CHECK_THROWS_WITH_AS(read(with(torchrun, {{name, text}})), doctest::Contains(words.c_str()), error);
  }
  variables v = slurm;
  v.erase("SLURM_PROCID");
  CHECK_THROWS_WITH_AS(read(v), doctest::Contains("SLURM_PROCID is missing (at the environment that Slurm made); valid: a number from 0"),
                       error);
}

TEST_CASE("several processes of which this one is none by number are a contradiction; one process needs no number") {
  CHECK_THROWS_WITH_AS(read({{"WORLD_SIZE", "4"}}),
                       "RANK is missing (at the environment that torchrun made); valid: a number from 0 to 3", error);
  CHECK_THROWS_WITH_AS(read(with(slurm_script, {{"WORLD_SIZE", "4"}})), doctest::Contains("RANK is missing"), error);
  CHECK_THROWS_WITH_AS(read({{"OMPI_COMM_WORLD_SIZE", "2"}}), doctest::Contains("OMPI_COMM_WORLD_RANK is missing"), error);
  CHECK_THROWS_WITH_AS(read({{"PMI_SIZE", "2"}}), doctest::Contains("PMI_RANK is missing"), error);
  CHECK_THROWS_WITH_AS(read({{"WORLD_SIZE", "four"}}), doctest::Contains("WORLD_SIZE is 'four'"), error);
  CHECK(read({{"WORLD_SIZE", "1"}}) == launch{});
  CHECK(read(with(open_mpi, {{"WORLD_SIZE", "4"}})).by == "Open MPI");
}

TEST_CASE("the first host of a Slurm list") {
  CHECK(detail::first_host("alone") == "alone");
  CHECK(detail::first_host("a1,a2") == "a1");
  CHECK(detail::first_host("gpu[007-012,20],login") == "gpu007");
  CHECK(detail::first_host("gpu[3]") == "gpu3");
  CHECK(detail::first_host("rack[2,5]-ib,other") == "rack2-ib");
  CHECK(detail::first_host("broken[3") == "broken");
}

TEST_CASE("processes of a host take an accelerator each, devices of one process too, and round") {
  launch how;
  CHECK(accelerator_of(how, 0, 8) == 0);
  CHECK(accelerator_of(how, 5, 8) == 5);
  CHECK(accelerator_of(how, 9, 4) == 1);
  how.local_rank = 3;
  CHECK(accelerator_of(how, 0, 8) == 3);
  CHECK(accelerator_of(how, 0, 1) == 0);                   // the launcher has left it one to see
}
