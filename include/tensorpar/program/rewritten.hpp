// tensorpar/program/rewritten.hpp - the graph that a plan runs: the declared one after the plan's rules, each
// looked at again
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/plan/step_fit.hpp>
#include <tensorpar/rewrite/nesting.hpp>
#include <tensorpar/rewrite/replay.hpp>
#include <tensorpar/rewrite/rules/standard_rules.hpp>

namespace tensorpar::passes {

/// A shipped rule by name, either way round, or one of rewrite/nesting.hpp; or nullptr. O(log rules); the
/// first call reads all rules.
inline rewrite::rule const* standard_rule(std::string_view name) {
  static std::map<std::string_view, rewrite::rule const*> const all = [] {
    std::map<std::string_view, rewrite::rule const*> m;
    for (auto const* some : {&rewrite::rules_both_ways(), &rewrite::nesting_rules()})
      for (rewrite::rule const& r : *some) m[r.name] = &r;
    return m;
  }();
  auto const at = all.find(name);
  return at == all.end() ? nullptr : at->second;
}

/// The plan's certificate, replayed from the declared graph. Every record must name a shipped, proved rule
/// whose source stands where the record says and whose conditions hold. The result must be the graph that the
/// plan was made for. Nothing is searched. A plan without rewrites runs the declared graph. Throws `error`
/// that names the record at fault. O(graph + records * rules' sizes). `find(name)`: rules of your own
/// besides; by default the shipped ones. Rules about a concatenation of many (rewrite/nesting.hpp) are always
/// known.
template <class Find>
computation_graph rewritten(computation_graph const& declared, plan const& p, Find const& find) {
  std::string const where = p.model.empty() ? "plan" : "plan \"" + p.model + "\"";
  u64 const asked = p.rewrites.empty() ? p.graph : p.serial;
  require_feasible(p);
  if (declared.hash() != asked) tensorpar::detail::refuse_graph(p, declared, declared.node_count());
  if (p.rewrites.empty()) return declared;
  rewrite::replayed r = rewrite::replay(declared, p.rewrites,
                                        [&](std::string_view name) -> rewrite::rule const* {
    rewrite::rule const* const nested = rewrite::find_nesting_rule(name);
    return nested ? nested : find(name);
  });
  if (!r.done())
    throw error("rewrite " + std::to_string(r.step) + " (" +
                    p.rewrites[idx(r.step)].rule + "): " + r.fault,
                where, "rules applied where their sources stand");
  if (r.graph.hash() != p.graph)
    throw error("the rewrites lead to another graph than the plan's", where, "the plan as it was made");
  return std::move(r.graph);
}
template <class = void>
computation_graph rewritten(computation_graph const& declared, plan const& p) {
  return rewritten(declared, p, [](std::string_view name) { return standard_rule(name); });
}

#ifdef TENSORPAR_COMPILED
extern template computation_graph rewritten<>(computation_graph const& declared, plan const& p);
#endif

}  // namespace tensorpar::passes
