// tensorpar/prover/judge.hpp - is a rule of another system true here, under which conditions, and if not, why
#pragma once
#include <tensorpar/prover/import.hpp>
#include <tensorpar/prover/try_rule.hpp>
#include <tensorpar/prover/z3.hpp>

namespace tensorpar::prover {

/// What became of an imported rule. Accepted: random instances found nothing against it, and `proved` says
/// whether Z3 proved it; `what` holds the conditions that it needs. Rejected: `reason` begins with "unbound
/// variable", "replica semantics", "shape coincidence" (for the same axes, numbers and functions it holds on
/// some extents, and not on others), "other values" or "unsupported". Where the rule could be tried and
/// failed, `counterexample` says on what. Undecided, which is neither: `reason` begins with "not decided":
/// its sides differ only where functions are random ones, so that it may be true of the functions that it
/// names; what real numbers say follows.
struct import_verdict {
  bool accepted = false, proved = false, undecided = false;
  std::string reason, counterexample;
  std::optional<rewrite::rule> what;
};

namespace detail {

/// Why a rule is false whose sides have other values: what they have in common. O(instances).
inline std::string how_false(rewrite::rule const& r, int instances, u64 seed,
                             rewrite::vocabulary const& words) {
  auto const cases = cases_of(r, words);
  std::mt19937 draw(static_cast<std::uint32_t>(seed));
  struct met { bool equal = false, apart = false; };
  // ranks, axes, numbers and functions; degrees go with extents
  std::map<std::vector<i64>, met> by_numbers;
  bool some = false;
  for (int n = 0, tried = 0; n < 20 * instances && tried < 4 * instances; ++n) {
    auto const g = random_instance(r, cases[draw() % cases.size()], draw, words);
    if (!g) continue;
    compared_sides const c = compare_sides(*g, r, draw);
    if (!c.target_valid || c.by_functions) continue;
    ++tried;
    std::vector<i64> key(g->at.rank.begin(), g->at.rank.end());
    for (std::size_t p = 0; p < r.parameters.size(); ++p)
      if (r.parameters[p].kind != rewrite::parameter_kind::degree) key.push_back(g->at.parameter[p]);
    met& m = by_numbers[key];
    (c.difference.empty() ? m.equal : m.apart) = true;
    some = some || m.equal;
    if (m.equal && m.apart) return "shape coincidence: it holds for some extents only";
  }
  return some ? "other values: it holds for some axes, numbers or functions only"
              : "other values: it holds on nothing that was tried";
}
/// What is known of a rule whose sides differ only where functions are random ones.
inline std::string how_open(trial const& t) {
  std::string const all = std::to_string(t.undecided) + (t.undecided == 1 ? " instance" : " instances");
  return "not decided: the sides differ where functions are random ones, on " + all +
         "; in real numbers they are equal on " +
         (t.agreed == t.undecided
              ? "all of them; "
              : std::to_string(t.agreed) + " of them, and nothing is known of the others; ") +
         t.open;
}

}  // namespace detail

/// Judges one rule. Deterministic. O(cases * what Z3 needs + instances).
inline import_verdict judge(foreign_rule const& f, bool replicas, std::string const& name, z3_prover& p,
                            int instances = 100, rewrite::vocabulary const& words =
                                rewrite::standard_vocabulary()) {
  import_verdict v;
  imported_rule imported = import_rule(f, replicas, name);
  if (!imported.what) {
    v.reason = std::move(imported.reason);
    return v;
  }
  rewrite::rule r = std::move(*imported.what);
  proof const q = p.prove_restricted(r);
  v.proved = q.status == proof_status::proved;
  trial const t = try_rule(r, instances, core::name_hash(name), words);
  v.what = std::move(r);
  if (q.status == proof_status::impossible) {
    rewrite::rule alone = *v.what;
    alone.target = alone.source;
    v.reason =
        cases_of(alone, words).empty()
            ? "replica semantics: the source adds copies, or works on partial sums as if they were whole; "
              "no valid graph holds it"
            : "replica semantics: no operands are valid on both sides, which want other copies or partial "
              "sums";
  } else if (!t.unknown.empty()) {
    v.reason = "unsupported: it is not known what " + t.unknown + " computes";
  } else if (!t.counterexample.empty()) {
    bool const other_values = t.counterexample.find(": other values, ") != std::string::npos;
    v.reason = other_values ? detail::how_false(*v.what, instances, core::name_hash(name), words)
                            : "replica semantics: the two sides lie differently";
    v.counterexample = t.counterexample;
  } else if (t.undecided > 0) {
    v.undecided = true;
    v.reason = detail::how_open(t);
  } else if (t.instances == 0) {
    v.reason = "unsupported: no small instance of it is valid";
  } else {
    v.accepted = true;
    return v;
  }
  v.proved = false;
  return v;
}

}  // namespace tensorpar::prover
