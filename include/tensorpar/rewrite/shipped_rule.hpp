// tensorpar/rewrite/shipped_rule.hpp - what the library keeps of a rule that it made and proved
#pragma once
#include <string_view>

namespace tensorpar::rewrite {

/// What a rule changes: operators alone, shardings alone (the proof of its values uses that parallel
/// operators are the identity, and nothing else), or both at once.
enum class rule_kind : int { algebra, parallel, hybrid };

/// A proved rule. `cases`: of ranks, axes and numbers in which Z3 proved it; `axioms`: those that the proofs
/// used, by name.
struct shipped_rule {
  std::string_view name;                 // of the family of terms in which it was found, and its number there
  rule_kind kind;
  int cases;
  std::string_view text, axioms;         // the text is read by parse_rule
};

}  // namespace tensorpar::rewrite
