// tests/search/pipeline/batch_axes.test.cpp - axes of samples are those that grow where the same graph is made for more samples
#include <tensorpar/search/pipeline/batch_axes.hpp>
#include <doctest/doctest.h>

#include <optional>
#include <tensorpar/ir/rebatch.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/zoo/registry.hpp>
#include "support/effort.hpp"
#include "support/operator_samples.hpp"
#include "support/random_graph.hpp"
#include "support/small_graphs.hpp"

using namespace tensorpar;
using search::detail::batch_axes;
using tests::at;
using tests::random_source;

namespace {

/// Where the axes differ from those that are longer in `more`, the same graph for more samples; empty: nowhere.
std::string wrong(batch_axes const& b, computation_graph const& g, computation_graph const& more) {
  for (std::size_t x = 0; x < g.values.size(); ++x) {
    int const value = static_cast<int>(x);
    i64 grown = 0;
    for (int d = 0; d < g.values[x].type.rank; ++d)
      if (more.values[x].type.d[d].n != g.values[x].type.d[d].n) grown |= i64{1} << d;
    std::string const where = "value " + std::to_string(value) + " " + op::spell(g.values[x].type);
    if (b.mask(value) != grown) return where + ": mask " + std::to_string(b.mask(value)) + ", grown " + std::to_string(grown);
    if (b.has_batch(value) != (grown != 0)) return where + ": has_batch";
    for (int d = 0; d < g.values[x].type.rank; ++d)
      if (b.is_batch(value, d) != (grown >> d & 1)) return where + ": is_batch of axis " + std::to_string(d);
  }
  return {};
}
/// The graph for three times the samples; none where operators fix the batch.
std::optional<computation_graph> grown(computation_graph const& g) {
  try {
    return ir::rebatch(g, 3);
  } catch (error const&) { return {}; }
}

/// Operators that move axes about, on three inputs with as many samples; sizes repeat, so that extents alone tell nothing.
computation_graph random_network(random_source& r) {
  computation_graph g;
  i64 const samples = 4;
  std::vector<int> have;
  for (int i = 0; i < 3; ++i)
    have.push_back(g.add_input("x" + std::to_string(i), r.chance(70) ? shape{samples, 2 * (1 + r.below(2)), 4} : shape{samples, 4}));
  for (int size = 3 + r.below(8), tries = 0; g.node_count() < size && tries < 100; ++tries) {
    int const x = have[at(r.below(static_cast<int>(have.size())))], rank = g.type(x).rank;
    if (rank == 0) continue;   // all is summed up
    std::vector<int> like{x};
    for (int y : have)
      if (y != x && g.type(y) == g.type(x)) like.push_back(y);
    int const a = r.below(rank), b = r.below(rank);
    std::string const name = "n" + std::to_string(g.node_count());
    try {
      int v = -1;
      switch (r.below(11)) {
        case 0: v = g.add_with_weights(linear{.out = 4, .bias = r.chance(50)}, {x}, name); break;
        case 1: v = g.add(relu{}, {x}, name); break;
        case 2: v = g.add(add{}, {x, like.back()}, name); break;
        case 3:
        case 4:
          if (a != b) v = g.add(transpose{.a = std::min(a, b), .b = std::max(a, b)}, {x}, name);
          break;
        case 5: v = g.add_with_weights(layernorm{}, {x}, name); break;
        case 6: v = g.add(softmax{}, {x}, name); break;
        case 7: v = g.add(op::sum_axis{.axis_no = a}, {x}, name); break;
        case 8: v = g.add(op::repeat_axis{.axis_no = a, .count = 4}, {x}, name); break;
        case 9: v = g.add(concat{.axis_no = a}, {x, like.back()}, name); break;
        default: v = g.add(merge_axes{.first = a}, {x}, name); break;
      }
      if (v >= 0) have.push_back(tests::out(g, v));
    } catch (error const&) {}   // an axis that is not there: another operator
  }
  return g;
}

}  // namespace

TEST_CASE("models of the zoo: the axes that are longer where the model is built for five times the samples") {
  for (zoo::entry const& e : zoo::entries()) {
    CAPTURE(e.name);
    computation_graph const g = zoo::make_reduced(e.name, 24), more = zoo::make_reduced(e.name, 120);
    REQUIRE(g.values.size() == more.values.size());
    batch_axes const b(g);
    CHECK(b.own() == 24);
    CHECK(wrong(b, g, more) == "");
  }
  for (computation_graph const& g : {tests::residual_mlp(), tests::small_cnn(), tests::small_transformer()}) {
    batch_axes const b(g);
    CHECK(b.own() == g.values[0].type.d[0].n);
    CHECK(wrong(b, g, ir::rebatch(g, 3)) == "");
  }
}

