// tests/exec/comm/launch.test.cpp - who am I, from what torchrun, MPI and Slurm say; what is missing or contradicts is named
#include <doctest/doctest.h>
#include <map>
#include <random>
#include <tensorpar/exec/comm/host_list.hpp>
#include <tensorpar/exec/comm/launch.hpp>
#include <tensorpar/exec/comm/launch_variables.hpp>
#include <vector>

#include "support/effort.hpp"

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
  CHECK(read(with(slurm_script, torchrun)) == read(torchrun));
  CHECK(read(with(slurm, open_mpi)).by == "Open MPI");
  CHECK(read(with(torchrun, {{"OMPI_COMM_WORLD_RANK", "5"}, {"OMPI_COMM_WORLD_SIZE", "8"}})) == read(torchrun));
  CHECK_THROWS_WITH_AS(read(with(torchrun, open_mpi)), doctest::Contains("OMPI_COMM_WORLD_RANK is 3, but RANK of torchrun is 5"), error);
  CHECK_THROWS_WITH_AS(read(with(torchrun, {{"PMI_RANK", "5"}, {"PMI_SIZE", "9"}})),
                       doctest::Contains("PMI_SIZE is 9, but WORLD_SIZE of torchrun is 8"), error);
  CHECK_THROWS_WITH_AS(read(with(open_mpi, {{"WORLD_SIZE", "8"}})),
                       doctest::Contains("WORLD_SIZE is 8, but OMPI_COMM_WORLD_SIZE of Open MPI is 4"), error);
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

