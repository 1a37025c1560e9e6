// tensorpar/rewrite/record.hpp - one application of a rule, written down
#pragma once
#include <string>
#include <tensorpar/core/hash.hpp>
#include <vector>

namespace tensorpar::rewrite {

/// A rule by name and where it was applied. Nodes and values have the numbers of the `open_graph` that all
/// records before were applied to: those of the first graph, then upwards as they are made. `parameters`:
/// values of all of the rule's parameters (degrees, axes from the left, numbers as they are, reals by their
/// bits); `functions`: names of the operators that its function parameters stand for.
struct rewrite_record {
  std::string rule;
  std::vector<int> nodes, tensors;     // by the source's nodes; by the rule's tensor variables
  std::vector<i64> parameters;
  std::vector<std::string> functions;  // by parameter, empty for others
  friend bool operator==(rewrite_record const&, rewrite_record const&) = default;
};

inline void add_to(core::hasher& h, rewrite_record const& r) {
  h.add(std::string_view(r.rule))
      .add(r.nodes.size())
      .add(r.tensors.size())
      .add(r.parameters.size())
      .add(r.functions.size());
  for (int x : r.nodes) h.add(x);
  for (int x : r.tensors) h.add(x);
  for (i64 x : r.parameters) h.add(x);
  for (std::string const& f : r.functions) h.add(std::string_view(f));
}

}  // namespace tensorpar::rewrite