TEST_CASE("each operator on inputs: the axes that grow with the inputs, or a refusal where inputs differ in their samples") {
  int agree = 0, differ = 0;
  for (unsigned seed = 1; seed <= static_cast<unsigned>(test_effort::cases(8)); ++seed)
    for (tests::operator_sample const& s : tests::operator_samples(seed)) {
      computation_graph g;
      std::vector<value_id> in;
      bool equal = true;
      i64 samples = 0;
      for (shape const& t : s.in) {
        in.push_back(g.add_input("x" + std::to_string(in.size()), t));
        if (t.rank == 0) continue;
        equal = equal && (samples == 0 || t.d[0].n == samples);
        samples = t.d[0].n;
      }
      g.add_with_weights(s.op, in, "op");
      CAPTURE(seed); CAPTURE(spell(s.op));
      if (!equal) {
        CHECK_THROWS_WITH_AS(batch_axes{g}, doctest::Contains("as the inputs before it"), error);
        ++differ;
      } else if (auto const more = grown(g)) {
        CHECK(wrong(batch_axes(g), g, *more) == "");
        ++agree;
      }
    }
  CHECK(agree > 100);
  CHECK(differ > 10);
}

TEST_CASE("networks that move axes about: what can run on more samples grows along the axes of samples and no others") {
  random_source r{1};
  int agree = 0, moved = 0, refused = 0;
  for (int round = 0; round < test_effort::cases(1000); ++round) {
    computation_graph const g = random_network(r);
    std::string text;
    for (int v = 0; v < g.node_count(); ++v) {
      text += " " + op::spell(g.node(v).op) + "(";
      for (int x : g.node(v).in) text += op::spell(g.type(x)) + " ";
      text += ")";
    }
    CAPTURE(text);
    auto const more = grown(g);
    if (!more) {
      ++refused;
      continue;
    }
    std::optional<batch_axes> b;
    REQUIRE_NOTHROW(b.emplace(g));
    REQUIRE(wrong(*b, g, *more) == "");
    ++agree;
    for (std::size_t x = 0; x < g.values.size(); ++x) moved += b->mask(static_cast<int>(x)) > 1;
  }
  CHECK(agree > test_effort::cases(1000) / 10);
  CHECK(moved > test_effort::cases(1000) / 10);
  CHECK(refused > test_effort::cases(1000) / 10);
}

TEST_CASE("samples in parameters and inputs that differ are refused by name; scalars, and graphs without inputs, have none") {
  computation_graph g;
  int const x = g.add_input("x", {4, 6}), p = g.add_parameter("p", {4, 6}, op::init::zeros);
  CHECK(batch_axes(g).mask(p) == 0);   // as long, but nothing joins them
  g.add(add{}, {x, p}, "sum");
  CHECK_THROWS_WITH_AS(batch_axes{g}, doctest::Contains("parameter 'p' has an axis of samples"), error);

  computation_graph turned;
  int const y = turned.add_input("y", {4, 6}), t = turned.add(transpose{0, 1}, {y}, "turn");
  CHECK(batch_axes(turned).mask(tests::out(turned, t)) == 2);
  turned.add_with_weights(linear{3}, {tests::out(turned, t)}, "mix");
  CHECK_THROWS_WITH_AS(batch_axes{turned}, doctest::Contains("parameter 'mix.0'"), error);

  computation_graph two;
  int const none_of_it = two.add_input("rate", scalar), a = two.add_input("a", {4, 6}), alone = two.add_input("alone", {4, 4});
  CHECK(batch_axes(two).own() == 4);
  CHECK(batch_axes(two).mask(none_of_it) == 0);
  CHECK(batch_axes(two).mask(a) == 1);
  CHECK(batch_axes(two).mask(alone) == 1);   // no operator reads it
  two.add_input("other", {5, 6});
  CHECK_THROWS_WITH_AS(batch_axes{two}, doctest::Contains("input 'other' has 5 samples (at batch axes); valid: 4"), error);

  computation_graph none;
  int const w = none.add_parameter("w", {3, 3}, op::init::zeros), v = none.add(relu{}, {w}, "act");
  batch_axes const b(none);
  CHECK(b.own() == 1);
  CHECK_FALSE(b.has_batch(w));
  CHECK_FALSE(b.has_batch(tests::out(none, v)));
}
