// tensorpar/search/problem/flows.hpp - which values travel between the operators of a training step, and
// which operators look alike
#pragma once
#include <algorithm>
#include <array>
#include <map>
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/ir/gradient_sums.hpp>
#include <tensorpar/op/kinds/pointwise.hpp>
#include <vector>

namespace tensorpar::search {

/// Where a value is written or read: node number `local` of an operator's group, result or operand `port`.
struct value_slot {
  int local, port;
  bool result;
};

/// One value on its way from where it is to an operator's group (itself or another).
struct value_flow {
  int value;                      // of the training graph
  int shape_id;                   // a number for its shape, given by whoever prices it
  bool from_first;                // it lies in the pair's first operator
  value_slot from;
  std::vector<value_slot> to;     // equal layouts are delivered once
  int times;
  bool activation = false;        // the receiver is a function that may be computed with what makes the value
  int shared_by = 1;              // flows that may come to one in the program: each counts for its part
};
using value_flows = std::vector<value_flow>;

/// Is it an addition of gradients? It is done where its operands lie.
inline bool adds_gradients(graph_node const& n) {
  return n.phase == step_phase::backward && n.op.is<add>();
}

/// A result that goes to an operator without origin, on all devices.
struct value_everywhere {
  value_slot from;
  int value, shape_id;            // as in value_flow
};

/// A forward operator with all backward and update operators derived from it.
struct operator_group {
  std::vector<int> nodes;         // of the training graph, ascending, the forward operator first
  value_flows inner;
  std::vector<value_everywhere> everywhere;
  // gradients that updates read, of whichever operator: micro-batches' are added up here, as results are made
  // or as operands are read
  std::vector<value_slot> summed;
  // the operator that is the forward one and the function of its result in one
  op::op_info const* with_function = nullptr;
  bool apart = false;             // it is such a function: what it takes by itself is a matter of both
};

/// A training graph seen from its forward operators: a group for each, and what travels between two of them:
/// activations, gradients, the copies of a shared parameter and their gradients. Inputs come from the host in
/// any layout, so they do not travel. Activations and gradients travel once per micro-batch, parameters and
/// what updates read once a step. But a parameter that lives where it is updated
/// (program/passes/memory_pass.hpp) is gathered for every pass of every micro-batch. Its gradient is
/// scattered for every micro-batch. What an update makes returns to where it is kept.
/// O(nodes + values * readers).
class training_flows {
  training_graph const& t_;
  computation_graph const& g_;
  std::vector<int> local_;        // training node -> index in its group
  std::vector<int> summands_;     // see count_summands

  /// The group and slot where a value is before anyone asks for it: its producer's or, for parameters and
  /// states, their home's.
  std::pair<int, value_slot> source_of(int x, int first_reader) const {
    graph_value const& v = g_.value(x);
    int node = v.producer;
    if (v.role == value_role::parameter)
      node = x < static_cast<int>(t_.home.size()) ? t_.home[idx(x)] : node_id();
    if (v.role == value_role::state) node = first_reader;
    if (v.role == value_role::input || node < 0 || g_.node(node).origin < 0) return {-1, {}};
    bool const made = v.producer >= 0;
    auto const& in = g_.node(node).in;
    int const port = made ? v.slot : static_cast<int>(std::find(in.begin(), in.end(), x) - in.begin());
    return {g_.node(node).origin, {local_[idx(node)], port, made}};
  }

