// tensorpar/prover/find/make_rules.hpp - from families of terms to a set of proved rules: enumerate, pair,
// prove, leave out what is implied
#pragma once
#include <algorithm>
#include <chrono>
#include <optional>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/thread_pool.hpp>
#include <tensorpar/prover/find/candidates.hpp>
#include <tensorpar/prover/find/sharding_rules.hpp>
#include <tensorpar/prover/find/term_closure.hpp>
#include <tensorpar/prover/proof_store.hpp>
#include <tensorpar/prover/try_rule.hpp>
#include <tensorpar/prover/z3.hpp>
#include <tensorpar/rewrite/shipped_rule.hpp>

namespace tensorpar::prover {

struct made_rule {
  // with the conditions that it needs; `name` is its family and its number there
  rewrite::rule what;
  rewrite::rule_kind kind = rewrite::rule_kind::algebra;
  proof proved;
  bool implied = false;                  // by rules before it (prover/find/term_closure.hpp)
};

/// Counts and seconds of every stage; `sharding`: those of the shipped that bring parallel operators in
/// (prover/find/sharding_rules.hpp). `unproved` holds what passed the fingerprint and was not proved, with
/// the reason.
struct rule_making {
  i64 applications = 0, terms = 0, pairs = 0, candidates = 0, verified = 0, hybrid = 0, shipped = 0,
      sharding_rules = 0;
  double enumerate_s = 0, prove_s = 0, imply_s = 0;
  std::vector<made_rule> rules;          // all that were proved, in order
  std::vector<made_rule> unproved;
};

struct making_options {
  u64 seed = 1;
  int samples = 3;                       // per fingerprint
  int threads = 0;                       // 0: one per processor
  // candidates are proved for ranks up to this (where they have any), what is shipped for all
  int first_rank = 3;
  proof_options proofs = {};
  proof_store* store = nullptr;          // verdicts of earlier runs, if any; takes those of this one
};

namespace detail {

inline rewrite::rule_kind kind_of(rewrite::rule const& r, proof const& p) {
  bool sharding = false, algebra = false;
  for (rewrite::pattern_graph const* g : {&r.source, &r.target})
    sharding = sharding || shardings(*g);
  for (int a : p.used)
    algebra = algebra || !shardings(rewrite::parse_rule(axioms[a].text, rewrite::standard_vocabulary(),
                                                        "axiom").source);
  return !sharding ? rewrite::rule_kind::algebra : algebra ? rewrite::rule_kind::hybrid
      : rewrite::rule_kind::parallel;
}
/// The smaller first; of one size the more general: with more tensors, then more parameters.
inline bool comes_before(rewrite::rule const& a, rewrite::rule const& b) {
  auto size = [](rewrite::rule const& r) { return r.source.nodes.size() + r.target.nodes.size(); };
  if (size(a) != size(b)) return size(a) < size(b);
  if (a.tensors.size() != b.tensors.size()) return a.tensors.size() > b.tensors.size();
  return a.parameters.size() > b.parameters.size();
}
inline double seconds_since(std::chrono::steady_clock::time_point t) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - t).count();
}

/// The provers of one thread.
struct two_provers {
  z3_prover few, all;
  two_provers(rewrite::vocabulary const& words, proof_options const& for_few, proof_options const& for_all)
      : few(words, for_few), all(words, for_all) {}
};
/// Proves all of these, in cases of at most this rank first, by so many threads. What the store knows is not
/// proved again. Returns the seconds that it took; rethrows the exception of the first rule that throws.
inline double prove_all(std::vector<made_rule>& these, int rank, making_options const& options,
                        rewrite::vocabulary const& words) {
  auto const since = std::chrono::steady_clock::now();
  proof_options few = options.proofs;
  few.cases.max_rank = std::min(rank, few.cases.max_rank);
  core::thread_pool team(options.threads);
  std::vector<std::optional<two_provers>> provers(idx(team.size()));
  team.run(static_cast<int>(these.size()), [&](int i, int member) {
    made_rule& r = these[idx(i)];
    rewrite::rule const asked = r.what;
    u64 const key = options.store ? proof_key(asked, few) : 0;
    if (auto known = options.store ? options.store->find(key, asked) : std::nullopt) {
      r.proved = std::move(known->verdict);
      r.what = std::move(known->what);
      return;
    }
    std::optional<two_provers>& own = provers[idx(member)];
    if (!own) own.emplace(words, few, options.proofs);
    r.proved = own->few.prove_restricted(r.what);
    if (r.proved.status == proof_status::impossible) r.proved = own->all.prove_restricted(r.what);
    if (options.store) options.store->add(key, asked, {r.proved, r.what});
  });
  return seconds_since(since);
}

