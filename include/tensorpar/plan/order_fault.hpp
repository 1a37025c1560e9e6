// tensorpar/plan/order_fault.hpp - what is wrong with an order of a graph's operators, for those who read
// plans, check and run them
#pragma once
#include <optional>
#include <string>
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/computation_graph.hpp>
#include <vector>

namespace tensorpar {

/// What is wrong with an order of operators, at which of its entries (-1: all of it), and what would be
/// valid.
struct order_fault {
  std::string what;
  int entry = -1;
  std::string valid;
  std::string where() const { return entry < 0 ? "node_order" : "node_order[" + std::to_string(entry) + "]"; }
};

/// Does it name each of so many operators once? Nothing: it does, or is empty. O(operators).
inline std::optional<order_fault> fault_of_permutation(std::vector<int> const& order, int operators) {
  if (order.empty()) return std::nullopt;
  if (static_cast<int>(order.size()) != operators)
    return order_fault{"an order of " + std::to_string(order.size()) +
                           " operators where the plan decides about " + std::to_string(operators),
                       -1, "every operator once, or no order"};
  std::vector<char> seen(order.size(), 0);
  for (std::size_t i = 0; i < order.size(); ++i) {
    int const v = order[i];
    if (v < 0 || v >= operators)
      return order_fault{"operator " + std::to_string(v), static_cast<int>(i),
                         "operators 0 to " + std::to_string(operators - 1)};
    if (seen[idx(v)]++)
      return order_fault{"operator " + std::to_string(v) + " comes twice", static_cast<int>(i),
                         "every operator once"};
  }
  return std::nullopt;
}

/// The same, and does every operator come behind those whose results it reads? `g`: a graph whose first nodes
/// are the operators. O(operators + operands).
inline std::optional<order_fault> fault_of_order(computation_graph const& g, std::vector<int> const& order,
                                                 int operators) {
  if (std::optional<order_fault> f = fault_of_permutation(order, operators)) return f;
  std::vector<char> there(order.size(), 0);
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (int x : g.node(order[i]).in)
      if (int const p = g.value(x).producer;
          p >= 0 && (p >= operators || !there[idx(p)]))
        return order_fault{"operator " + std::to_string(order[i]) + " comes before operator " +
                               std::to_string(p) + ", whose result it reads",
                           static_cast<int>(i), "every operator behind those that it reads from"};
    there[idx(order[i])] = 1;
  }
  return std::nullopt;
}

}  // namespace tensorpar