namespace {
variables const pmi2{{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}, {"PMI_FD", "9"}, {"PMI_JOBID", "12.0"}};
variables const slurm_of_four{{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_LOCALID", "1"}, {"SLURM_JOB_ID", "12"},
                              {"SLURM_STEP_NODELIST", "n[1-2]"}};
variables const master{{"MASTER_ADDR", "h"}, {"MASTER_PORT", "29500"}};
variables const pals{{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}, {"PMI_LOCAL_RANK", "1"}, {"PALS_RANKID", "1"}, {"PALS_LOCAL_RANKID", "1"}};
variables const flux_job{{"FLUX_TASK_RANK", "1"}, {"FLUX_JOB_SIZE", "4"}, {"FLUX_TASK_LOCAL_ID", "1"}, {"PMI_RANK", "1"}, {"PMI_SIZE", "4"},
                         {"PMI_FD", "5"}};
variables without(variables v, char const* name) {
  v.erase(name);
  return v;
}
/// What read says of it, all in one line.
std::string told(variables const& v) {
  try {
    launch const l = read(v);
    return std::to_string(l.rank) + "/" + std::to_string(l.size) + " local " + std::to_string(l.local_rank) + " at " + l.address + ":" +
           std::to_string(l.port) + " by " + l.by;
  } catch (error const& e) { return e.what(); }
}
}  // namespace

TEST_CASE("launchers that speak PMI or PMIx: Slurm's pmi2 and pmix, Cray PALS, Flux, MPICH, MVAPICH, PRRTE") {
  CHECK(told(with(pmi2, slurm_of_four)) == "1/4 local 1 at n1:10012 by Slurm");
  CHECK(told(with(with(pmi2, slurm_of_four), {{"PMI_LOCAL_RANK", "1"}})) == "1/4 local 1 at n1:10012 by Slurm");
  CHECK(told(with(pals, master)) == "1/4 local 1 at h:29500 by Cray PALS");
  CHECK(told(with(flux_job, master)) == "1/4 local 1 at h:29500 by Flux");
  CHECK(told(with(with(flux_job, pals), master)) == "1/4 local 1 at h:29500 by Flux");         // Flux has a part that plays PALS
  CHECK(told(without(without(flux_job, "PMI_RANK"), "PMI_SIZE")) == "1/4 local 1 at :0 by Flux");
  CHECK(told(with(pmi2, {{"MV2_COMM_WORLD_LOCAL_RANK", "1"}})) == "1/4 local 1 at :0 by MPICH");
  CHECK(told(with(pmi2, {{"PMI_LOCAL_RANK", "0"}})) == "1/4 local 0 at :0 by MPICH");
  CHECK(told(with(slurm_of_four, {{"PMIX_RANK", "1"}, {"PMIX_NAMESPACE", "slurm.pmix.12.0"}})) == "1/4 local 1 at n1:10012 by Slurm");
  CHECK(told({{"PMIX_RANK", "2"}, {"PMIX_NAMESPACE", "prterun-n1-77@1"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "0"}}) ==
        "2/4 local 0 at :0 by PRRTE");
  CHECK(told(with(open_mpi, {{"PMIX_RANK", "3"}, {"PMIX_NAMESPACE", "x"}})) == "3/4 local 1 at :0 by Open MPI");
  CHECK(told({{"PMIX_RANK", "2"}}) ==
        "PMIX_RANK is 2, but nobody says how many processes there are: no WORLD_SIZE (at the environment that PRRTE made); "
        "valid: WORLD_SIZE and LOCAL_RANK as well, or another launcher");
  CHECK(told(pmi2).starts_with("MPI_LOCALRANKID is missing (at the environment that MPICH made)"));
}

TEST_CASE("launchers that other launchers started: what they say themselves counts, whatever the job's launcher says of its own tasks") {
  variables const one_each{{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_LOCALID", "0"}, {"SLURM_STEP_NODELIST", "n[1-2]"}};
  CHECK(told(with(mpich, one_each)) == "2/3 local 0 at :0 by MPICH");
  CHECK(told(with(open_mpi, one_each)) == "3/4 local 1 at :0 by Open MPI");
  CHECK(told(with(open_mpi, {{"FLUX_TASK_RANK", "0"}, {"FLUX_JOB_SIZE", "1"}, {"PMI_RANK", "0"}, {"PMI_SIZE", "1"}})) ==
        "3/4 local 1 at :0 by Open MPI");
  CHECK(told(with(mpich, {{"FLUX_TASK_RANK", "0"}, {"FLUX_JOB_SIZE", "1"}})) == "2/3 local 0 at :0 by MPICH");
  CHECK(told(with(one_each, {{"PMIX_RANK", "5"}, {"PMIX_NAMESPACE", "prterun-n1-77@1"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}})) ==
        "5/8 local 1 at :0 by PRRTE");
  // one torchrun on each of two nodes, started by mpirun, srun or flux run: its numbers count, where the nodes' numbers allow for them
  variables const node{{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "0"}};
  std::string const want = "5/8 local 1 at node0:29500 by torchrun";
  CHECK(told(with(torchrun, node)) == want);
  CHECK(told(with(with(torchrun, node), {{"LOCAL_WORLD_SIZE", "4"}})) == want);
  CHECK(told(with(with(torchrun, node), {{"LOCAL_WORLD_SIZE", "4"}, {"GROUP_WORLD_SIZE", "2"}})) == want);
  CHECK(told(with(with(torchrun, node), {{"OMPI_COMM_WORLD_RANK", "0"}, {"GROUP_WORLD_SIZE", "2"}})) == want);  // nodes as they came
  CHECK(told(with(torchrun, {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "0"}})) == want);
  CHECK(told(with(torchrun, {{"FLUX_TASK_RANK", "1"}, {"FLUX_JOB_SIZE", "2"}, {"FLUX_TASK_LOCAL_ID", "0"}})) == want);
  CHECK(told(with(torchrun, {{"PALS_RANKID", "1"}, {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}})) == want);
  CHECK(told(with(with(torchrun, one_each), {{"SLURM_PROCID", "1"}})) == want);
}

TEST_CASE("a plain prterun says the rank alone: what is missing is named, on a host of one's own and in a job of Slurm") {
  variables const plain{{"PMIX_RANK", "1"}, {"PMIX_NAMESPACE", "prterun-n1-77@1"}, {"PMIX_VERSION", "5.0.1"}, {"PMIX_HOSTNAME", "n1"},
                        {"PMIX_SERVER_URI41", "prterun-n1-77@0.0;tcp4://10.0.0.7:4"}};
  variables const job{{"SLURM_JOB_ID", "12"}, {"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_LOCALID", "0"},
                      {"SLURM_STEP_NODELIST", "n1"}};
  for (variables const& around : {variables{}, job}) {
    variables const here = with(plain, around);
    CHECK(told(here).starts_with("PMIX_RANK is 1, but nobody says how many processes there are: no WORLD_SIZE"));
    CHECK(told(with(here, {{"WORLD_SIZE", "2"}})) ==
          "LOCAL_RANK is missing (at the environment that PRRTE made); valid: a number from 0 to 1");
    CHECK(told(with(here, {{"WORLD_SIZE", "1"}, {"LOCAL_RANK", "0"}})) ==
          "PMIX_RANK is '1' (at the environment that PRRTE made); valid: a number from 0 to 0");
    CHECK(told(with(with(here, {{"WORLD_SIZE", "2"}, {"LOCAL_RANK", "1"}}), master)) == "1/2 local 1 at h:29500 by PRRTE");
  }
}

TEST_CASE("whoever contradicts another is named, with both variables and both values") {
  std::pair<variables, char const*> const cases[] = {
      {with(with(pmi2, slurm_of_four), {{"PMI_RANK", "2"}}), "PMI_RANK is 2, but SLURM_PROCID of Slurm is 1"},
      {with(with(pmi2, slurm_of_four), {{"PMI_SIZE", "8"}}), "PMI_SIZE is 8, but SLURM_STEP_NUM_TASKS of Slurm is 4"},
      {with(pals, {{"PMI_RANK", "3"}}), "PMI_RANK is 3, but PALS_RANKID of Cray PALS is 1"},
      {with(flux_job, {{"PMI_RANK", "3"}}), "PMI_RANK is 3, but FLUX_TASK_RANK of Flux is 1"},
      {with(flux_job, {{"PMI_SIZE", "8"}}), "PMI_SIZE is 8, but FLUX_JOB_SIZE of Flux is 4"},
      {with(open_mpi, {{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}}), "PMI_RANK is 1, but OMPI_COMM_WORLD_RANK of Open MPI is 3"},
      {with(flux_job, {{"WORLD_SIZE", "2"}}), "WORLD_SIZE is 2, but FLUX_JOB_SIZE of Flux is 4"},
      {with(pals, {{"WORLD_SIZE", "2"}}), "WORLD_SIZE is 2, but PMI_SIZE of Cray PALS is 4"},
      {with(slurm, {{"WORLD_SIZE", "2"}}), "WORLD_SIZE is 2, but SLURM_STEP_NUM_TASKS of Slurm is 16"},
      {with(torchrun, {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}}),
       "OMPI_COMM_WORLD_RANK is 0, but RANK of torchrun is 5"},
      {with(torchrun, {{"OMPI_COMM_WORLD_RANK", "5"}, {"OMPI_COMM_WORLD_SIZE", "6"}}),
       "OMPI_COMM_WORLD_SIZE is 6, but WORLD_SIZE of torchrun is 8"},
      {with(torchrun, {{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"GROUP_WORLD_SIZE", "4"}}),
       "OMPI_COMM_WORLD_RANK is 1, but RANK of torchrun is 5"},
      {with(torchrun, {{"FLUX_TASK_RANK", "1"}, {"FLUX_JOB_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "2"}}),
       "FLUX_TASK_RANK is 1, but RANK of torchrun is 5"},
      {with(torchrun, {{"MASTER_ADDR", "node0:29501"}}), "MASTER_PORT is 29500, but MASTER_ADDR is 'node0:29501'"}};
  for (auto const& [environment, words] : cases) CHECK_MESSAGE(told(environment).starts_with(words), told(environment));
}

namespace {
struct named_launcher {
  char const *by, *rank, *size, *local;
  variables of(int r, int n) const {
    variables v{{rank, std::to_string(r)}, {size, std::to_string(n)}, {local, "0"}};
    if (std::string(by) == "PRRTE") v["PMIX_NAMESPACE"] = "prterun-n1-77@1";
    return v;
  }
};
/// In the order in which they are believed. What PRRTE leaves to its user stands in torchrun's variables: it is no pair with that.
named_launcher const launchers[] = {{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK"},
                                    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
                                    {"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
                                    {"Flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE", "FLUX_TASK_LOCAL_ID"},
                                    {"PRRTE", "PMIX_RANK", "WORLD_SIZE", "LOCAL_RANK"},
                                    {"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"}};
}  // namespace

TEST_CASE("every pair of launchers in every place: the first is believed, or where both speak of the same processes they must agree") {
  int refused = 0, believed = 0;
  for (std::size_t i = 0; i < std::size(launchers); ++i)
    for (std::size_t j = i + 1; j < std::size(launchers); ++j) {
      named_launcher const &a = launchers[i], &b = launchers[j];
      if (std::string(a.size) == b.size) continue;
      // torchrun's processes are those of whoever started them; PMI's are Open MPI's own. Others start one another
      bool const same = std::string(a.by) == "torchrun" || (std::string(a.by) == "Open MPI" && std::string(b.by) == "MPICH");
      for (int n = 2; n <= 6; ++n)
        for (int m = 2; m <= 6; ++m)
          for (int r = 0; r < n; ++r)
            for (int q = 0; q < m; ++q) {
              variables const v = with(with(a.of(r, n), b.of(q, m)), {{"MASTER_ADDR", "h"}, {"MASTER_PORT", "1"}});
              std::string const says = told(v), own = std::to_string(r) + "/" + std::to_string(n) + " local 0 at h:1 by " + a.by;
              // one torchrun, of local rank 0, on each of m nodes
              bool const on_nodes = std::string(a.by) == "torchrun" && n % m == 0 && r == q * (n / m);
              bool const user = std::string(b.by) == "PRRTE";          // WORLD_SIZE is its user's word for any launcher
              bool const fine = (user ? n == m : !same) || (n == m && r == q) || on_nodes;
              std::string const other = q != r && !user ? std::string(b.rank) + " is " + std::to_string(q) + ", but " + a.rank + " of "
                  + a.by + " is "
                                               : std::string(b.size) + " is " + std::to_string(m) + ", but " + a.size + " of " + a.by
                                                   + " is ";
              CHECK_MESSAGE(says.starts_with(fine ? own : other), (std::string(a.by) + " and " + b.by + ": " + says));
              ++(fine ? believed : refused);
            }
    }
  CHECK(refused > 1000);
  CHECK(believed > 1000);
}

TEST_CASE("torchrun in a Slurm step: one on each node, one for each process, or one of several steps; else both variables are named") {
  variables const at{{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "4"}, {"GROUP_WORLD_SIZE", "2"},
                     {"MASTER_ADDR", "node0"}, {"MASTER_PORT", "29500"}};
  auto const step = [](int rank, int tasks) {
    return variables{{"SLURM_PROCID", std::to_string(rank)}, {"SLURM_STEP_NUM_TASKS", std::to_string(tasks)}, {"SLURM_LOCALID", "0"},
                     {"SLURM_STEP_NODELIST", "n[1-2]"}};
  };
  std::string const want = "5/8 local 1 at node0:29500 by torchrun";
  CHECK(told(with(at, step(1, 2))) == want);
  CHECK(told(with(at, step(5, 8))) == want);
  CHECK(told(with(at, step(0, 1))) == want);
  CHECK(told(with(at, {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}})) == want);              // the job's script is no step
  CHECK(told(with(at, step(6, 16))).starts_with("SLURM_PROCID is 6, but RANK of torchrun is 5"));
  CHECK(told(with(at, step(5, 16))).starts_with("SLURM_STEP_NUM_TASKS is 16, but WORLD_SIZE of torchrun is 8"));
  CHECK(told(with(at, step(1, 3))).starts_with("SLURM_PROCID is 1, but RANK of torchrun is 5"));
  // Slurm's tasks are Open MPI's daemons, on all nodes but that of mpirun
  variables const node{{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "0"}};
  CHECK(told(with(with(at, node), step(2, 3))) == want);
}

TEST_CASE("addresses of rank 0 with a port, by name, by number, of IPv6") {
  auto const at = [](variables const& v) {
    launch const l = read(with({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"}}, v));
    return place_of(l.address, l.port);
  };
  CHECK(at({{"MASTER_ADDR", "node0:29500"}}) == "node0:29500");
  CHECK(at({{"MASTER_ADDR", "node0:29500"}, {"MASTER_PORT", "29500"}}) == "node0:29500");
  CHECK(at({{"MASTER_ADDR", "10.0.0.7:80"}}) == "10.0.0.7:80");
  CHECK(at({{"MASTER_ADDR", "[fd00::1]:80"}}) == "[fd00::1]:80");
  CHECK(at({{"MASTER_ADDR", "[fd00::1]"}, {"MASTER_PORT", "81"}}) == "[fd00::1]:81");
  CHECK(at({{"MASTER_ADDR", "fd00::1"}, {"MASTER_PORT", "81"}}) == "[fd00::1]:81");
  CHECK(at({{"MASTER_ADDR", "fe80::1%eth0"}, {"MASTER_PORT", "81"}}) == "[fe80::1%eth0]:81");
  CHECK(at({{"MASTER_ADDR", "::ffff:10.0.0.1"}, {"MASTER_PORT", "81"}}) == "[::ffff:10.0.0.1]:81");
  CHECK(at({{"MASTER_ADDR", "node0:29500"}, {"TORCHELASTIC_USE_AGENT_STORE", "True"}}) == "node0:29501");
  for (char const* bad : {"node0:", ":80", "node0:0", "node0:65536", "node0:x", "node0:80x", "tcp://node0:80", "[fd00::1",
                          "[fd00::1]80", "[node0]:80", "a b", "node0:80:81", "[]:80", "fd00::1]:80"})
    CHECK_THROWS_WITH_AS(at({{"MASTER_ADDR", bad}, {"MASTER_PORT", "80"}}),
                         doctest::Contains(("MASTER_ADDR is '" + std::string(bad) + "'").c_str()), error);
}

TEST_CASE("numbers of jobs of any federation give a port") {
  for (auto const& [job, port] : std::vector<std::pair<char const*, int>>{
           {"0", 10000}, {"19999", 29999}, {"20000", 10000}, {"67108864", 18864}, {"2214592513", 22513}, {"4294967295", 17295},
           {"18446744073709551615", 21615}}) {
    launch const l = read(with(slurm, {{"SLURM_JOB_ID", job}}));
    CHECK_MESSAGE(l.port == port, job);
  }
  variables v = without(slurm, "SLURM_JOB_ID");
  CHECK(told(v).starts_with("SLURM_JOB_ID is missing"));
  CHECK(read(with(v, {{"SLURM_JOBID", "81234"}})).port == 11234);
  CHECK(read(with(v, {{"MASTER_PORT", "7"}})).port == 7);
  for (char const* bad : {"", "-1", "12.0", "18446744073709551616"})
    CHECK(told(with(slurm, {{"SLURM_JOB_ID", bad}})).starts_with("SLURM_JOB_ID is '" + std::string(bad) + "'"));
}

TEST_CASE("the first host of a Slurm list") {
  CHECK(exec::detail::first_host("alone") == "alone");
  CHECK(exec::detail::first_host("a1,a2") == "a1");
  CHECK(exec::detail::first_host("gpu[007-012,20],login") == "gpu007");
  CHECK(exec::detail::first_host("gpu[3]") == "gpu3");
  CHECK(exec::detail::first_host("rack[2,5]-ib,other") == "rack2-ib");
  CHECK(exec::detail::first_host("n[1-3,5],m[01-03]x[1-2],login") == "n1");
  CHECK(exec::detail::first_host("m[01-03]x[1-2],n[1-3,5],login") == "m01x1");
  CHECK(exec::detail::first_host("[08-12]") == "08");
  CHECK(exec::detail::first_host("n[99-100]") == "n99");
  CHECK(exec::detail::first_host("n[1-3][0-7].site.org") == "n10.site.org");
  CHECK(exec::detail::first_host("n[99999999999999999999998-99999999999999999999999]") == "n99999999999999999999998");
  std::pair<char const*, char const*> const wrong[] = {
      {"broken[3", "no ']' at character 9"}, {"", "no host"}, {",", "no host"}, {"a]", "a ']' without '[' at character 2"},
      {"a[]", "no number at character 3"}, {"a[1-]", "no number at character 5"}, {"a[1,]", "no number at character 5"},
      {"a[3-1]", "a range that ends before it begins at character 5"}, {"a[1[2]]", "no ']' at character 4"}, {"a[x]", "no number"},
      {"a[1 2]", "no ']'"}, {"fine,a[1", "no ']'"}};
  for (auto const& [list, words] : wrong) {
    CAPTURE(list);
    CHECK_THROWS_WITH_AS(exec::detail::first_host(list), doctest::Contains(words), error);
    CHECK_THROWS_WITH_AS(exec::detail::first_host(list), doctest::Contains("(at SLURM_STEP_NODELIST); valid: names as n[1-3,5]"), error);
  }
}

TEST_CASE("random lists of hosts, against one that writes every host out") {
  std::mt19937 draw(1);
  auto const any = [&](int n) { return static_cast<int>(draw() % static_cast<unsigned>(n)); };
  int several = 0, padded = 0;
  for (int trial = 0, n = test_effort::cases(3000); trial < n; ++trial) {
    std::string list;
    std::vector<std::string> hosts;
    for (int k = 0, names = 1 + any(4); k < names; ++k) {
      std::vector<std::string> all{""};
      list += k ? "," : "";
      int groups = 0;
      for (int p = 0, pieces = 1 + any(4); p < pieces; ++p) {
        std::vector<std::string> piece;
        if (p == 0 || any(2)) {
          piece.emplace_back();
          for (int c = 0, length = 1 + any(3); c < length; ++c) piece[0] += "ab-x.7"[any(6)];
          list += piece[0];
        } else {
          ++groups;
          list += "[";
          for (int r = 0, ranges = 1 + any(3); r < ranges; ++r) {
            int const width = any(5), from = any(120), to = from + any(4);
            auto const text = [&](int x) {
              std::string s = std::to_string(x);
              while (static_cast<int>(s.size()) < width) s.insert(0, "0");
              padded += s[0] == '0';
              return s;
            };
            list += (r ? "," : "") + text(from) + (to > from || any(3) == 0 ? "-" + text(to) : "");
            for (int x = from; x <= to; ++x) piece.push_back(text(x));
          }
          list += "]";
        }
        std::vector<std::string> longer;
        for (std::string const& a : all) for (std::string const& b : piece) longer.push_back(a + b);
        all = std::move(longer);
      }
      several += groups > 1;
      hosts.insert(hosts.end(), all.begin(), all.end());
    }
    CAPTURE(list);
    CHECK(exec::detail::first_host(list) == hosts[0]);
    // one character that does not belong there, wherever it is, is refused or leaves a list
    std::string hurt = list;
    hurt.insert(static_cast<std::size_t>(any(static_cast<int>(hurt.size()) + 1)), 1, "[]"[any(2)]);
    CHECK_THROWS_AS(exec::detail::first_host(hurt), error);
  }
  CHECK(several > 300);
  CHECK(padded > 1000);
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
