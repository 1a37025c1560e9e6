// tensorpar/exec/step/batch_check.hpp - is a batch what a graph takes? Asked on the host, before anything is
// run
#pragma once
#include <algorithm>
#include <map>
#include <string>
#include <tensorpar/core/index.hpp>
#include <tensorpar/exec/step/index_limits.hpp>
#include <vector>

namespace tensorpar::exec::detail {

/// What batches of one graph must be, made once. O(nodes + indices that are moved between operators).
class batch_check {
  std::map<int, index_limits> limits_;                     // by input of integers
  std::vector<std::string> names_;                         // of inputs, in order

 public:
  batch_check() = default;
  explicit batch_check(computation_graph const& g) : limits_(index_flow(g).limits()) {
    for (graph_value const& v : g.values)
      if (v.role == value_role::input && std::find(names_.begin(), names_.end(), v.name) == names_.end())
        names_.push_back(v.name);
  }

  /// Throws `error` for an input that is read (`used`, by value) and that the batch lacks, or that has
  /// another shape, type or number of elements. Also for a tensor that is no input of the graph, and for an
  /// index out of range, naming its place. O(elements).
  void require(computation_graph const& g, std::vector<bool> const& used, host_batch const& batch,
               int micro_batches, std::string const& where = "batch") const {
    for (std::size_t x = 0; x < used.size(); ++x) {
      graph_value const& v = g.values[x];
      if (v.role != value_role::input || !used[x]) continue;
      auto const it = batch.find(v.name);
      if (it == batch.end())
        throw error("the batch lacks input '" + v.name + "'", where, "every input of the model");
      check_input(v.name, it->second, v.type, micro_batches * v.micro_batches);
    }
    for (auto const& [name, tensor] : batch)
      if (std::find(names_.begin(), names_.end(), name) == names_.end()) {
        std::string all;
        for (std::string const& n : names_) all.append(all.empty() ? "'" : ", '").append(n).append("'");
        throw error("the batch has '" + name + "', which is no input of the model", where,
                    all.empty() ? "no inputs" : all);
      }
    for (auto const& [x, limits] : limits_) {
      graph_value const& v = g.value(x);
      if (idx(x) < used.size() && used[idx(x)])
        check_indices(g, v.name, batch.find(v.name)->second, v.type, v.micro_batch, micro_batches, limits);
    }
  }
};

}  // namespace tensorpar::exec::detail
