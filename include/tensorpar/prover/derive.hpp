// tensorpar/prover/derive.hpp - is a graph what rules make of another one: the chain of rules between them
#pragma once
#include <map>
#include <tensorpar/core/index.hpp>
#include <tensorpar/prover/cases/instances.hpp>
#include <tensorpar/prover/rule_graph.hpp>
#include <tensorpar/rewrite/apply.hpp>

namespace tensorpar::prover {

struct derivation_limits {
  int states = 3000;                     // graphs looked at, of both ends together
  int growth = 2;                        // nodes by which a graph may be larger than the larger end
};
/// The names of the rules that lead from one graph to the other, in order; those found from the other end are
/// read the other way round.
struct derivation {
  bool found = false;
  std::vector<std::string> steps;
  int states = 0;
  int untried = 0;                       // of a rule: cases of which no valid instance was drawn
};

namespace detail {

/// A graph of one output as a tree: every use of a result has a copy of its own, so that rules are not held
/// up by other uses.
class derivation_tree {
  struct node {
    op::any_op op;
    int slot = 0;                        // which of its results
    std::string leaf;                    // the name of an input, where there is no operator
    ir::parallel_shape where;
    std::vector<int> in;
    std::string key;
  };
  std::vector<node> nodes_;              // operands first

  int add(rewrite::sharding_graph const& s, int value) {
    graph_value const& v = s.graph.value(value);
    node n;
    n.where = s.shapes[idx(value)];
    if (v.producer < 0) {
      n.leaf = v.name;
      n.key = "$" + v.name;
    } else {
      graph_node const& p = s.graph.node(v.producer);
      n.op = p.op;
      n.slot = v.slot;
      std::vector<std::string> keys;
      for (int x : p.in) n.in.push_back(add(s, x));
      for (int x : n.in) keys.push_back(nodes_[idx(x)].key);
      if (rewrite::is_commutative(*n.op.op)) std::sort(keys.begin(), keys.end());
      n.key = std::string(n.op.op->name) + std::to_string(v.slot);
      int const rank = p.in.empty() ? 0 : s.graph.type(p.in[0]).rank;
      for (int i = 0; i < n.op.op->attrs; ++i)
        if (rewrite::role_of(*n.op.op, i) != rewrite::attr_role::label)
          n.key += "," + std::to_string(rewrite::detail::plain_attribute(n.op, i, rank));
      n.key += "(";
      for (std::string const& k : keys) n.key += k + ";";
      n.key += ")";
    }
    nodes_.push_back(std::move(n));
    return static_cast<int>(nodes_.size()) - 1;
  }

 public:
  explicit derivation_tree(rewrite::sharding_graph const& s) { add(s, s.graph.outputs.at(0).value); }
  /// Equal trees have equal keys, sums and products in either order.
  std::string const& key() const { return nodes_.back().key; }
  int size() const {
    int n = 0;
    for (node const& v : nodes_) n += v.leaf.empty();
    return n;
  }
  rewrite::open_graph graph() const {
    rewrite::sharding_graph s;
    std::map<std::string, int> inputs;
    std::vector<int> value;
    for (node const& n : nodes_) {
      if (!n.leaf.empty()) {
        auto const [it, fresh] = inputs.emplace(n.leaf, 0);
        if (fresh) {
          it->second = s.graph.add_input(n.leaf, n.where.type);
          s.shapes.push_back(n.where);
        }
        value.push_back(it->second);
        continue;
      }
      std::vector<value_id> in;
      std::vector<ir::parallel_shape> operands;
      for (int x : n.in) {
        in.push_back(value[idx(x)]);
        operands.push_back(nodes_[idx(x)].where);
      }
      graph_node const& made = s.graph.node(s.graph.add(n.op, std::move(in)));
      value.push_back(made.out[idx(n.slot)]);
      std::vector<ir::parallel_shape> results = ir::infer_parallel_shapes(n.op, operands).out;
      for (std::size_t k = 0; k < results.size(); ++k) results[k].type = s.graph.type(made.out[k]);
      s.shapes.insert(s.shapes.end(), results.begin(), results.end());
    }
    s.graph.add_output("y", value.back());
    return rewrite::open_graph(s);
  }
  /// Which degrees and axes parallel operators have here: what rules may choose from.
  void note_choices(std::vector<i64>& degrees, std::vector<i64>& axes) const {
    auto put = [](std::vector<i64>& v, i64 x) {
      if (std::find(v.begin(), v.end(), x) == v.end()) v.push_back(x);
    };
    for (node const& n : nodes_) {
      for (int d = 0; d < n.where.type.rank; ++d) put(axes, d);
      if (n.leaf.empty() && is_parallel(n.op)) put(degrees, n.op.attr[n.op.op->attrs - 1]);
    }
  }
};

class derivation_search {
  struct state {
    derivation_tree tree;
    int from, parent;                    // which end; the state before
    std::string rule;
  };
  std::vector<rewrite::rule> const& rules_;
  derivation_limits limits_;
  std::vector<state> states_;
  std::map<std::string, int> known_[2];
  std::map<int, std::vector<int>> open_[2];   // by size
  std::vector<i64> degrees_, axes_;
  int largest_ = 0, meeting_ = -1, met_ = -1;

