// tests/check/geometry.test.cpp - what the checker says of reshards and of operators' parts, against every element on every device
#include <tensorpar/check/geometry.hpp>
#include <doctest/doctest.h>

#include <map>
#include <optional>
#include <random>
#include <set>
#include <support/effort.hpp>
#include <support/small_graphs.hpp>

using namespace tensorpar;
using namespace tensorpar::detail::check;

namespace {

using element = std::vector<i64>;                              // coordinates
using shares = std::multiset<i64>;
using held = std::map<int, std::map<element, shares>>;        // by device: what it has of which elements

/// Axes over all n devices, with random kinds that the shape admits.
tensorpar::ir::layout random_layout(int n, shape const& s, bool sums, std::mt19937& draw) {
  ir::layout l;
  std::vector<i64> room;
  for (int d = 0; d < s.rank; ++d) room.push_back(s.d[d].n);
  for (i64 stride = 1; stride < n;) {
    i64 degree = 2;
    while ((n / stride) % degree) ++degree;
    if (draw() % 3 == 0) degree = n / stride;
    ir::layout_axis a{static_cast<ir::part_kind>(draw() % (sums ? 3 : 2)), -1, degree, stride};
    if (a.kind == ir::part_kind::shard) {
      a.dim = static_cast<int>(draw() % static_cast<unsigned>(s.rank));
      if (room[idx(a.dim)] % degree) { a.kind = ir::part_kind::replicate; a.dim = -1; }
      else room[idx(a.dim)] /= degree;
    }
    l.axes.insert(l.axes.begin() + static_cast<std::ptrdiff_t>(draw() % (l.axes.size() + 1)), a);
    stride *= degree;
  }
  return ir::canonical(std::move(l));
}
i64 sum_index(ir::layout const& l, std::vector<i64> const& c) {
  i64 r = 0;
  for (std::size_t k = 0; k < l.axes.size(); ++k) if (l.axes[k].kind == ir::part_kind::partial) r = r * l.axes[k].degree + c[k];
  return r;
}
template <class F> void each(op::tensor_block const& b, F f) {
  element e(idx(b.rank));
  for (i64 i = 0, n = b.elements(); i < n; ++i) {
    i64 rest = i;
    for (int d = b.rank - 1; d >= 0; rest /= b.local[d], --d) e[idx(d)] = b.offset[d] + rest % b.local[d];
    f(e);
  }
}
held contents(ir::layout const& l, shape const& s) {
  held h;
  for (int d : l.devices()) each(ir::block_of(l, s, d), [&](element const& e) { h[d][e] = {sum_index(l, l.coordinates(d))}; });
  return h;
}
op::tensor_block cut(op::tensor_block b, int d, i64 i, i64 n) {
  b.local[d] /= n;
  b.offset[d] += i * b.local[d];
  return b;
}

/// The reshard carried out element by element; nothing where it cannot be.
std::optional<held> carried_out(ir::reshard_step const& m, shape const& s, held const& before) {
  held after;
  if (m.kind == ir::reshard_kind::exchange) {
    for (int d : m.after.devices()) after[d];
    for (ir::transfer const& t : ir::transfers(m, s))
      each(t.box, [&](element const& e) { shares const& x = before.at(t.from).at(e); after[t.to][e].insert(x.begin(), x.end()); });
    return after;
  }
  if (m.kind == ir::reshard_kind::slice) {
    for (int d : m.after.devices()) {
      if (!before.count(d)) return {};
      bool there = true;
      each(ir::block_of(m.after, s, d), [&](element const& e) {
        auto const it = before.at(d).find(e);
        if (it == before.at(d).end()) there = false;
        else after[d][e] = it->second;
      });
      if (!there) return {};
    }
    return after;
  }
  i64 const n = m.group_size();
  bool const reduces = m.kind == ir::reshard_kind::all_reduce || m.kind == ir::reshard_kind::reduce_scatter;
  bool const divides = m.kind == ir::reshard_kind::reduce_scatter || m.kind == ir::reshard_kind::all_to_all;
  for (auto const& [d, mine] : before) {
    std::vector<int> const who = m.members(d);
    auto const me = std::find(who.begin(), who.end(), d);
    if (me == who.end() || std::set<int>(who.begin(), who.end()).size() != who.size()) return {};
    for (int o : who) if (!before.count(o) || m.members(o) != who) return {};
    op::tensor_block const first = ir::block_of(m.before, s, who[0]);
    op::tensor_block all = first;
    std::map<element, shares> joined;
    if (reduces) {
      for (int o : who) {
        if (before.at(o).size() != before.at(who[0]).size()) return {};
        for (auto const& [e, x] : before.at(o)) {
          if (!before.at(who[0]).count(e)) return {};
          joined[e].insert(x.begin(), x.end());
        }
      }
    } else {
      all.local[m.from_dim] *= n;                              // chunk after chunk, in the members' order
      for (std::size_t i = 0; i < who.size(); ++i)
        for (auto const& [e, x] : before.at(who[i])) {
          element at = e;
          at[idx(m.from_dim)] += first.offset[m.from_dim] + static_cast<i64>(i) * first.local[m.from_dim] -
                               ir::block_of(m.before, s, who[i]).offset[m.from_dim];
          if (at != e) return {};
          joined[e] = x;
        }
    }
    if (divides && all.local[m.to_dim] % n) return {};
    bool there = true;
    each(divides ? cut(all, m.to_dim, me - who.begin(), n) : all, [&](element const& e) {
      auto const it = joined.find(e);
      if (it == joined.end()) there = false;
      else after[d][e] = it->second;
    });
    if (!there) return {};
  }
  return after;
}
/// Does it hold what the layout states: its boxes, one set of shares by place in the sum, together every share once?
bool states(ir::layout const& l, shape const& s, held const& h, i64 all) {
  if (h.size() != idx(l.size())) return false;
  std::map<i64, shares> by_place;
  for (int d : l.devices()) {
    if (!h.count(d)) return false;
    std::set<element> wanted;
    each(ir::block_of(l, s, d), [&](element const& e) { wanted.insert(e); });
    if (wanted.size() != h.at(d).size()) return false;
    for (auto const& [e, x] : h.at(d)) {
      if (!wanted.count(e) || x.empty()) return false;
      auto const [it, fresh] = by_place.insert({sum_index(l, l.coordinates(d)), x});
      if (!fresh && it->second != x) return false;
    }
  }
  shares total;
  for (auto const& [i, x] : by_place) total.insert(x.begin(), x.end());
  shares once;
  for (i64 i = 0; i < all; ++i) once.insert(i);
  return total == once;
}

}  // namespace

