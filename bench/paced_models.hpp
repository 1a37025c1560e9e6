// bench/paced_models.hpp - graphs of one sample, and batches for them: what benchmarks on paced devices share
#pragma once
#include <tensorpar/exec/device/host.hpp>
#include <tensorpar/typed/lower.hpp>
#include <tensorpar/typed/typed.hpp>
#include <tensorpar/zoo/axes.hpp>

namespace paced_models {

/// A model of these sizes on one sample.
template <class Model, class Sizes> tensorpar::computation_graph made(Sizes const& s) {
  tensorpar::model_builder g;
  Model::define(g, s);
  return tensorpar::lower(g, {tensorpar::zoo::batch = 1});
}

/// So many times the samples of g for every input: small numbers that repeat.
inline tensorpar::host_batch batch_of(tensorpar::computation_graph const& g, tensorpar::i64 times) {
  tensorpar::host_batch b;
  for (tensorpar::graph_value const& v : g.values) {
    if (v.role != tensorpar::value_role::input) continue;
    tensorpar::host_tensor t;
    t.shape = v.type;
    t.shape.d[0].n *= times;
    for (tensorpar::i64 i = 0, n = t.shape.elements(); i < n; ++i)
      if (is_integer(v.type.type)) t.index.push_back(static_cast<std::int32_t>(i % 7));
      else t.real.push_back(static_cast<float>(i % 17) / 16);
    b[v.name] = std::move(t);
  }
  return b;
}

}  // namespace paced_models
