// tests/search/problem/split.test.cpp - cuts let one tensor through, and the parts together cost what the whole does
#include "random_problem.hpp"

#include <doctest/doctest.h>
#include <support/small_graphs.hpp>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/search/joint/piece_prices.hpp>
#include <tensorpar/search/problem/split.hpp>
#include <tensorpar/search/solve/min_sum.hpp>

using namespace tensorpar;
using namespace tensorpar::search;
using namespace tensorpar::search_test;

namespace {

/// The least sum over all choices where parts meet.
double min_of(std::vector<piece_table> const& parts) {
  std::vector<double> so_far{0.0};
  for (piece_table const& t : parts) {
    REQUIRE(static_cast<int>(so_far.size()) == t.rows);
    std::vector<double> next(static_cast<std::size_t>(t.cols), infinity);
    for (int i = 0; i < t.rows; ++i)
      for (int j = 0; j < t.cols; ++j)
        next[static_cast<std::size_t>(j)] = std::min(next[static_cast<std::size_t>(j)], so_far[static_cast<std::size_t>(i)] + t.at(i, j));
    so_far = next;
  }
  return *std::min_element(so_far.begin(), so_far.end());
}
std::vector<char> reaches(computation_graph const& g, int v, bool up) {
  std::vector<char> r(g.nodes.size(), 0);
  r[static_cast<std::size_t>(v)] = 1;
  for (int turn = 0; turn < g.node_count(); ++turn) {
    int const w = up ? g.node_count() - 1 - turn : turn;
    for (int u : g.predecessors(w)) {
      if (up && r[static_cast<std::size_t>(w)]) r[static_cast<std::size_t>(u)] = 1;
      if (!up && r[static_cast<std::size_t>(u)]) r[static_cast<std::size_t>(w)] = 1;
    }
  }
  return r;
}
/// By definition, one candidate at a time.
bool is_cut(computation_graph const& g, int c) {
  auto const before = reaches(g, c, true), after = reaches(g, c, false);
  for (std::size_t v = 0; v < before.size(); ++v) if (!before[v] && !after[v]) return false;
  if (g.node(c).out.size() != 1) return false;
  bool read = false;
  for (int v = 0; v < g.node_count(); ++v)
    for (int u : g.predecessors(v)) {
      if (before[static_cast<std::size_t>(u)] && u != c && !before[static_cast<std::size_t>(v)]) return false;
      read = read || u == c;
    }
  return read;
}

/// Two blocks with their norms inside the residual connections: cut at additions.
computation_graph stack_of_blocks() {
  computation_graph g;
  int x = g.add_input("x", {4, 6, 8});
  auto put = [&](op::any_op const& o, std::vector<value_id> in) {
    return g.node(g.add_with_weights(o, std::move(in), "n" + std::to_string(g.node_count()))).out[0];
  };
  x = put(linear{8}, {x});
  for (int layer = 0; layer < 2; ++layer) x = put(add{}, {x, put(linear{8}, {put(gelu{}, {put(linear{16}, {put(layernorm{}, {x})})})})});
  g.add_output("loss", put(mean_squared_error{}, {x, g.add_input("y", {4, 6, 8})}));
  return g;
}
/// One weight in three operators, cut between them.
computation_graph shared_weight() {
  computation_graph g;
  int x = g.add_input("x", {8, 8});
  int const w = g.add_parameter("w", {8, 8}, op::init::fan_in);
  for (int k = 0; k < 3; ++k) {
    x = g.node(g.add(linear{8, false}, {x, w})).out[0];
    if (k < 2) x = g.node(g.add(relu{}, {x})).out[0];
  }
  g.add_output("loss", g.node(g.add(mean_squared_error{}, {x, g.add_input("y", {8, 8})})).out[0]);
  return g;
}
/// An operator that three read, an output where it is cut, and operators after the loss.
computation_graph outputs_and_readers() {
  computation_graph g;
  auto put = [&](op::any_op const& o, std::vector<value_id> in) {
    return g.node(g.add_with_weights(o, std::move(in), "n" + std::to_string(g.node_count()))).out[0];
  };
  int x = put(linear{8}, {g.add_input("x", {4, 8})});
  g.add_output("first", x);
  x = put(add{}, {put(add{}, {put(relu{}, {x}), put(tanh_{}, {x})}), x});
  x = put(linear{8}, {x});
  g.add_output("logits", x);
  int const loss = put(mean_squared_error{}, {x, g.add_input("y", {4, 8})});
  g.add_output("loss", loss);
  g.add_output("scaled", put(scale{2}, {loss}));
  return g;
}
bool shares_parameters(computation_graph const& g) {
  for (std::size_t x = 0; x < g.values.size(); ++x) {
    int n = 0;
    for (graph_node const& u : g.nodes) n += static_cast<int>(std::count(u.in.begin(), u.in.end(), static_cast<int>(x)));
    if (g.values[x].role == value_role::parameter && n > 1) return true;
  }
  return false;
}
int readers(computation_graph const& g, int v) {
  int n = 0;
  for (graph_node const& u : g.nodes) n += static_cast<int>(std::count(u.in.begin(), u.in.end(), g.node(v).out[0]));
  return n;
}

}  // namespace

TEST_CASE("candidates are what the definition says") {
  for (computation_graph const& g : {tests::residual_mlp(), tests::small_cnn(), tests::small_transformer()}) {
    auto const all = cut_candidates(g, differentiate(g));
    CHECK(!all.empty());
    for (int v = 0; v + 1 < g.node_count(); ++v) {
      CAPTURE(v);
      bool const handed_on = std::string_view(g.node(v).op.op->name) == "add" && readers(g, v) == 1;
      CHECK((std::find(all.begin(), all.end(), v) != all.end()) == (is_cut(g, v) && !handed_on));
    }
  }
}