  /// Copies of a value serve all who want it in one layout. Summands that lie alike are added first, then the
  /// sum is moved.
  void share(std::map<std::array<int, 3>, value_flow>& flows) const {
    std::map<std::array<int, 2>, int> together;
    for (auto const& [where, f] : flows) ++together[{where[1], where[2]}];
    for (auto& [where, f] : flows) {
      int summands = 0;
      for (value_slot const& s : f.to)
        summands = std::max(summands, summands_[idx(groups[idx(where[0])].nodes[idx(s.local)])]);
      f.shared_by = together[{where[1], where[2]}] * std::max(1, summands);
    }
  }
  /// By node: of how many summands the sum of gradients is that it is part of; 0: no addition.
  void count_summands() {
    summands_.assign(g_.nodes.size(), 0);
    auto const sums = [&](int v) { return v >= 0 && adds_gradients(g_.node(v)); };
    for (int v = t_.forward_nodes; v < g_.node_count(); ++v)
      for (int x : g_.node(v).in) {
        int const p = g_.value(x).producer;
        if (sums(v)) summands_[idx(v)] += sums(p) ? summands_[idx(p)] : 1;
      }
    for (int v = g_.node_count() - 1; v >= t_.forward_nodes; --v)
      for (int x : g_.node(v).in) {
        int const p = g_.value(x).producer;
        if (sums(v) && sums(p)) summands_[idx(p)] = std::max(summands_[idx(p)], summands_[idx(v)]);
      }
  }

  static void put(std::vector<i64>& key, shape const& s) {
    key.push_back(s.rank * 16 + static_cast<i64>(s.type));
    for (int d = 0; d < s.rank; ++d) key.push_back(s.d[d].n);
  }
  static void put(std::vector<i64>& key, value_slot const& s) {
    key.push_back((static_cast<i64>(s.local) * 64 + s.port) * 2 + s.result);
  }

 public:
  std::vector<operator_group> groups;
  std::map<std::pair<int, int>, value_flows> between;   // by the two operators, ascending

  /// `kept`: what operators that run again read of others does not travel once more for them, as if they
  /// alone were kept.
  /// `at_least`: what is counted is no more than what a program does (`shared_by`).
  training_flows(training_graph const& t, int micro_batches, bool kept = false, bool at_least = false)
      : t_(t), g_(t.graph) {
    groups.resize(idx(t_.forward_nodes));
    local_.assign(g_.nodes.size(), 0);
    std::vector<std::vector<std::pair<int, int>>> readers(g_.values.size());    // (node, operand)
    for (int v = 0; v < g_.node_count(); ++v) {
      if (int const f = g_.node(v).origin; f >= 0) {
        auto& nodes = groups[idx(f)].nodes;
        local_[idx(v)] = static_cast<int>(nodes.size());
        nodes.push_back(v);
      }
      for (std::size_t k = 0; k < g_.node(v).in.size(); ++k)
        readers[idx(g_.node(v).in[k])].push_back({v, static_cast<int>(k)});
    }
    count_summands();
    std::vector<ir::gradient_sum> const sums = ir::gradient_sums(t);
    for (int x = 0; x < static_cast<int>(g_.values.size()); ++x) {
      auto const& reads = readers[idx(x)];
      if (reads.empty()) continue;
      auto const [a, from] = source_of(x, reads.front().first);
      if (a < 0) continue;
      ir::gradient_sum const& sum = sums[idx(x)];
      if (sum.added)
        groups[idx(a)].summed.push_back(
            sum.update >= 0 && g_.node(sum.update).origin == a
                ? value_slot{local_[idx(sum.update)], sum.operand, false}
                : from);
      bool const in_parts =
          x < static_cast<int>(t_.home.size()) && t_.home[idx(x)] >= t_.forward_nodes;
      // by (group, how often it moves, backward?)
      std::map<std::array<int, 3>, value_flow> to;
      for (auto const& [v, k] : reads) {
        int const b = g_.node(v).origin;
        step_phase const phase = g_.node(v).phase;
        bool const each = phase == step_phase::update ? sum.update >= 0 : from.result || in_parts;
        int const times = each ? micro_batches : 1;
        if (kept && b != a && g_.node(v).recomputed) continue;
        if (b < 0) { groups[idx(a)].everywhere.push_back({from, x, -1}); continue; }
        bool const anew = g_.node(v).refetch_operands && g_.value(x).producer >= 0 &&
                          g_.node(g_.value(x).producer).phase == step_phase::forward;
        bool const apart = phase == step_phase::backward && (in_parts || anew);
        value_flow& f =
            to.try_emplace({b, times, apart}, value_flow{x, -1, a <= b, from, {}, times}).first->second;
        f.to.push_back({local_[idx(v)], k, false});
      }
      if (at_least) share(to);
      for (auto& [where, f] : to) {
        int const b = where[0];
        if (a == b) groups[idx(a)].inner.push_back(std::move(f));
        else between[{std::min(a, b), std::max(a, b)}].push_back(std::move(f));
      }
    }
    for (int v = t_.forward_nodes; v < g_.node_count(); ++v)
      for (std::size_t k = 0; k < g_.node(v).out.size(); ++k) {
        int const y = g_.node(v).out[k], x = g_.value(y).stored_in;
        if (x < 0 || g_.value(x).role != value_role::parameter || g_.node(v).origin < 0) continue;
        groups[idx(g_.node(v).origin)].inner.push_back(
            {y,
             -1,
             true,
             {local_[idx(v)], static_cast<int>(k), true},
             {home_slot(x)},
             1});
      }
  }

