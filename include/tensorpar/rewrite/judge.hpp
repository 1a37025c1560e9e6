// tensorpar/rewrite/judge.hpp - is a rule of another system true here, under which conditions, and if not, why
#pragma once
#include <tensorpar/rewrite/import.hpp>
#include <tensorpar/rewrite/try_rule.hpp>
#include <tensorpar/rewrite/z3.hpp>

namespace tensorpar {

/// What became of an imported rule. Accepted: random instances found nothing against it, and `proved` says whether Z3 proved it;
/// `what` holds the conditions that it needs. Rejected: `reason` begins with "unbound variable", "replica semantics", "shape coincidence"
/// or "unsupported"; where the rule could be tried and failed, `counterexample` says on what. Undecided, which is neither: `reason` begins
/// with "not decided": its sides differ only where functions are random ones, so that it may be true of the functions that it names.
struct import_verdict {
  bool accepted = false, proved = false, undecided = false;
  std::string reason, counterexample;
  std::optional<rule> what;
};

/// Judges one rule. Deterministic. O(cases * what Z3 needs + instances).
inline import_verdict judge(foreign_rule const& f, bool replicas, std::string const& name, prover& p, int instances = 100,
                            vocabulary const& words = standard_vocabulary()) {
  import_verdict v;
  imported_rule imported = import_rule(f, replicas, name);
  if (!imported.what) {
    v.reason = std::move(imported.reason);
    return v;
  }
  rule r = std::move(*imported.what);
  proof const q = p.prove_restricted(r);
  v.proved = q.status == proof_status::proved;
  trial const t = try_rule(r, instances, name_hash(name), words);
  v.what = std::move(r);
  if (q.status == proof_status::impossible) {
    rule alone = *v.what;
    alone.target = alone.source;
    v.reason = cases_of(alone, words).empty()
                   ? "replica semantics: the source adds copies, or works on partial sums as if they were whole; no valid graph holds it"
                   : "replica semantics: no operands are valid on both sides, which want other copies or partial sums";
  } else if (!t.unknown.empty()) {
    v.reason = "unsupported: it is not known what " + t.unknown + " computes";
  } else if (!t.counterexample.empty()) {
    v.reason = t.counterexample.find("other values") != std::string::npos ? "shape coincidence: it holds for some extents only"
                                                                          : "replica semantics: the two sides lie differently";
    v.counterexample = t.counterexample;
  } else if (t.undecided > 0) {
    v.undecided = true;
    v.reason = "not decided: equal in real numbers, not where functions are random ones; " + t.open;
  } else if (t.instances == 0) {
    v.reason = "unsupported: no small instance of it is valid";
  } else {
    v.accepted = true;
    return v;
  }
  v.proved = false;
  return v;
}

}  // namespace tensorpar
