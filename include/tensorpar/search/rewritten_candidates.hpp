// tensorpar/search/rewritten_candidates.hpp - what rewrite rules make of a graph, for a planner that compares
// kinds of plans
#pragma once
#include <tensorpar/ir/rebatch.hpp>
#include <tensorpar/search/effort.hpp>
#include <tensorpar/search/joint/joint.hpp>
#include <tensorpar/search/pipeline/batch_axes.hpp>

namespace tensorpar::detail {

/// A graph that rules made, with its plan, which has the rewrites.
struct rewritten_candidate {
  computation_graph graph;
  search::search_result found;
};

/// For the whole machine. Nothing where no rule is applied.
template <cost::cost_model M>
std::optional<rewritten_candidate> rewritten_shardings(computation_graph const& g, machine const& on,
                                                       M const& model, search::search_options const& s,
                                                       search::rewriting_knobs const& rules) {
  search::joint_options o;
  static_cast<search::rewriting_knobs&>(o) = rules;
  o.search = s;
  search::joint_result x = search::optimize_jointly(g, on, model, o);
  if (x.plan.rewrites.empty()) return std::nullopt;
  return rewritten_candidate{std::move(x.graph), std::move(x)};
}

/// The graph of few samples, changed for one device that has so many `samples` and memory enough: what stages
/// have to hold is theirs to know. Nothing where no rule is applied, or one that holds for so many alone.
template <cost::cost_model M>
std::optional<rewritten_candidate> rewritten_for_stages(computation_graph const& few, i64 samples,
                                                        machine const& on, M const& model,
                                                        search::search_options s,
                                                        search::rewriting_knobs const& rules) {
  machine one{on.name, {on.kind_of(0)}, {0}, {}};
  one.kinds[0].memory = std::numeric_limits<i64>::max();
  s.micro_batches = 1;
  computation_graph const more = ir::rebatch(few, samples / search::detail::batch_axes(few).own());
  auto x = rewritten_shardings(more, one, model, s, rules);
  if (!x) return std::nullopt;
  rewrite::replayed r = rewrite::replay(few, x->found.plan.rewrites,
                                        [&](std::string_view name) -> rewrite::rule const* {
    for (rewrite::rule const& known : rules.rules ? *rules.rules : search::substitution_rules())
      if (known.name == name) return &known;
    return rewrite::find_nesting_rule(name);
  });
  if (!r.done()) return std::nullopt;
  rewritten_candidate made{std::move(r.graph), {}};
  made.found.plan.rewrites = std::move(x->found.plan.rewrites);
  made.found.plan.serial = few.hash();
  return made;
}

}  // namespace tensorpar::detail
