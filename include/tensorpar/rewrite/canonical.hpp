// tensorpar/rewrite/canonical.hpp - graphs that differ in the order of their nodes alone have one form
#pragma once
#include <algorithm>
#include <map>
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/computation_graph.hpp>
#include <tensorpar/rewrite/rule.hpp>
#include <tensorpar/rewrite/vocabulary.hpp>

namespace tensorpar::rewrite {

/// Gives graphs numbers for forms. Two graphs have equal forms if and only if they are made of the same
/// operators on the same leaves, in whatever order they stand, and a sum or product in whatever order its
/// operands do. Leaves are the values that nothing makes, by their place among these. What is not told apart:
/// which of several equal operators (equal results) a reader reads. Compared in full, no hash decides. Keeps
/// what it has seen: graphs of one search share most of their parts.
class canonical_forms {
  std::map<std::vector<i64>, i64> known_;
  i64 number(std::vector<i64> const& key) {
    return known_.try_emplace(key, static_cast<i64>(known_.size())).first->second;
  }

 public:
  /// O(nodes log nodes). Outputs count, their names do not.
  std::vector<i64> operator()(computation_graph const& g) {
    std::vector<i64> of(g.values.size(), 0), form;
    i64 leaf = 0;
    for (std::size_t x = 0; x < g.values.size(); ++x) if (g.values[x].producer < 0) of[x] = -1 - leaf++;
    std::vector<i64> key;
    for (graph_node const& n : g.nodes) {
      int const rank = n.in.empty() ? 0 : g.type(n.in[0]).rank;
      key.assign(1, static_cast<i64>(n.op.op->id));
      for (int i = 0; i < n.op.op->attrs; ++i)
        key.push_back(role_of(*n.op.op, i) == attr_role::axis && n.op.attr[i] < 0 ? n.op.attr[i] + rank
                                                                                  : n.op.attr[i]);
      std::size_t const operands = key.size();
      for (int x : n.in) key.push_back(of[idx(x)]);
      if (is_commutative(*n.op.op)) std::sort(key.begin() + static_cast<std::ptrdiff_t>(operands), key.end());
      form.push_back(number(key) * 64);
      for (std::size_t k = 0; k < n.out.size(); ++k)
        of[idx(n.out[k])] = form.back() + static_cast<i64>(k);
    }
    std::sort(form.begin(), form.end());
    for (graph_port const& o : g.outputs) form.push_back(of[idx(o.value)]);
    return form;
  }
};

}  // namespace tensorpar::rewrite
