// tensorpar/exec/comm/agreement.hpp - what all processes of a run must have alike is compared, and what fails
// on one of them fails on all
#pragma once
#include <algorithm>
#include <bit>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <tensorpar/core/hash.hpp>
#include <tensorpar/core/index.hpp>
#include <tensorpar/exec/comm/processes.hpp>
#include <utility>
#include <vector>

namespace tensorpar::exec {

/// One thing that every process of a run must have alike: what it is called, and its value as a number, a
/// real number's bits, or a hash.
struct shared_fact {
  enum class kind : int { number, real, hash };
  std::string name;
  u64 value = 0;
  kind as = kind::number;
};

namespace detail {

inline u64 fact_of(double x) { return std::bit_cast<u64>(x); }
inline std::string text_of(shared_fact const& f, u64 value) {
  char text[40];
  if (f.as == shared_fact::kind::number) return std::to_string(value);
  if (f.as == shared_fact::kind::real)
    std::snprintf(text, sizeof text, "%.17g", std::bit_cast<double>(value));
  else std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

/// Several ranks of an executor's world live in other processes; `local` are this one's, of `ranks`.
struct run_seats {
  std::vector<int> const& local;
  int ranks;
  bool alone() const { return static_cast<int>(local.size()) == ranks; }
};

/// By rank: the numbers of its process, as many for each. Exact below 2^53. One sum of ranks * n doubles.
template <class World>
std::vector<double> of_all_ranks(World& h, run_seats const& s, std::vector<double> const& mine) {
  std::vector<double> all(idx(s.ranks) * mine.size(), 0);
  for (int r : s.local)
    std::copy(mine.begin(), mine.end(),
              all.begin() + static_cast<std::ptrdiff_t>(idx(r) * mine.size()));
  add_up(h, all);
  return all;
}
/// The same of 64-bit words: two numbers each.
template <class World>
std::vector<u64> words_of_all_ranks(World& h, run_seats const& s, std::vector<u64> const& mine) {
  std::vector<double> halves;
  for (u64 w : mine) {
    halves.push_back(static_cast<double>(w >> 32));
    halves.push_back(static_cast<double>(w & 0xffffffffu));
  }
  std::vector<double> const all = of_all_ranks(h, s, halves);
  std::vector<u64> r;
  for (std::size_t i = 0; i < all.size(); i += 2)
    r.push_back(static_cast<u64>(all[i]) << 32 | static_cast<u64>(all[i + 1]));
  return r;
}
/// The string of the process that has `rank` replaces everybody's.
template <class World> void share_text(World& h, int rank, std::string& s) {
  u64 n = s.size();
  share(h, rank, &n, sizeof n);
  s.resize(n);
  if (n) share(h, rank, s.data(), n);
}

/// By rank: the number of its process, processes being counted by their lowest ranks.
template <class World> std::vector<int> processes_of(World& h, run_seats const& s) {
  std::vector<u64> const lowest = words_of_all_ranks(h, s, {static_cast<u64>(s.local[0])});
  std::vector<int> r;
  int n = 0;
  for (std::size_t i = 0; i < lowest.size(); ++i)
    r.push_back(lowest[i] == i ? n++ : r[idx(lowest[i])]);
  return r;
}

/// "process 0 has step 1, processes 1 and 2 have step 3": `values` by rank.
inline std::string who_has(shared_fact const& f, std::vector<u64> const& values,
                           std::vector<int> const& process) {
  std::vector<std::pair<u64, std::vector<int>>> groups;               // in the order of the lowest process
  for (std::size_t r = 0; r < values.size(); ++r) {
    auto g = std::find_if(groups.begin(), groups.end(), [&](auto const& x) { return x.first == values[r]; });
    if (g == groups.end()) g = groups.insert(g, {values[r], {}});
    if (g->second.empty() || std::find(g->second.begin(), g->second.end(), process[r]) == g->second.end())
      g->second.push_back(process[r]);
  }
  constexpr std::size_t most = 8;                                      // groups, and processes of each
  std::string text;
  for (std::size_t g = 0; g < groups.size() && g < most; ++g) {
    std::vector<int> const& p = groups[g].second;
    text.append(g ? ", " : "").append(p.size() > 1 ? "processes " : "process ");
    for (std::size_t i = 0; i < p.size() && i < most; ++i)
      text.append(i == 0 ? "" : i + 1 == p.size() ? " and " : ", ").append(std::to_string(p[i]));
    if (p.size() > most) text.append(" and " + std::to_string(p.size() - most) + " more");
    text.append(p.size() > 1 ? " have " : " has ")
        .append(f.name)
        .append(" ")
        .append(text_of(f, groups[g].first));
  }
  return groups.size() > most ? text.append(", and so on") : text;
}

/// Throws `error`, on every process, unless all have come from the same function. Collective.
template <class World> void require_same_call(World& h, run_seats const& s, std::string const& where) {
  std::vector<u64> const calls = words_of_all_ranks(h, s, {core::name_hash(where)});
  auto const other = std::find_if(calls.begin(), calls.end(), [&](u64 x) { return x != calls[0]; });
  if (other == calls.end()) return;
  int const rank = static_cast<int>(other - calls.begin());
  std::string one = where, two = where;
  share_text(h, 0, one);
  share_text(h, rank, two);
  std::string const process = std::to_string(processes_of(h, s)[idx(rank)]);
  throw error("process 0 calls " + one + ", process " + process + " calls " + two, "executor",
              "the same call on every process");
}
/// Throws `error`, on every process, naming the first fact that is not the same on all, and who has what. All
/// give the same names, in one order. Collective.
template <class World>
void require_alike(World& h, run_seats const& s, std::vector<shared_fact> const& facts,
                   std::string const& where) {
  if (s.alone() || facts.empty()) return;
  std::vector<u64> mine, one(idx(s.ranks));
  for (shared_fact const& f : facts) mine.push_back(f.value);
  std::vector<u64> const all = words_of_all_ranks(h, s, mine);
  for (std::size_t k = 0; k < facts.size(); ++k) {
    for (std::size_t r = 0; r < one.size(); ++r) one[r] = all[r * facts.size() + k];
    if (std::all_of(one.begin(), one.end(), [&](u64 x) { return x == one[0]; })) continue;
    throw error(who_has(facts[k], one, processes_of(h, s)), where,
                "the same " + facts[k].name + " on every process");
  }
}

/// This process's failure, in the words that all are told.
struct told_failure {
  std::string problem, where, valid;
  explicit told_failure(std::exception_ptr const& e) {
    if (!e) return;
    try {
      std::rethrow_exception(e);
    } catch (error const& x) {
      problem = x.problem(), where = x.where(), valid = x.valid();
    } catch (std::exception const& x) {
      problem = x.what();
    } catch (...) {
      problem = "a failure without words";
    }
  }
};
/// Throws, on every process, the failure of the first one that has failed. Precondition: one has. `failed`:
/// by rank. Collective.
template <class World>
[[noreturn]] void throw_everywhere(World& h, run_seats const& s, std::vector<char> const& failed,
                                   std::exception_ptr const& mine) {
  int const rank = static_cast<int>(std::find(failed.begin(), failed.end(), 1) - failed.begin());
  told_failure t(mine);
  for (std::string* text : {&t.problem, &t.where, &t.valid}) share_text(h, rank, *text);
  std::string const process = "process " + std::to_string(processes_of(h, s)[idx(rank)]);
  throw error(t.problem, t.where.empty() ? process : t.where + ", " + process, t.valid);
}

/// All processes come here with what has failed on them, or null, and with facts. Throws on every process
/// what has failed on the first one, or the first difference between facts. `facts()` is asked for where
/// `digest`, a hash of them, is not the same on all, or all come from other functions (`where`): where
/// nothing is wrong this is one sum of a double for each rank. On a run of one process: rethrows.
template <class World, class Facts>
void agree(World& h, run_seats const& s, std::exception_ptr const& mine, u64 digest, Facts const& facts,
           std::string const& where) {
  if (s.alone()) {
    if (mine) std::rethrow_exception(mine);
    return;
  }
  u64 const hash = core::hasher{}.add(digest).add(std::string_view(where)).value();
  double const word = mine ? 0 : 1 + static_cast<double>(hash >> 12);          // below 2^53: exact
  std::vector<double> const all = of_all_ranks(h, s, {word});
  std::vector<char> failed;
  for (double x : all) failed.push_back(x == 0);
  if (std::find(failed.begin(), failed.end(), 1) != failed.end()) throw_everywhere(h, s, failed, mine);
  if (std::all_of(all.begin(), all.end(), [&](double x) { return x == all[0]; })) return;
  require_same_call(h, s, where);
  require_alike(h, s, facts(), where);
  throw error("the processes differ in what no fact tells", where,
              "one program and one call on every process");
}
/// f() on every process of the run, as `executor::together` has it; a run that knows of no other processes
/// calls it.
template <class Run, class F>
void on_all(Run const& run, std::string const& where, F const& f, bool anew = false) {
  if constexpr (requires { run.together(where, f, anew); }) run.together(where, f, anew);
  else f();
}
inline u64 digest_of(std::vector<shared_fact> const& facts) {
  core::hasher h;
  for (shared_fact const& f : facts) h.add(f.value);
  return h.value();
}

}  // namespace detail
}  // namespace tensorpar::exec
