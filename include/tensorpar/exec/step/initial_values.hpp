// tensorpar/exec/step/initial_values.hpp - what parameters and optimizer states hold before the first step
#pragma once
#include <algorithm>
#include <tensorpar/core/index.hpp>
#include <tensorpar/exec/device/random.hpp>
#include <tensorpar/exec/device/scalar.hpp>
#include <tensorpar/ir/differentiate.hpp>
#include <thread>
#include <vector>

namespace tensorpar::exec::detail {

/// f(from, to) for parts of [0, n), by all of the processor's cores where there are many. Precondition: f
/// throws nothing.
template <class F> void in_parts(std::size_t n, F const& f) {
  std::size_t const most = std::min<std::size_t>(std::max(1u, std::thread::hardware_concurrency()),
                                                 n / (std::size_t{1} << 16) + 1);
  std::vector<std::jthread> others;
  for (std::size_t k = 1; k < most; ++k)
    others.emplace_back([&f, from = n * k / most, to = n * (k + 1) / most] { f(from, to); });
  f(std::size_t{0}, n / most);
}

/// By value: the state that keeps a parameter in full, or -1.
inline std::vector<int> masters_of(computation_graph const& g) {
  std::vector<int> r(g.values.size(), -1);
  for (graph_node const& n : g.nodes)
    if (has_master(n.op)) r[idx(n.in[0])] = n.in[n.out.size()];
  return r;
}

/// Calls store(value, whole tensor) for every parameter, by its `init`, and every state: zeros, or its
/// parameter's numbers where it is a parameter's master. They follow from seed and logical index alone.
template <class Scalar, class Store>
void each_initial_value(training_graph const& t, u64 seed, Store&& store) {
  computation_graph const& g = t.graph;
  std::vector<int> const master = masters_of(g);
  std::vector<char> is_master(g.values.size(), 0);
  for (int m : master) if (m >= 0) is_master[idx(m)] = 1;
  u64 stream = 0;
  for (std::size_t x = 0; x < t.gradient.size(); ++x) {
    graph_value const& v = g.values[x];
    if (v.role != value_role::parameter) continue;
    std::vector<Scalar> all(idx(v.type.elements()));
    in_parts(all.size(), [&](std::size_t from, std::size_t to) {
      for (std::size_t i = from; i < to; ++i)
        all[i] = scalar_traits<Scalar>::from_double(initial_value(v.start, v.type, i, seed, stream));
    });
    store(static_cast<int>(x), all);
    if (master[x] >= 0) store(master[x], all);
    ++stream;
  }
  for (std::size_t x = 0; x < g.values.size(); ++x)
    if (g.values[x].role == value_role::state && !is_master[x])
      store(static_cast<int>(x),
            std::vector<Scalar>(idx(g.values[x].type.elements()), Scalar(0)));
}

}  // namespace tensorpar::exec::detail