TEST_CASE("a reshard is right if, carried out element by element, it leaves what its layout states") {
  std::mt19937 draw(1);
  std::map<std::string, std::pair<int, int>> seen;            // kind -> right, wrong
  for (int turn = 0; turn < test_effort::cases(1500); ++turn) {
    static constexpr int sizes[] = {2, 4, 6, 8, 12};
    int const n = sizes[draw() % 5];
    shape const s = draw() % 2 ? shape{24, 24} : shape{48};
    ir::layout const from = random_layout(n, s, true, draw), to = random_layout(n, s, false, draw);
    ir::layout at = from;
    for (ir::reshard_step m : ir::reshard(from, to, s)) {
      for (int k = 0; k < 4; ++k) {
        ir::reshard_step x = m;
        switch (k == 0 ? 0u : 1 + draw() % 6) {
          case 0: break;
          case 1: x.kind = static_cast<ir::reshard_kind>(draw() % 6); break;
          case 2: if (!x.group.empty()) x.group[draw() % x.group.size()].degree = 1 + static_cast<i64>(draw() % 4); break;
          case 3: if (!x.group.empty()) x.group[draw() % x.group.size()].stride = 1 + static_cast<i64>(draw() % 4); break;
          case 4: if (s.rank == 2 && x.from_dim >= 0) x.from_dim = 1 - x.from_dim; break;
          case 5: if (s.rank == 2 && x.to_dim >= 0) x.to_dim = 1 - x.to_dim; break;
          case 6: x.after = random_layout(n, s, true, draw); break;
        }
        bool const gathers = x.kind == ir::reshard_kind::all_gather || x.kind == ir::reshard_kind::all_to_all;
        bool const divides = x.kind == ir::reshard_kind::reduce_scatter || x.kind == ir::reshard_kind::all_to_all;
        if ((gathers && x.from_dim < 0) || (divides && x.to_dim < 0)) continue;
        held const before = contents(x.before, s);
        std::optional<held> const after = carried_out(x, s, before);
        bool const right = after && states(x.after, s, *after, x.before.degree(ir::part_kind::partial));
        facts known(n);
        int const a = known.layout_number(x.before, s), b = known.layout_number(x.after, s);
        moving const& said = known.moves(x, a, b);
        CAPTURE(turn);
        CAPTURE(said.wrong.text);
        REQUIRE(!said.wrong == right);
        ++(right ? seen[ir::name_of(x.kind)].first : seen[ir::name_of(x.kind)].second);
        for (std::size_t i = 0; right && i < said.from.size(); ++i)
          for (int d : x.after.devices())
            if (sum_index(x.after, x.after.coordinates(d)) == static_cast<i64>(i))
              CHECK(after->at(d).begin()->second == shares(said.from[i].begin(), said.from[i].end()));
      }
    }
  }
  for (auto const& [kind, n] : seen) MESSAGE(kind << ": " << n.first << " right, " << n.second << " wrong");
  CHECK(seen.size() == 6);
  for (auto const& [kind, n] : seen) CHECK((n.first > 0 && n.second > 0));
}

