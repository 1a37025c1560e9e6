// tests/support/training.hpp - batches and training runs that tests of executors share, whatever these compute with
#pragma once
#include "small_graphs.hpp"
#include <cmath>
#include <map>
#include <tensorpar/exec/executor.hpp>

namespace tests {

/// A batch for every input of g: real numbers in [0, 1] that are exact in any scalar, integers in [0, 12).
host_batch random_batch(computation_graph const& g, int micro_batches, u64 seed);

template <class E> std::vector<std::vector<typename E::scalar>> parameters_of(E const& e) {
  std::vector<std::vector<typename E::scalar>> r;
  for (std::size_t x = 0; x < e.graph().gradient.size(); ++x)
    if (e.graph().graph.values[x].role == value_role::parameter) r.push_back(e.fetch(static_cast<int>(x)));
  return r;
}
/// Of two executors whose graphs have the same parameters in different orders.
template <class E> std::map<std::string, std::vector<typename E::scalar>> parameters_by_name(E const& e) {
  std::map<std::string, std::vector<typename E::scalar>> r;
  for (std::size_t x = 0; x < e.graph().gradient.size(); ++x)
    if (graph_value const& v = e.graph().graph.values[x]; v.role == value_role::parameter) r[v.name] = e.fetch(static_cast<int>(x));
  return r;
}
template <class E> std::vector<std::vector<typename E::scalar>> train(E& e, int steps, double rate = 0.125) {
  e.initialise(7);
  for (int k = 0; k < steps; ++k) e.step(random_batch(e.graph().graph, e.plan_value().micro_batches, static_cast<u64>(k)), rate);
  return parameters_of(e);
}
/// Largest difference of any element relative to the largest parameter. (Not tensor by tensor: a bias before a batch norm, or of the keys
/// of an attention, has a gradient of zero, so all that it ever holds is rounding noise.)
inline double distance(std::vector<std::vector<double>> const& a, std::vector<std::vector<double>> const& b) {
  if (a.size() != b.size()) return 1;
  double most = 0, diff = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < a[i].size(); ++j) {
      most = std::max(most, std::abs(b[i][j]));
      diff = std::max(diff, std::abs(a[i][j] - b[i][j]));
    }
  return diff <= 1e300 ? diff / most : diff;
}

}  // namespace tests
