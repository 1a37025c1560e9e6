// tests/ir/loss_reduction.test.cpp - what graphs say of their losses, and who may say otherwise
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/ir/loss_reduction.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <tensorpar/op/operators.hpp>

using namespace tensorpar;

namespace {

/// Small graphs of six samples, each with one value.
struct parts {
  computation_graph g;
  int x, y, w, h;
  explicit parts(i64 samples = 6) {
    x = g.add_input("x", {samples, 3}), y = g.add_input("y", {samples, 3}), w = g.add_parameter("w", {3}, op::init::ones);
    h = made(linear{3}, {x, g.add_parameter("l", {3, 3}, op::init::fan_in), g.add_parameter("b", {3}, op::init::zeros)});
  }
  int made(op::any_op const& o, std::vector<value_id> in) { return g.node(g.add(o, in)).out[0]; }
  int sum() { return made(contraction("be,be->"), {h, y}); }
  int mean() { return made(mean_squared_error{}, {h, y}); }
  int own() { return made(contraction("e,e->"), {w, w}); }          // of no sample
};
ir::reduced_samples kind(std::function<int(parts&)> const& loss, i64 samples = 6) {
  parts p(samples);
  int const x = loss(p);
  return ir::reduction_in(p.g, x, ir::sample_runs(p.g));
}

}  // namespace

TEST_CASE("means, sums, what is neither, and what cannot be told") {
  using enum ir::reduced_samples;
  std::vector<std::pair<ir::reduced_samples, std::function<int(parts&)>>> const table{
      {mean, [](parts& p) { return p.mean(); }},
      {mean, [](parts& p) { return p.made(add{}, {p.mean(), p.own()}); }},
      {mean, [](parts& p) { return p.made(scale{1.0 / 6}, {p.mean()}); }},
      {mean, [](parts& p) { return p.made(mul{}, {p.mean(), p.own()}); }},
      {sum, [](parts& p) { return p.sum(); }},
      {sum, [](parts& p) { return p.made(op::sum_axis{0}, {p.made(op::sum_axis{1}, {p.h})}); }},
      {sum, [](parts& p) { return p.made(op::sum_axis{0}, {p.made(op::sum_axis{0}, {p.h})}); }},
      {sum, [](parts& p) { return p.made(op::sum_axis{0}, {p.made(relu{}, {p.made(contraction("be,e->b"), {p.h, p.w})})}); }},
      {sum, [](parts& p) { return p.made(scale{2.5}, {p.sum()}); }},
      {sum, [](parts& p) { return p.made(scale{0.5}, {p.sum()}); }},
      {sum, [](parts& p) { return p.made(mul{}, {p.own(), p.sum()}); }},
      {sum, [](parts& p) { return p.made(add{}, {p.sum(), p.made(scale{0.25}, {p.sum()})}); }},
      {sum, [](parts& p) { return p.made(contraction("e,e->"), {p.made(op::sum_axis{0}, {p.h}), p.w}); }},
      {sum, [](parts& p) { return p.made(op::sum_axis{0}, {p.made(op::sum_axis{0}, {p.made(transpose{0, 1}, {p.h})})}); }},
      {scaled, [](parts& p) { return p.made(scale{1.0 / 6}, {p.sum()}); }},
      {scaled, [](parts& p) { return p.made(scale{1.0 / 18}, {p.sum()}); }},
      {scaled, [](parts& p) { return p.made(scale{1.0 / 3}, {p.made(scale{1.0 / 6}, {p.sum()})}); }},
      {scaled, [](parts& p) { return p.made(mul{}, {p.sum(), p.made(constant{1.0 / 12, 0, {}}, {})}); }},
      {scaled, [](parts& p) { return p.made(op::sum_axis{0}, {p.made(scale{1.0 / 6}, {p.made(op::sum_axis{1}, {p.h})})}); }},
      {scaled, [](parts& p) { return p.made(op::sum_axis{0}, {p.made(op::sum_axis{0}, {p.made(scale{1.0 / 6}, {p.h})})}); }},
      {scaled, [](parts& p) { return p.made(contraction("b,b->"),
                                            {p.made(op::sum_axis{1}, {p.h}), p.made(constant{1.0 / 6, 1, {6}}, {})}); }},
      {scaled, [](parts& p) {
         return p.made(op::sum_axis{0}, {p.made(mul{}, {p.made(constant{1.0 / 6, 1, {6}}, {}), p.made(op::sum_axis{1}, {p.h})})});
       }},
      {scaled, [](parts& p) { return p.made(contraction("be,be->"), {p.made(scale{1.0 / 6}, {p.h}), p.h}); }},
      {sum, [](parts& p) { return p.made(op::sum_axis{0}, {p.made(scale{2.5}, {p.made(op::sum_axis{1}, {p.h})})}); }},
      {mixed, [](parts& p) { return p.made(add{}, {p.sum(), p.mean()}); }},
      {mixed, [](parts& p) { return p.made(add{}, {p.sum(), p.own()}); }},
      {mixed, [](parts& p) { return p.made(scale{2}, {p.made(add{}, {p.made(add{}, {p.mean(), p.own()}), p.sum()})}); }},
      {other, [](parts& p) { return p.made(relu{}, {p.mean()}); }},
      {other, [](parts& p) { return p.made(tanh_{}, {p.sum()}); }},
      {other, [](parts& p) { return p.made(mul{}, {p.sum(), p.sum()}); }},
      {other, [](parts& p) { return p.made(add{}, {p.sum(), p.made(tanh_{}, {p.mean()})}); }},
      {none, [](parts& p) { return p.own(); }},
  };
  for (std::size_t k = 0; k < table.size(); ++k) {
    CAPTURE(k);
    CHECK(kind(table[k].second) == table[k].first);
  }
  CHECK(kind([](parts& p) { return p.made(scale{0.5}, {p.sum()}); }, 1) == scaled);      // of one sample, any such factor may be a mean's
  CHECK(kind([](parts& p) { return p.made(scale{2.5}, {p.sum()}); }, 1) == sum);
  CHECK(kind([](parts& p) { return p.sum(); }, 1) == sum);
}

