// tensorpar/exec/launch.hpp - how this process was started: its rank and where rank 0 is, from what launchers put into the environment
#pragma once
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <tensorpar/core/error.hpp>

namespace tensorpar {

/// One process of a run. Where no launcher says anything: the only one.
struct launch {
  int rank = 0, size = 1;
  int local_rank = 0;                // among the processes of its host
  std::string address;               // the host of rank 0; empty: not said
  int port = 0;                      // where it may listen; 0: not said
  std::string by;                    // who says so: "torchrun", "Open MPI", "MPICH", "Slurm"; empty: nobody
  friend bool operator==(launch const&, launch const&) = default;
};

namespace detail {

/// The first host of a Slurm list: "gpu[007-012,20],login" begins with gpu007.
inline std::string first_host(std::string_view list) {
  std::size_t const end = list.find_first_of(",["), close = list.find(']');
  if (end == list.npos || list[end] == ',' || close == list.npos) return std::string(list.substr(0, end));
  std::size_t const digits = list.find_first_of(",-]", end + 1), after = list.find(',', close);
  return std::string(list.substr(0, end)).append(list.substr(end + 1, digits - end - 1)).append(list.substr(close + 1, after - close - 1));
}

/// Reads numbers from an environment: `get(name)` is a string, or nullptr.
template <class Get> struct launch_reader {
  Get const& get;
  bool has(char const* name) const { return get(name) != nullptr; }
  int number(char const* name, char const* by, int least, int most) const {
    char const* const text = get(name);
    std::string const valid = "a number from " + std::to_string(least) + " to " + std::to_string(most);
    if (!text) throw error(std::string(name) + " is missing", std::string("the environment that ") + by + " made", valid);
    int n = 0;
    auto const [end, wrong] = std::from_chars(text, text + std::strlen(text), n);
    if (wrong != std::errc() || *end || n < least || n > most)
      throw error(std::string(name) + " is '" + text + "'", std::string("the environment that ") + by + " made", valid);
    return n;
  }
  void agree(char const* name, int n, char const* by, int other, std::string const& who) const {
    if (n == other) return;
    throw error(std::string(name) + " is " + std::to_string(n) + ", but " + who + " says " + std::to_string(other),
                std::string("the environment that ") + by + " made", "one launcher, or two that agree");
  }
};

}  // namespace detail

/// What the environment says, `get(name)` being the value of a variable or nullptr. The first of these that says anything is believed:
/// RANK, WORLD_SIZE, LOCAL_RANK (torchrun); OMPI_COMM_WORLD_{RANK,SIZE,LOCAL_RANK} (Open MPI); PMI_RANK, PMI_SIZE, MPI_LOCALRANKID (MPICH);
/// SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_LOCALID (a step of Slurm; its task may itself be a launcher). MASTER_ADDR and MASTER_PORT say
/// where rank 0 is (with a torchrun that listens there itself, TORCHELASTIC_USE_AGENT_STORE=True, it is the next port);
/// without them a Slurm step names its first host and a port that follows from the job's number. Nothing is said: a run of one process.
/// Throws `error` for a variable that is missing or no number in range, as a rank where several processes are said, and for launchers that
/// contradict each other.
template <class Get> launch read_launch(Get const& get) {
  struct names { char const *by, *rank, *size, *local; };
  static constexpr names known[] = {{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK"},
                                    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
                                    {"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
                                    {"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"}};
  constexpr int most = 1 << 24;
  detail::launch_reader<Get> const env{get};
  launch r;
  for (names const& n : known) {
    bool const slurm = std::strcmp(n.by, "Slurm") == 0;
    if (!env.has(slurm ? n.size : n.rank)) continue;             // a job's batch script has SLURM_PROCID too
    int const size = env.number(n.size, n.by, 1, most), rank = env.number(n.rank, n.by, 0, size - 1);
    if (!r.by.empty()) {
      if (slurm) continue;                                       // the step may have started the launcher
      env.agree(n.rank, rank, n.by, r.rank, r.by);
      env.agree(n.size, size, n.by, r.size, r.by);
      continue;
    }
    r.rank = rank;
    r.size = size;
    r.local_rank = size == 1 && !env.has(n.local) ? 0 : env.number(n.local, n.by, 0, size - 1);
    r.by = n.by;
  }
  if (r.by.empty())
    for (names const& n : known)                                 // one of several, but which?
      if (int const size = env.has(n.size) ? env.number(n.size, n.by, 1, most) : 1; size > 1) env.number(n.rank, n.by, 0, size - 1);
  if (!r.by.empty() && r.by != "torchrun" && env.has("WORLD_SIZE"))
    env.agree("WORLD_SIZE", env.number("WORLD_SIZE", "its user", 1, most), "its user", r.size, r.by);
  if (char const* address = get("MASTER_ADDR"); address && *address) {
    r.address = address;
    if (env.has("MASTER_PORT") || r.size > 1) r.port = env.number("MASTER_PORT", r.by.empty() ? "its user" : r.by.c_str(), 1, 65535);
    char const* const taken = get("TORCHELASTIC_USE_AGENT_STORE");         // torchrun itself listens there: the next port
    if (r.by == "torchrun" && taken && std::strcmp(taken, "True") == 0) r.port += r.port < 65535 ? 1 : -1;
  } else if (char const* hosts = get("SLURM_STEP_NODELIST"); hosts && r.by == "Slurm") {
    r.address = detail::first_host(hosts);
    r.port = env.has("MASTER_PORT") ? env.number("MASTER_PORT", "Slurm", 1, 65535)
                                    : 10000 + env.number("SLURM_JOB_ID", "Slurm", 0, 2147483647) % 20000;
  }
  return r;
}
/// Which of the accelerators that this process sees is its nth device's: processes of a host take one each, and round.
constexpr int accelerator_of(launch const& how, int nth, int accelerators) { return (how.local_rank + nth) % accelerators; }

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
