// tensorpar/search/optimize_batch_jointly.hpp - micro-batches, shardings, stages and rewrite rules: one
// search
// for a batch
#pragma once
#include <tensorpar/search/joint/joint.hpp>
#include <tensorpar/search/optimize_batch.hpp>

namespace tensorpar {

namespace detail {

/// The rules of a joint search, for a search that compares kinds of plans.
template <cost_model M> struct joint_batch_rules final : batch_rules {
  computation_graph const& few;
  machine const& on;
  M const& model;
  joint_options o;                                                 // but for `search`
  search_options search;

  joint_batch_rules(computation_graph const& declared, machine const& all, M const& m,
                    search_options const& s, joint_options const& rules)
      : few(declared), on(all), model(m), o(rules), search(s) {}
  joint_result jointly(computation_graph const& g, machine const& m, search_options const& s) const {
    joint_options with = o;
    with.search = s;
    return optimize_jointly(g, m, model, with);
  }
  std::optional<changed> sharding(computation_graph const& g, search_options const& s) const override {
    joint_result x = jointly(g, on, s);
    if (x.plan.rewrites.empty()) return std::nullopt;
    return changed{std::move(x.graph), std::move(x)};
  }
  std::optional<changed> alone(i64 samples) const override {
    machine one{on.name, {on.kind_of(0)}, {0}, {}};
    // what stages have to hold is theirs to know
    one.kinds[0].memory = std::numeric_limits<i64>::max();
    search_options s = search;
    s.compare = false;
    s.order.clear();
    s.micro_batches = 1;
    joint_result x = jointly(rebatch(few, samples / batch_axes(few).own()), one, s);
    if (x.plan.rewrites.empty()) return std::nullopt;
    replayed r = replay(few, x.plan.rewrites, [&](std::string_view name) -> rule const* {
      for (rule const& known : o.rules ? *o.rules : substitution_rules())
        if (known.name == name) return &known;
      return find_nesting_rule(name);
    });
    if (!r.done()) return std::nullopt;                            // a rule that holds for so many samples
    changed made{std::move(r.graph), {}};
    made.found.plan.rewrites = std::move(x.plan.rewrites);
    made.found.plan.serial = few.hash();
    return made;
  }
};

}  // namespace detail

/// As `optimize_batch`, with rewrite rules: every number of micro-batches is also searched for by
/// `optimize_jointly`, and every schedule also has stages of the graph that rules make for one device (of the
/// given one as many samples as a device's share). So no plan is slower than what `optimize_batch` finds;
/// candidates of graphs that rules made are called "..., rewritten". `rules`: which rules, and how far the
/// search for graphs goes; its `search` is not looked at.
/// The plan has its rewrites: `rewritten(graph_of(declared, plan, samples), plan)` (program/rewritten.hpp) is
/// `result.graph`; with rules of your own by its overload that is told of them.
/// Throws as both do. Deterministic. Takes up to twice as long as `optimize_batch`, and the joint searches.
template <cost_model M>
batch_result optimize_batch_jointly(computation_graph const& declared, i64 samples, machine const& on,
                                    M const& model, batch_options const& options = {},
                                    joint_options const& rules = {}) {
  detail::joint_batch_rules<M> const with(declared, on, model, options.search, rules);
  return detail::batch_search<M>(declared, samples, on, model, options, &with).run();
}
template <class M>
  requires(!cost_model<M>)
cost_model_lack<M> optimize_batch_jointly(computation_graph const&, i64, machine const&, M const&,
                                          batch_options const& = {}, joint_options const& = {});

}  // namespace tensorpar
