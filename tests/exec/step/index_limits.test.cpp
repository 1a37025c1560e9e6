// tests/exec/step/index_limits.test.cpp - what indices an input may hold, through every operator that moves them, against plain loops
#include <doctest/doctest.h>
#include <tensorpar/exec/step/index_limits.hpp>

#include "straight_loops.hpp"
#include "support/effort.hpp"
#include <set>

using namespace tests;

namespace {

/// A graph of integer inputs that pass through random operators, parts of which several operators read with.
computation_graph random_flow(std::mt19937& draw, std::set<std::string>& drawn) {
  computation_graph g;
  auto const any = [&](int n) { return static_cast<int>(draw() % static_cast<unsigned>(n)); };
  std::vector<int> values;
  for (int k = 0, n = 1 + any(3); k < n; ++k) {
    shape s;
    s.type = k % 2 ? dtype::i64 : dtype::i32;
    for (s.rank = 0; s.rank < any(4);) s.d[s.rank++] = dim(1 + any(4));
    values.push_back(g.add_input("in" + std::to_string(k), s));
  }
  for (int k = 0, n = any(10); k < n; ++k) {
    int const x = values[static_cast<std::size_t>(any(static_cast<int>(values.size())))];
    shape const s = g.type(x);
    int const a = s.rank ? any(s.rank) : 0;
    i64 const begin = s.rank ? any(static_cast<int>(s.d[a].n)) : 0, left = s.rank ? s.d[a].n - begin : 1;
    op::any_op const choices[] = {transpose{a, any(4)}, slice_axis{a, begin, 1 + any(static_cast<int>(left))}, split_axes{1 + any(3), a},
                              flatten{any(3)}, merge_axes{a}, split_axis{a, 1 + any(3)}, reshape{0, 1, {s.elements()}},
                              reshape{0, 2, {s.elements(), 1}}, concat{a}, concat{a}, parallel::partition{0, 1}, parallel::combine{0, 1},
                              parallel::replicate{1}, unslice_axis{a, begin, begin + 4}};
    op::any_op const& o = choices[static_cast<std::size_t>(any(static_cast<int>(std::size(choices))))];
    std::vector<value_id> in{x};
    if (o.is<concat>()) in.push_back(values[static_cast<std::size_t>(any(static_cast<int>(values.size())))]);
    try {
      for (int y : g.node(g.add(o, in)).out) values.push_back(y);
      drawn.insert(std::string(o.op->name));
    } catch (error const&) {                               // it does not fit this tensor
    }
  }
  for (int k = 0, n = 1 + any(4); k < n; ++k) {
    int const x = values[static_cast<std::size_t>(any(static_cast<int>(values.size())))];
    shape logits = g.type(x).of(dtype::f32);
    i64 const extent = 2 + any(6);
    if (logits.rank == shape::max_rank) continue;
    switch (any(3)) {
      case 0: g.add(embedding{extent, 3}, {x, g.add_parameter("t" + std::to_string(g.values.size()), {extent, 3}, op::init::zeros)}); break;
      case 1:
        if (logits.rank)
          g.add(embedding_bag{extent, 3}, {x, g.add_parameter("t" + std::to_string(g.values.size()), {extent, 3}, op::init::zeros)});
        break;
      default:
        logits.d[logits.rank++] = dim(extent);
        g.add(cross_entropy{}, {g.add_input("x" + std::to_string(k), logits), x});
    }
  }
  return g;
}

/// By input, by element: the least extent of what reads with it; 0: nothing does.
std::map<int, std::vector<i64>> plain_limits(computation_graph const& g) {
  std::map<int, std::vector<i64>> r;
  std::map<int, dense<double>> at;                         // by value: 1000 * input + element + 1; 0: nobody's
  for (std::size_t x = 0; x < g.values.size(); ++x) {
    if (g.values[x].role != value_role::input || !is_integer(g.values[x].type.type)) continue;
    dense<double>& d = at[static_cast<int>(x)] = make_dense<double>(whole(g.values[x].type.of(dtype::f32)));
    for (std::size_t e = 0; e < d.real.size(); ++e) d.real[e] = 1000 * static_cast<double>(x) + static_cast<double>(e) + 1;
    r[static_cast<int>(x)].assign(d.real.size(), 0);
  }
  for (graph_node const& n : g.nodes) {
    bool const loss = n.op.is<cross_entropy>(), table = n.op.is<embedding>() || n.op.is<embedding_bag>();
    if (loss || table) {
      i64 const extent = loss ? g.type(n.in[0]).last().n : g.type(n.in[1]).d[0].n;
      for (double k : at.at(n.in[loss]).real) {
        if (k == 0) continue;
        i64& l = r.at(static_cast<int>(k - 1) / 1000)[static_cast<std::size_t>(static_cast<int>(k - 1) % 1000)];
        l = l == 0 ? extent : std::min(l, extent);
      }
      continue;
    }
    std::vector<dense<double>> x, y;
    for (int v : n.in) x.push_back(at.at(v));
    for (int v : n.out) y.push_back(make_dense<double>(whole(g.type(v).of(dtype::f32))));
    if (n.op.is<unslice_axis>()) {
      auto const u = n.op.as<unslice_axis>();
      for (std::size_t e = 0; e < x[0].real.size(); ++e) {
        auto p = place_of(x[0].block, e);
        p[static_cast<std::size_t>(u.axis_no)] += u.begin;
        y[0].real[indexed::flat(y[0].block, p)] = x[0].real[e];
      }
    } else {
      REQUIRE(straight_loops(n.op, x, y, {}));
    }
    for (std::size_t k = 0; k < y.size(); ++k) at[n.out[k]] = y[k];
  }
  return r;
}

/// A user's operator on indices.
struct hashed {
  static constexpr auto name = "hashed";
  static constexpr auto notation = "... -> ...";
  constexpr op::inference infer(shapes in) const { return in[0]; }
};

}  // namespace

