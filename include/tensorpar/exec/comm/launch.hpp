// tensorpar/exec/comm/launch.hpp - how this process was started: its rank and where rank 0 is, from what
// launchers put into the environment
#pragma once
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <tensorpar/core/error.hpp>
#include <tensorpar/exec/comm/host_list.hpp>
#include <tensorpar/exec/comm/launch_variables.hpp>

namespace tensorpar {

/// One process of a run. Where no launcher says anything: the only one.
struct launch {
  int rank = 0, size = 1;
  int local_rank = 0;                // among the processes of its host
  std::string address;               // the host of rank 0; empty: not said
  int port = 0;                      // where it may listen; 0: not said
  // who says so: "torchrun", "Open MPI", "Cray PALS", "Flux", "MPICH", "PRRTE", "Slurm"; empty: nobody
  std::string by;
  friend bool operator==(launch const&, launch const&) = default;
};

namespace detail {

/// A launcher's variables. `local`: those that may say the rank among the processes of a host, the usual one
/// first.
struct launcher {
  char const *by, *rank, *size;
  char const* local[4];
};
inline constexpr launcher torchrun{"torchrun", "RANK", "WORLD_SIZE", {"LOCAL_RANK"}};
inline constexpr launcher open_mpi{
    "Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", {"OMPI_COMM_WORLD_LOCAL_RANK"}};
inline constexpr launcher flux{"Flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE", {"FLUX_TASK_LOCAL_ID"}};
inline constexpr launcher cray_pals{
    "Cray PALS", "PALS_RANKID", "PMI_SIZE", {"PALS_LOCAL_RANKID", "PMI_LOCAL_RANK"}};
inline constexpr launcher mpich{
    "MPICH",
    "PMI_RANK",
    "PMI_SIZE",
    {"MPI_LOCALRANKID", "PMI_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_RANK", "LOCAL_RANK"}};
inline constexpr launcher prrte{"PRRTE", "PMIX_RANK", "WORLD_SIZE", {"LOCAL_RANK", "PMIX_LOCAL_RANK"}};
inline constexpr launcher slurm{"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", {"SLURM_LOCALID"}};

/// What launchers have said, once it is clear which of them started this process and which of them started
/// that one.
template <class Get> struct launch_rules {
  exec::detail::launch_reader<Get> env;
  static constexpr int most = 1 << 24;

  struct place { int rank, size; };
  place place_by(launcher const& l) const {
    int const size = env.number(l.size, l.by, 1, most);
    return {env.number(l.rank, l.by, 0, size - 1), size};
  }
  void agree(launcher const& a, launcher const& b) const {
    place const x = place_by(a), y = place_by(b);
    env.agree(a.rank, x.rank, a.by, b.rank, y.rank, b.by);
    env.agree(a.size, x.size, a.by, b.size, y.size, b.by);
  }
  /// MPICH's own launcher, and Intel's, say the rank among a host's processes; what only speaks PMI does not.
  bool by_hydra() const { return env.has(mpich.rank) && env.has(mpich.local[0]); }
  bool by_job() const { return env.has(flux.rank) || env.has(cray_pals.rank); }

  /// Did `srun --mpi=pmi2` make PMI's variables? Throws `error` where they contradict Slurm's and nobody else
  /// says that they are its own.
  bool pmi_of_slurm() const {
    if (!env.has(slurm.size) || by_hydra() || by_job()) return false;
    if (env.get(env.any_of(mpich.local))) {
      place const a = place_by(mpich), b = place_by(slurm);
      return a.rank == b.rank && a.size == b.size;
    }
    agree(mpich, slurm);
    return true;
  }
  /// Did `srun --mpi=pmix` make PMIx's? They say no number of processes.
  bool pmix_of_slurm() const {
    char const* const name = env.get("PMIX_NAMESPACE");
    return env.has(slurm.size) && (!name || std::string_view(name).starts_with("slurm"));
  }
  /// Who started this process itself; null: nobody. What a job's launcher says (Flux, PALS, Slurm) may be
  /// about a launcher that it started.
  launcher const* starter() const {
    if (env.has(torchrun.rank)) return &torchrun;
    if (env.has(open_mpi.rank)) return &open_mpi;
    if (by_hydra()) return &mpich;
    if (env.has(flux.rank)) return &flux;
    if (env.has(cray_pals.rank)) return &cray_pals;
    if (env.has(mpich.rank) && !pmi_of_slurm()) return &mpich;
    if (env.has(prrte.rank) && !pmix_of_slurm()) return &prrte;
    return env.has(slurm.size) ? &slurm : nullptr;               // a job's batch script has SLURM_PROCID too
  }

  /// Has the other launcher started one torchrun on each of its nodes?
  bool one_torchrun_each(launcher const& other) const {
    place const in = place_by(torchrun), out = place_by(other);
    auto const is = [&](char const* name, int n) { return env.number(name, torchrun.by, 0, most) == n; };
    if (env.has("GROUP_WORLD_SIZE")) return is("GROUP_WORLD_SIZE", out.size);
    if (in.size % out.size != 0) return false;
    int const each = in.size / out.size, local = in.rank - out.rank * each;
    return env.has("LOCAL_WORLD_SIZE") ? is("LOCAL_WORLD_SIZE", each)
                                       : env.has("LOCAL_RANK") && is("LOCAL_RANK", local);
  }
  /// Is what Slurm says about a torchrun, or about the processes themselves? It may be about another
  /// launcher, which started those. A step of one task knows of no others: torchruns of several steps, or
  /// jobs, may have met.
  bool about_torchrun() const {
    if (!env.has(slurm.rank) || !env.has(slurm.size) || place_by(slurm).size == 1) return false;
    return !env.has(open_mpi.rank) && !by_hydra() && !by_job() && !(env.has(prrte.rank) && !pmix_of_slurm());
  }
  /// Throws `error` where two that speak of the same processes disagree.
  void require_agreement(launcher const& own) const {
    bool const started_by_job = by_job() && !by_hydra();         // whose PMI it is then
    if (&own == &torchrun)
      for (launcher const* other : {&open_mpi, &flux, &cray_pals, &mpich})
        if (env.has(other->rank) && env.has(other->size) && !one_torchrun_each(*other)) agree(*other, own);
    if (&own == &torchrun && about_torchrun() && !one_torchrun_each(slurm)) agree(slurm, own);
    if (env.has(mpich.rank) &&
        ((&own == &open_mpi && !started_by_job) || &own == &flux || &own == &cray_pals))
      agree(mpich, own);
    if (&own != &torchrun && &own != &prrte && env.has(torchrun.size))
      env.agree(torchrun.size, env.number(torchrun.size, "its user", 1, most), "its user", own.size,
                place_by(own).size, own.by);
  }
  /// Throws `error` where there are several processes, and this one has no number.
  void require_alone() const {
    for (launcher const* l : {&torchrun, &open_mpi, &flux, &mpich})
      if (int const size = env.has(l->size) ? env.number(l->size, l->by, 1, most) : 1; size > 1)
        env.number(l->rank, l->by, 0, size - 1);
  }
  /// MASTER_ADDR, which may hold a port, and MASTER_PORT.
  void read_master(launch& r, char const* address) const {
    exec::detail::host_and_port const at = exec::detail::read_place(address, "MASTER_ADDR");
    r.address = at.host;
    r.port = at.port;
    if (!env.has("MASTER_PORT") && (at.port || r.size == 1)) return;
    r.port = env.number("MASTER_PORT", r.by.empty() ? "its user" : r.by.c_str(), 1, 65535);
    if (at.port && at.port != r.port)
      throw error("MASTER_PORT is " + std::to_string(r.port) + ", but MASTER_ADDR is '" + address + "'",
                  "the environment", "one port, in either of the two or in both");
  }
  void read_slurm_hosts(launch& r, char const* hosts) const {
    char const* const job =
        env.has("SLURM_JOB_ID") || !env.has("SLURM_JOBID") ? "SLURM_JOB_ID" : "SLURM_JOBID";
    r.address = exec::detail::first_host(hosts);
    r.port = env.has("MASTER_PORT") ? env.number("MASTER_PORT", slurm.by, 1, 65535)
                                    // a federation's are large
                                    : 10000 + static_cast<int>(env.whole(job, slurm.by, 0, ~u64{0}) % 20000);
  }
};

}  // namespace detail

/// What the environment says, `get(name)` being the value of a variable or nullptr. Who started this process
/// is believed, the first of these:
///  - torchrun: RANK, WORLD_SIZE, LOCAL_RANK
///  - Open MPI: OMPI_COMM_WORLD_{RANK,SIZE,LOCAL_RANK}
///  - MPICH, Intel MPI: PMI_RANK, PMI_SIZE, MPI_LOCALRANKID
///  - Flux: FLUX_TASK_RANK, FLUX_JOB_SIZE, FLUX_TASK_LOCAL_ID. Cray PALS: PALS_RANKID, PMI_SIZE,
///    PALS_LOCAL_RANKID
///  - others that speak PMI: PMI_RANK, PMI_SIZE, PMI_LOCAL_RANK; from Slurm's (pmi2) the next but one
///  - PRRTE without Open MPI: PMIX_RANK, which says no more, so that WORLD_SIZE and LOCAL_RANK are its user's
///  - a step of Slurm: SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_LOCALID; its task may itself be a launcher
/// MASTER_ADDR, maybe with a port, and MASTER_PORT say where rank 0 is. With a torchrun that listens there
/// itself, TORCHELASTIC_USE_AGENT_STORE=True, it is the next port. Without them a Slurm step names its first
/// host (exec/comm/host_list.hpp) and a port that follows from the job's number. Nothing is said: a run of
/// one process.
/// Throws `error` for a variable that is missing or no number in range, such as a rank where several
/// processes are said. Also for launchers that contradict each other, naming both variables. Three things are
/// no contradiction: one torchrun on each node that another launcher gave, one that a Slurm step of one task
/// started, and Slurm's words about tasks that became another launcher.
template <class Get> launch read_launch(Get const& get) {
  detail::launch_rules<Get> const rules{{get}};
  exec::detail::launch_reader<Get> const& env = rules.env;
  launch r;
  if (detail::launcher const* const own = rules.starter()) {
    if (own == &detail::prrte && !env.has(own->size))
      throw error(std::string("PMIX_RANK is ") + get("PMIX_RANK") +
                      ", but nobody says how many processes there are: no WORLD_SIZE",
                  "the environment that PRRTE made",
                  "WORLD_SIZE and LOCAL_RANK as well, or another launcher");
    auto const place = rules.place_by(*own);
    rules.require_agreement(*own);
    r.rank = place.rank;
    r.size = place.size;
    char const* const local = env.any_of(own->local);
    r.local_rank = r.size == 1 && !env.has(local) ? 0 : env.number(local, own->by, 0, r.size - 1);
    r.by = own->by;
  } else {
    rules.require_alone();
  }
  if (char const* address = get("MASTER_ADDR"); address && *address) rules.read_master(r, address);
  else if (char const* hosts = get("SLURM_STEP_NODELIST"); hosts && r.by == detail::slurm.by)
    rules.read_slurm_hosts(r, hosts);
  // torchrun itself listens there: the next port
  char const* const taken = get("TORCHELASTIC_USE_AGENT_STORE");
  if (r.by == detail::torchrun.by && r.port && taken && std::strcmp(taken, "True") == 0)
    r.port += r.port < 65535 ? 1 : -1;
  return r;
}
/// Which of the accelerators that this process sees is its nth device's: processes of a host take one each,
/// and round.
constexpr int accelerator_of(launch const& how, int nth, int accelerators) {
  return (how.local_rank + nth) % accelerators;
}

/// "address:port", an address of IPv6 in brackets.
inline std::string place_of(std::string const& address, int port) {
  bool const bare = address.find(':') != address.npos && address[0] != '[';
  return (bare ? "[" + address + "]" : address) + ":" + std::to_string(port);
}
/// Of this process.
inline launch read_launch() {
  return read_launch([](char const* name) -> char const* { return std::getenv(name); });
}

}  // namespace tensorpar
