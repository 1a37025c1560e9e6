// tensorpar/prover/proof_store.hpp - verdicts of proofs that outlive a program: what was tried is known by a
// hash of rule and axioms
#pragma once
#include <tensorpar/core/hash.hpp>
#include <tensorpar/prover/z3.hpp>
#include <tensorpar/rewrite/rule_text.hpp>

namespace tensorpar::prover {

/// What became of a rule, and the rule with the conditions that it needed.
struct stored_proof {
  proof verdict;
  rewrite::rule what;
};

/// Where verdicts are kept. `add` is called by several threads.
/// Model: `proof_file` (prover/proof_file.hpp).
class proof_store {
 public:
  virtual ~proof_store() = default;
  /// nullopt: this rule was not tried under these axioms and limits.
  virtual std::optional<stored_proof> find(u64 key, rewrite::rule const& asked) const = 0;
  virtual void add(u64 key, rewrite::rule const& asked, stored_proof const& p) = 0;
};

/// All that a verdict depends on: the rule, every axiom, the limits, and Z3's version.
inline u64 proof_key(rewrite::rule r, proof_options const& o) {
  r.name.clear();
  core::hasher h;
  h.add(rewrite::spell(r)).add(o.values).add(o.shardings).add(o.cases.max_rank).add(o.cases.most);
  for (std::size_t i = 0; i < std::size(axioms); ++i)
    h.add(axioms[i].text)
        .add(axioms[i].trigger)
        .add(axioms[i].kind)
        .add(i < o.without.size() && o.without[i]);
  unsigned v[4];
  Z3_get_version(&v[0], &v[1], &v[2], &v[3]);
  for (unsigned x : v) h.add(x);
  return h.value();
}

}  // namespace tensorpar::prover