TEST_CASE("every element has the least limit of the operators that read with it, wherever it is moved") {
  std::mt19937 draw(1);
  std::set<std::string> drawn;
  int limited = 0, parts = 0;
  for (int trial = 0, n = test_effort::cases(1000); trial < n; ++trial) {
    computation_graph const g = random_flow(draw, drawn);
    auto const want = plain_limits(g);
    auto const got = exec::detail::index_flow(g).limits();
    CAPTURE(trial);
    REQUIRE(got.size() == want.size());
    for (auto const& [x, each] : want) {
      exec::detail::index_limits const& l = got.at(x);
      parts += !l.each.empty();
      for (std::size_t e = 0; e < each.size(); ++e) {
        CHECK(l.of(e) == (each[e] ? static_cast<std::uint32_t>(each[e] - 1) : exec::detail::index_limits::any));
        limited += each[e] > 0;
      }
      // a batch of three micro-batches, of which one element is what it may just be, or just not
      shape s = g.type(x), all = s;
      if (all.rank) all.d[0].n *= 3;
      host_tensor t{all, {}, std::vector<std::int32_t>(static_cast<std::size_t>(all.elements()), 0)};
      auto const e = static_cast<std::size_t>(draw() % t.index.size()), own = e % each.size();
      std::int32_t const edge = each[own] ? static_cast<std::int32_t>(each[own]) : 1 << 30;
      for (std::int32_t v : {edge - 1, edge, -1}) {
        t.index[e] = v;
        CAPTURE(v);
        auto const check = [&] { exec::detail::check_indices(g, "in", t, s, 0, 3, l); };
        std::string const words = "input 'in' holds " + std::to_string(v) + " at " + exec::detail::element_place(all, static_cast<i64>(e)) +
                                  " (at batch); valid: 0 to " + std::to_string(each[own] - 1) + ", for ";
        if (each[own] && (v < 0 || v >= edge)) CHECK_THROWS_WITH_AS(check(), doctest::Contains(words.c_str()), error);
        else CHECK_NOTHROW(check());
      }
    }
  }
  CHECK(limited > test_effort::cases(1000));
  CHECK(parts > test_effort::cases(300));
  CHECK(drawn.size() == 12);
}

TEST_CASE("places of elements are told axis by axis; what a user's operator makes of indices has no limits") {
  CHECK(exec::detail::element_place({2, 3, 4}, 23) == "[1, 2, 3]");
  CHECK(exec::detail::element_place({7}, 5) == "[5]");
  CHECK(exec::detail::element_place({}, 0) == "[]");
  computation_graph g;
  int const x = g.add_input("x", shape({4}, dtype::i32));
  g.add(embedding{5, 2}, {g.node(g.add(hashed{}, {x})).out[0], g.add_parameter("t", {5, 2}, op::init::zeros)});
  CHECK(exec::detail::index_flow(g).limits().at(x).of(0) == exec::detail::index_limits::any);
}