TEST_CASE("who says what a loss is, and who is refused") {
  auto const asked = [](int which, loss_reduction r, int micro_batches) {
    parts p;
    int const x = which == 0   ? p.mean()
                  : which == 1 ? p.sum()
                  : which == 2 ? p.made(scale{1.0 / 6}, {p.sum()})
                  : which == 3 ? p.made(add{}, {p.sum(), p.mean()})
                               : p.made(tanh_{}, {p.mean()});
    p.g.add_output("loss", x);
    training_options o;
    o.micro_batches = micro_batches;
    o.reduction = r;
    training_graph const t = differentiate(p.g, o);
    for (graph_node const& n : t.graph.nodes)
      if (n.phase == step_phase::backward) {
        CHECK(n.op == op::any_op(constant{t.reduction == loss_reduction::sum ? 1.0 : 1.0 / micro_batches, 0, {}}));
        break;
      }
    return t.reduction;
  };
  using enum loss_reduction;
  for (int which = 0; which < 5; ++which) CHECK_NOTHROW(asked(which, as_graph, 1));
  for (loss_reduction r : {as_graph, mean}) CHECK(asked(0, r, 3) == mean);
  for (loss_reduction r : {as_graph, sum}) CHECK(asked(1, r, 3) == sum);
  for (loss_reduction r : {mean, sum}) CHECK(asked(2, r, 3) == r);
  CHECK(asked(4, as_graph, 3) == mean);
  CHECK(asked(4, sum, 3) == sum);
  auto const refused = [&](int which, loss_reduction r) {
    std::string text;
    try { asked(which, r, 3); } catch (error const& e) { text = e.what(); }
    return text;
  };
  CHECK(refused(0, sum).find("the loss 'loss' is a mean over samples, not a sum") != std::string::npos);
  CHECK(refused(1, mean).find("the loss 'loss' is a sum over samples, not a mean") != std::string::npos);
  CHECK(refused(2, as_graph).find("times what may be one over their number") != std::string::npos);
  for (loss_reduction r : {as_graph, mean, sum})
    CHECK(refused(3, r).find("adds a sum over samples to what is no such sum") != std::string::npos);
}
