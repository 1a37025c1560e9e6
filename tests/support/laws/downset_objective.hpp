// tests/support/laws/downset_objective.hpp - the laws of a price of stages, on random stages of a graph
#pragma once
#include <doctest/doctest.h>

#include <tensorpar/core/index.hpp>
#include <tensorpar/graph/downsets/sums.hpp>
#include <vector>

#include "support/random_graph.hpp"

namespace laws {

/// `tries` random pairs of nested downsets, in every way and with several copies of later stages. Returns how many prices were finite.
template <tensorpar::graph::topology G, tensorpar::graph::downset_objective O>
int downset_objective_laws(G const& g, O const& o, tensorpar::u64 seed, int tries) {
  using namespace tensorpar;
  tests::random_source r{seed};
  for (int w = 0; w < o.ways(); ++w) {
    graph::stage_way const x = o.way(w);
    CHECK((x.devices >= 0 && x.copies >= 0 && x.share > 0 && x.devices + x.copies > 0));
    CHECK((x.table >= 0 && x.table < o.tables()));
  }
  for (int t = 0; t < o.tables(); ++t) {
    for (int v = 0; v < tensorpar::graph::node_count(g); ++v) CHECK(o.work(t, v) >= 0);
    for (int h = 0; h < static_cast<int>(o.nets().size()); ++h) {
      graph::net_charge const c = o.charge(t, h);
      CHECK((c.both >= 0 && c.both <= c.in && c.both <= c.out));
    }
  }
  graph::downset_lattice const l(g, 100'000);
  graph::detail::downset_sums<O> const s(g, o, l);
  int finite = 0;
  for (int i = 0; i < tries; ++i) {
    int a = r.below(l.count()), b = r.below(l.count());
    if (l.within(s.id[idx(b)], s.id[idx(a)])) std::swap(a, b);
    if (a == b || !l.within(s.id[idx(a)], s.id[idx(b)])) continue;
    int const w = r.below(o.ways()), t = o.way(w).table;
    if (s.barred[idx(t)][idx(a)] != s.barred[idx(t)][idx(b)]) continue;
    double const work = s.work[idx(t)][idx(b)] - s.work[idx(t)][idx(a)], boundary = s.boundary(t, a, b);
    graph::downset_stage const stage{l, s.id[idx(a)], s.id[idx(b)], work, boundary, s.measures(a), s.measures(b)};
    double last = 0;
    for (int later = 0; later + o.way(w).copies <= o.copies(); later += 1 + later / 2) {
      double const price = o.seconds(stage, w, later);
      CHECK(price == o.seconds(stage, w, later));
      CHECK(price * (1 + 1e-12) >= (work + boundary) / o.way(w).share);
      CHECK(price * (1 + 1e-12) >= last);
      last = price;
      double const fresh = graph::detail::downset_price(o, l, s.id[idx(a)], s.id[idx(b)], w, later);  // sums of the nodes, not differences
      CHECK((price == fresh || std::abs(price - fresh) <= 1e-9 * std::abs(fresh)));
      bool const exists = price < infinity;
      finite += exists;
      for (double target : {0.5 * price, price * (1 - 1e-6), price * (1 + 1e-6), 2 * price}) {
        bool const within = exists && price <= target;
        if constexpr (requires { o.within(stage, w, later, target); })
          if (exists) CHECK(o.within(stage, w, later, target) == within);
        if constexpr (requires { o.limits(w, later, target); })
          if (within)
            for (graph::measure_limit const& m : o.limits(w, later, target))
              if (m.exists()) CHECK(m.of(stage.high) - m.of(stage.low) <= m.most);
        if constexpr (requires { o.may_start(l, stage.from, w, target); })
          if (within) CHECK(o.may_start(l, stage.from, w, target));
      }
      if constexpr (requires { o.within(stage, w, later, 1.0); })
        if (!exists) CHECK(!o.within(stage, w, later, 1e300));
    }
  }
  return finite;
}

}  // namespace laws