  /// Notes that a function may be computed with the operator that makes what it alone reads. Before anything
  /// is asked.
  void activate(int op, int function, op::op_info const* both) {
    groups[idx(op)].with_function = both;
    groups[idx(function)].apart = true;
    int const x = g_.node(op).out[0];
    for (value_flow& f : between.at({op, function})) f.activation = f.activation || f.value == x;
  }

  /// Where a parameter lives: as operand of its home.
  value_slot home_slot(int x) const { return source_of(x, -1).second; }

  /// Appends all that the price of flows between two given kinds of operators depends on.
  void put(std::vector<i64>& key, value_flows const& all) const {
    for (value_flow const& f : all) {
      put(key, g_.type(f.value));
      key.push_back(f.times * 4 + f.from_first * 2 + f.activation);
      key.push_back(f.shared_by);
      put(key, f.from);
      key.push_back(static_cast<i64>(f.to.size()));
      for (value_slot const& s : f.to) put(key, s);
    }
  }

  /// Operators with equal keys have equal choices and costs on equal devices: all that these depend on is in
  /// the key.
  std::vector<i64> key_of(int f) const {
    operator_group const& q = groups[idx(f)];
    std::vector<i64> key;
    // values by first sight, so equal wiring reads equal
    std::map<int, int> seen;
    for (int v : q.nodes) {
      graph_node const& n = g_.node(v);
      key.push_back(static_cast<i64>(n.op.op->id));
      key.insert(key.end(), n.op.attr, n.op.attr + op::max_attrs);
      key.push_back(static_cast<i64>(n.phase) * 4096 + static_cast<i64>(n.in.size()) * 64 +
                    static_cast<i64>(n.out.size()));
      for (int x : n.in) {
        put(key, g_.type(x));
        key.push_back(seen.try_emplace(x, static_cast<int>(seen.size())).first->second);
        value_role const role = g_.value(x).role;
        node_id const home = role == value_role::parameter ? t_.home[idx(x)] : node_id();
        key.push_back(static_cast<i64>(role) * 4 + (home == f ? 1
                                                    : home >= t_.forward_nodes && g_.node(home).origin == f
                                                        ? 2
                                                        : 0));
      }
      for (int x : n.out) put(key, g_.type(x));
      key.push_back(static_cast<i64>(n.letters.size()));
      for (char c : n.letters) key.push_back(c);
    }
    key.push_back(q.apart ? 1 : q.with_function ? static_cast<i64>(q.with_function->id) : 0);
    put(key, q.inner);
    key.push_back(static_cast<i64>(q.summed.size()));
    for (value_slot const& s : q.summed) put(key, s);
    for (value_everywhere const& e : q.everywhere) {
      put(key, e.from);
      put(key, g_.type(e.value));
    }
    return key;
  }
};

}  // namespace tensorpar::search