TEST_CASE("every operator is in one part, with the shapes that it has in the whole, and one tensor goes on") {
  for (computation_graph const& g : {tests::residual_mlp(), tests::small_cnn(), tests::small_transformer()})
    for (int least : {1, 2, 3, 5, 100}) {
      auto const cuts = choose_cuts(g, differentiate(g), {}, least);
      auto const parts = pieces(g, cuts);
      CHECK(parts.size() == cuts.size() + 1);
      std::vector<int> seen(g.nodes.size(), 0);
      for (std::size_t k = 0; k < parts.size(); ++k) {
        graph_piece const& p = parts[k];
        CHECK(p.graph.node_count() - (p.ends.anchor >= 0) >= std::min(least, g.node_count()));
        CHECK((p.ends.anchor >= 0) == (k > 0));
        for (int v = 0; v < p.graph.node_count(); ++v) {
          int const w = p.node[static_cast<std::size_t>(v)];
          CHECK(p.graph.node(v).op == g.node(w).op);
          for (std::size_t i = 0; i < p.graph.node(v).in.size(); ++i)
            CHECK(p.value[static_cast<std::size_t>(p.graph.node(v).in[i])] == g.node(w).in[i]);
          if (v == p.ends.anchor) CHECK(w == cuts[k - 1]);
          else ++seen[static_cast<std::size_t>(w)];
        }
        CHECK(p.node[static_cast<std::size_t>(p.ends.last)] == (k < cuts.size() ? cuts[k] : g.node_count() - 1));
      }
      CHECK(std::count(seen.begin(), seen.end(), 1) == g.node_count());
    }
}

TEST_CASE("of several places the one that disturbs fewest groups is cut") {
  computation_graph g;
  int x = g.add_input("x", {4, 8});
  for (int i = 0; i < 8; ++i) x = g.node(g.add_with_weights(linear{8, false}, {x}, "n" + std::to_string(i))).out[0];
  g.add_output("loss", g.node(g.add(judge{}, {x})).out[0]);
  training_graph const t = differentiate(g);
  CHECK(choose_cuts(g, t, {}, 3) == std::vector<int>{2, 5});
  CHECK(choose_cuts(g, t, {{2, 3}}, 3) == std::vector<int>{3});
  CHECK(choose_cuts(g, t, {{2, 3}, {3, 4}}, 3) == std::vector<int>{4});
  CHECK(choose_cuts(g, t, {{0, 1}, {1, 2}}, 3) == std::vector<int>{2, 5});
}

TEST_CASE("the parts' tables together give what the whole graph's least sum is") {
  cost::analytical const model;
  for (computation_graph const& g : {tests::residual_mlp(), tests::small_cnn(), tests::small_transformer(), stack_of_blocks(),
                                     shared_weight(), outputs_and_readers()})
    for (int devices : {2, 4})
      for (auto kind : {optimizer_kind::sgd, optimizer_kind::adamw}) {
        machine const on = tests::devices(devices);
        training_options t;
        t.optimizer.kind = kind;
        t.micro_batches = devices / 2;
        t.optimizer.clip_norm = kind == optimizer_kind::adamw ? 1 : 0;
        objective_options o;
        o.micro_batches = t.micro_batches;
        o.grain = devices;
        training_graph const whole = differentiate(g, t);
        mapping_problem const p = make_problem(whole, on, model, {}, o);
        std::vector<std::vector<double>> seconds;
        for (choice_set const& s : p.sets) seconds.push_back(s.seconds);
        additive_optimum const want = min_sum(p, seconds);
        REQUIRE(want.exact);
        for (int least : {1, 2, 4}) {
          auto const cuts = choose_cuts(g, differentiate(g), {}, least);
          CHECK((!cuts.empty() || least > 2));
          piece_prices<cost::analytical> price(on, model, {}, o, t);
          std::vector<piece_table> tables;
          auto const parts = pieces(g, cuts);
          for (std::size_t k = 0; k < parts.size(); ++k) {
            tables.push_back(price(parts[k].graph, parts[k].ends));
          }
          double const found = min_of(tables);
          if (shares_parameters(g)) CHECK(found <= want.value * (1 + 1e-12));   // what a shared parameter costs between parts is left out
          else CHECK(found == doctest::Approx(want.value).epsilon(1e-12));
        }
      }
}

TEST_CASE("parts never cost more than the whole, whatever reshards cost, where they share a parameter") {
  for (u64 seed = 0; seed < 60; ++seed) {
    arbitrary_model const model{seed};
    computation_graph const g = shared_weight();
    machine const on = tests::devices(2);
    objective_options o;
    o.grain = 2;
    mapping_problem const p = make_problem(differentiate(g), on, model, {}, o);
    std::vector<std::vector<double>> seconds;
    for (choice_set const& s : p.sets) seconds.push_back(s.seconds);
    double const whole = min_sum(p, seconds).value;
    for (int least : {1, 2}) {
      piece_prices<arbitrary_model> price(on, model, {}, o, {});
      std::vector<piece_table> tables;
      for (graph_piece const& x : pieces(g, choose_cuts(g, differentiate(g), {}, least))) tables.push_back(price(x.graph, x.ends));
      CHECK(tables.size() > 1);
      CHECK(min_of(tables) <= whole);
    }
  }
}