/// What is shipped holds for all ranks, under the conditions that these need.
inline void prove_for_all_ranks(rule_making& m, making_options const& options,
                                rewrite::vocabulary const& words) {
  std::vector<made_rule> shipped;
  for (made_rule const& r : m.rules) if (!r.implied) shipped.push_back(r);
  m.prove_s += prove_all(shipped, options.proofs.cases.max_rank, options, words);
  auto again = shipped.begin();
  std::vector<made_rule> proved;
  for (made_rule& r : m.rules) {
    if (!r.implied) r = *again++;
    bool const good = r.implied || r.proved.status == proof_status::proved;
    m.shipped += good && !r.implied;
    (good ? proved : m.unproved).push_back(std::move(r));
  }
  m.rules = std::move(proved);
}
/// What brings shardings in follows from rules that move them, but by way of larger terms; it is proved like
/// all others. `seen`: rules without names, as text.
inline void bring_shardings_in(rule_making& m, std::set<std::string>& seen, making_options const& options,
                               rewrite::vocabulary const& words) {
  std::vector<made_rule> sharding_rules;
  for (made_rule const& r : m.rules)
    if (!r.implied)
      for (rewrite::rule& s : sharding_rules_forms(r.what)) {
        rewrite::rule nameless = s;
        nameless.name.clear();
        if (seen.insert(rewrite::spell(nameless)).second)
          sharding_rules.push_back({std::move(s), {}, {}, false});
      }
  m.prove_s += prove_all(sharding_rules, options.proofs.cases.max_rank, options, words);
  for (made_rule& r : sharding_rules) {
    bool const good = r.proved.status == proof_status::proved;
    if (good) r.kind = kind_of(r.what, r.proved);
    m.sharding_rules += good;
    m.shipped += good;
    (good ? m.rules : m.unproved).push_back(std::move(r));
  }
}

}  // namespace detail

/// Makes the rules of these families. The same for every number of threads. Memory: one family's terms at a
/// time and all candidates.
inline rule_making make_rules(std::vector<family> const& families, making_options const& options = {},
                              rewrite::vocabulary const& words = rewrite::standard_vocabulary()) {
  rule_making m;
  struct found {
    family const* from;
    enumeration terms;
    std::vector<candidate_rule> rules;
    std::size_t first;
  };
  std::vector<found> all;
  std::vector<made_rule> rules;
  std::set<std::string> seen;
  auto start = std::chrono::steady_clock::now();
  for (family const& f : families) {
    found x{&f, enumerate(f, options.seed, words, options.samples), {}, rules.size()};
    m.applications += x.terms.tried;
    m.terms += static_cast<i64>(x.terms.terms.size());
    m.pairs += static_cast<i64>(x.terms.pairs.size());
    x.rules = candidates(f, x.terms, seen);
    std::stable_sort(x.rules.begin(), x.rules.end(),
                     [](auto const& a, auto const& b) { return detail::comes_before(a.what, b.what); });
    for (candidate_rule const& c : x.rules) rules.push_back({c.what, {}, {}, false});
    all.push_back(std::move(x));
  }
  m.candidates = static_cast<i64>(rules.size());
  m.enumerate_s = detail::seconds_since(start);

  m.prove_s += detail::prove_all(rules, options.first_rank, options, words);

  start = std::chrono::steady_clock::now();
  std::vector<rewrite::rule> kept;
  for (found const& x : all) {
    term_closure known(*x.from, x.terms);
    for (rewrite::rule const& r : kept) known.apply(r);
    known.settle();
    std::size_t size = 0;
    int number = 0;
    for (std::size_t i = 0; i < x.rules.size(); ++i) {
      made_rule& r = rules[x.first + i];
      r.what.name = x.from->name + " " + std::to_string(++number);
      if (r.proved.status != proof_status::proved) {
        m.unproved.push_back(std::move(r));
        continue;
      }
      ++m.verified;
      r.kind = detail::kind_of(r.what, r.proved);
      m.hybrid += r.kind == rewrite::rule_kind::hybrid;
      std::size_t const mine = r.what.source.nodes.size() + r.what.target.nodes.size();
      if (mine != size) known.settle();
      size = mine;
      r.implied = known.equal(x.rules[i].from.left, x.rules[i].from.right);
      if (!r.implied) {
        known.apply(r.what);
        kept.push_back(r.what);
      }
      m.rules.push_back(std::move(r));
    }
  }
  m.imply_s = detail::seconds_since(start);

  detail::prove_for_all_ranks(m, options, words);
  detail::bring_shardings_in(m, seen, options, words);
  return m;
}

}  // namespace tensorpar::prover