  void reach(derivation_tree tree, int end, int parent, std::string const& name) {
    if (meeting_ >= 0 || tree.size() > largest_ || static_cast<int>(states_.size()) >= limits_.states) return;
    int const id = static_cast<int>(states_.size());
    if (!known_[end].emplace(tree.key(), id).second) return;
    if (auto const it = known_[1 - end].find(tree.key()); it != known_[1 - end].end()) {
      meeting_ = id;
      met_ = it->second;
    }
    open_[end][tree.size()].push_back(id);
    states_.push_back({std::move(tree), end, parent, name});
  }
  /// Every value for parameters that a match leaves open.
  void choose(rewrite::rule const& r, rewrite::rule_match& m, std::size_t p, auto&& visit) {
    while (p < m.bound.size() && m.bound[p]) ++p;
    if (p == m.bound.size()) return visit();
    rewrite::parameter_kind const k = r.parameters[p].kind;
    if (k == rewrite::parameter_kind::number) return;
    for (i64 x : k == rewrite::parameter_kind::axis ? axes_ : degrees_) {
      m.parameter[p] = x;
      choose(r, m, p + 1, visit);
    }
  }
  void expand(int id) {
    rewrite::open_graph const g = states_[idx(id)].tree.graph();
    int const end = states_[idx(id)].from;
    for (rewrite::rule const& r : rules_)
      for (rewrite::rule_match& m : rewrite::find_matches(r, g))
        choose(r, m, 0, [&] {
          if (meeting_ >= 0) return;
          rewrite::open_graph changed = g;
          if (rewrite::apply_rule(r, m, changed, rewrite::left_overs::kept).done())
            reach(derivation_tree(changed.close()), end, id, r.name);
        });
  }

 public:
  derivation_search(std::vector<rewrite::rule> const& rules, derivation_limits limits)
      : rules_(rules), limits_(limits) {}
  derivation run(rewrite::sharding_graph const& from, rewrite::sharding_graph const& to) {
    derivation_tree const ends[2] = {derivation_tree(from), derivation_tree(to)};
    for (derivation_tree const& t : ends) {
      t.note_choices(degrees_, axes_);
      largest_ = std::max(largest_, t.size() + limits_.growth);
    }
    for (int end = 0; end < 2; ++end) reach(ends[end], end, -1, {});
    // the smallest graph first, from both ends in turn
    for (int turn = 0; meeting_ < 0 && !(open_[0].empty() && open_[1].empty()); ++turn) {
      auto& open = open_[open_[turn % 2].empty() ? 1 - turn % 2 : turn % 2];
      auto const first = open.begin();
      int const id = first->second.front();
      first->second.erase(first->second.begin());
      if (first->second.empty()) open.erase(first);
      if (static_cast<int>(states_.size()) >= limits_.states) break;
      expand(id);
    }
    derivation d;
    d.states = static_cast<int>(states_.size());
    if (meeting_ < 0) return d;
    d.found = true;
    bool const forward = states_[idx(meeting_)].from == 0;
    for (int s = forward ? meeting_ : met_; states_[idx(s)].parent >= 0; s = states_[idx(s)].parent)
      d.steps.insert(d.steps.begin(), states_[idx(s)].rule);
    for (int s = forward ? met_ : meeting_; states_[idx(s)].parent >= 0; s = states_[idx(s)].parent)
      d.steps.push_back(states_[idx(s)].rule + " <=");
    return d;
  }
};

}  // namespace detail

/// Looks for a chain of rules between two graphs of one output each on the same inputs, from both ends at
/// once, smaller graphs first. Results with several uses are taken apart. So a chain is an equation, and need
/// not be one walk through graphs that share results. Open degrees and axes of rules are those that the two
/// graphs have. Not finding one says nothing. Deterministic. O(states * matches). Throws `error` where a
/// graph has not one output.
inline derivation derive(rewrite::sharding_graph const& from, rewrite::sharding_graph const& to,
                         std::vector<rewrite::rule> const& rules, derivation_limits limits = {}) {
  for (rewrite::sharding_graph const* g : {&from, &to})
    if (std::size_t const n = g->graph.outputs.size(); n != 1)
      throw error(std::to_string(n) + " outputs",
                  g == &from ? "the graph to derive from" : "the graph to derive", "one output");
  return detail::derivation_search(rules, limits).run(from, to);
}

/// Do these rules imply another one? Every output by itself, in one random instance of every case of the
/// rule, valid on both sides and with degrees above one. So cases which need other rules are not forgotten.
/// `untried` counts cases in which no draw of 200 was so. found: in all that were tried, one at least;
/// `steps` is the longest chain.
inline derivation derive(rewrite::rule const& r, std::vector<rewrite::rule> const& rules,
                         derivation_limits limits = {},
                         u64 seed = 1, rewrite::vocabulary const& words = rewrite::standard_vocabulary()) {
  derivation all;
  std::mt19937 draw(static_cast<std::uint32_t>(seed));
  for (rule_case const& c : cases_of(r, words)) {
    std::optional<rewrite::sharding_graph> source, target;
    for (int n = 0; n < 200 && !(source && target); ++n) {
      auto const g = random_instance(r, c, draw, words);
      bool sharding = g.has_value();
      for (std::size_t p = 0; sharding && p < r.parameters.size(); ++p)
        sharding = r.parameters[p].kind != rewrite::parameter_kind::degree || g->at.parameter[p] > 1;
      if (!sharding) continue;
      auto declare = [&](computation_graph& graph, std::size_t x) {
        return graph.add_input(r.tensors[x], g->tensors[x].type);
      };
      source = graph_of_side(r.source, g->source, g->tensors, declare);
      target = graph_of_side(r.target, g->target, g->tensors, declare);
    }
    if (!source || !target) {
      ++all.untried;
      continue;
    }
    auto const from = source->graph.outputs, to = target->graph.outputs;
    for (std::size_t o = 0; o < from.size(); ++o) {
      source->graph.outputs = {from[o]};
      target->graph.outputs = {to[o]};
      derivation d = derive(*source, *target, rules, limits);
      all.states += d.states;
      all.found = d.found;
      if (!d.found) return all;
      if (d.steps.size() > all.steps.size()) all.steps = std::move(d.steps);
    }
  }
  return all;
}

}  // namespace tensorpar::prover