TEST_CASE("operands and results fit the layouts that follow from notation and sharding, and no other") {
  std::mt19937 draw(2);
  int fits = 0, others = 0;
  for (int turn = 0; turn < test_effort::cases(60); ++turn) {
    computation_graph const g = turn % 3 == 0 ? tests::residual_mlp() : turn % 3 == 1 ? tests::small_cnn() : tests::small_transformer();
    int const n = 2 + turn % 5;
    plan const p = tests::random_plan(g, n, draw);
    facts known(n);
    for (int v = 0; v < g.node_count(); ++v) {
      graph_node const& node = g.node(v);
      ir::sharding const& mesh = p.nodes[idx(v)].sharding;
      std::vector<shape> in, out;
      for (int x : node.in) in.push_back(g.type(x));
      for (int x : node.out) out.push_back(g.type(x));
      int const run = known.run_number(known.operator_number(node, in, out), mesh);
      REQUIRE(known.runs(run).why.empty());
      auto boxes = [](ir::layout const& l, shape const& s) {        // device -> offset and extents, share
        std::map<int, std::vector<i64>> r;
        for (int d : l.devices()) {
          op::tensor_block const b = ir::block_of(l, s, d);
          for (int k = 0; k < s.rank; ++k) r[d].insert(r[d].end(), {b.offset[k], b.local[k]});
          r[d].push_back(0);
        }
        return r;
      };
      for (std::size_t k = 0; k < in.size(); ++k) {
        ir::layout const right = ir::operand_layout(ir::space_of(g, v), node.letters, mesh, static_cast<int>(k));
        ir::layout const other = random_layout(n, in[k], false, draw);
        CHECK(!known.reads(run, static_cast<int>(k), known.layout_number(right, in[k])).wrong);
        bool const number = places(other, in[k], n).empty();
        if (number || in[k].rank == 0) continue;
        auto const want = boxes(right, in[k]), have = boxes(other, in[k]);
        bool same = true;
        for (auto const& [d, b] : want) same = same && have.count(d) && have.at(d) == b;
        CHECK(!known.reads(run, static_cast<int>(k), known.layout_number(other, in[k])).wrong == same);
        ++(same ? fits : others);
      }
      for (std::size_t k = 0; k < out.size(); ++k) {
        ir::layout const right = ir::result_layout(ir::space_of(g, v), node.letters, mesh, static_cast<int>(k));
        writing const& w = known.writes(run, static_cast<int>(k), known.layout_number(right, out[k]));
        CHECK(!w.wrong);
        CHECK(std::set<i64>(w.share.begin(), w.share.end()).size() == idx(right.degree(ir::part_kind::partial)));
        ir::layout shifted = right;
        shifted.start += 1;
        CHECK(known.writes(run, static_cast<int>(k), known.layout_number(shifted, out[k])).wrong);
        for (ir::layout_axis& a : shifted.axes) if (a.kind == ir::part_kind::partial) a.kind = ir::part_kind::replicate;
        shifted.start -= 1;
        if (right.degree(ir::part_kind::partial) > 1)
          CHECK(known.writes(run, static_cast<int>(k), known.layout_number(ir::canonical(shifted), out[k])).wrong);
      }
    }
  }
  MESSAGE(fits << " other layouts fit, " << others << " do not");
  CHECK(fits > 0);
  CHECK(others > 0);
}
