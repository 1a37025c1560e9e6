// tensorpar/prover/proof.hpp - what becomes of a rule that is to be proved, and how much work that may take
#pragma once
#include <set>
#include <string>
#include <tensorpar/prover/cases/instances.hpp>
#include <vector>

namespace tensorpar::prover {

enum class proof_status : int { proved, unproved, impossible };
/// What became of a rule. `impossible`: there are no ranks and axes for which both sides make sense.
struct proof {
  proof_status status = proof_status::unproved;
  int cases = 0;                         // of ranks, axes and numbers
  std::set<int> used;                    // axioms that the proofs used, by number
  std::string open;                      // the first case that was not proved, and which half of it
};

struct proof_options {
  // Z3's own counter of work per case (not seconds: the same verdict everywhere)
  unsigned values = 400'000;
  unsigned shardings = 400'000;
  case_limits cases = {};
  std::vector<bool> without;             // axioms to leave out, by number
};

}  // namespace tensorpar::prover
