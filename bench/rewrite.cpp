// bench/rewrite.cpp - finding every match of every shipped rule in a large graph, and applying one of them there
#include "../examples/standard_output.hpp"
#include <algorithm>
#include <chrono>
#include <CLI/CLI.hpp>
#include <cstdio>
#include <random>
#include <tensorpar/rewrite/apply.hpp>
#include <tensorpar/rewrite/rules/standard_rules.hpp>

using namespace tensorpar;

namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
void row(char const* name, char const* metric, double value, char const* unit, double limit) {
  std::printf("{\"bench\":\"rewrite\",\"case\":\"%s\",\"metric\":\"%s\",\"value\":%.6g"
              ",\"unit\":\"%s\",\"reference\":%g,\"ratio\":%.4g", name,
              metric, value, unit, limit, limit > 0 ? value / limit : 0);
  if (limit > 0) std::printf(",\"limit\":{\"value\":%g}", limit);
  std::printf("}\n");
}

/// Layers of attention-like products and a feed-forward net, residual, until there are so many operators.
computation_graph layers(int operators) {
  computation_graph g;
  int x = g.add_input("x", {64, 32, 64});
  int count = 0;
  auto add = [&](op::any_op const& o,
                 std::vector<value_id> in) { return g.node(g.add(o, std::move(in), "n" + std::to_string(count++))).out[0]; };
  auto weight = [&](shape const& s) { return g.add_parameter("w" + std::to_string(count), s, op::init::fan_in); };
  while (count < operators) {
    int const q = add(linear{64, false}, {x, weight({64, 64})}), k = add(linear{64, false}, {x, weight({64, 64})});
    int const v = add(linear{64, false}, {x, weight({64, 64})});
    int const s = add(scale{0.125}, {add(matmul{false, true}, {q, k})});
    int const o = add(linear{64, false}, {add(matmul{}, {add(softmax{}, {s}), v}), weight({64, 64})});
    int const y = add(tensorpar::add{}, {x, o});
    int const h = add(relu{}, {add(linear{256, false}, {y, weight({256, 64})})});
    int const z = add(linear{64, false}, {h, weight({64, 256})});
    x = add(tensorpar::add{}, {y, z});
  }
  g.add_output("y", x);
  return g;
}

/// The same graph after so many steps that sharding it: products split over their sums, batches, columns.
void sharding_some(rewrite::open_graph& g, std::vector<rewrite::rule> const& rules, int steps) {
  std::mt19937 draw(1);
  for (int n = 0; n < steps; ++n) {
    rewrite::rule const& r = rules[draw() % rules.size()];
    auto all = rewrite::find_matches(r, g, 64);
    if (all.empty()) continue;
    rewrite::rule_match& m = all[draw() % all.size()];
    for (std::size_t p = 0; p < m.bound.size(); ++p)
      if (!m.bound[p]) m.parameter[p] = r.parameters[p].kind == rewrite::parameter_kind::axis ? static_cast<i64>(draw() % 3) : 2;
    rewrite::apply_rule(r, m, g);
  }
}

}  // namespace

int main(int count, char** arguments) {
  CLI::App app{"Rewriting: matches and applications"};
  bool quick = false;
  app.add_flag("--quick", quick, "A small graph, few repetitions: for tests");
  CLI11_PARSE(app, count, arguments);
  int const operators = quick ? 50 : 1000, repeats = quick ? 1 : 7;

  std::vector<rewrite::rule> rules;
  for (rewrite::rule const& r : rewrite::standard_rules()) {
    rules.push_back(r);
    if (auto back = rewrite::reversed(r)) rules.push_back(std::move(*back));
  }
  std::vector<rewrite::rule> sharding_rules;           // those that bring parallel operators in
  for (rewrite::rule const& r : rules)
    if (r.name.ends_with(", spread")) sharding_rules.push_back(r);

  for (bool parallel : {false, true}) {
    rewrite::open_graph g(rewrite::unsharded(layers(operators)));
    if (parallel) sharding_some(g, sharding_rules, operators / 2);
    std::string const name = std::to_string(operators) + (parallel ? " operators and parallel ones" : " operators");
    std::vector<double> seconds;
    i64 matches = 0;
    for (int n = 0; n < repeats; ++n) {
      double const start = now();
      matches = 0;
      for (rewrite::rule const& r : rules) matches += static_cast<i64>(rewrite::find_matches(r, g).size());
      seconds.push_back(now() - start);
    }
    std::sort(seconds.begin(), seconds.end());
    row(name.c_str(), "nodes", g.alive(), "", 0);
    row(name.c_str(), "rules and reversed rules", static_cast<double>(rules.size()), "", 0);
    row(name.c_str(), "matches", static_cast<double>(matches), "", 0);
    row(name.c_str(), "all matches of all rules, median", seconds[seconds.size() / 2], "s", quick ? 0 : 0.05);

    // applying: every rule where it is found, each application timed alone
    std::vector<double> one;
    std::mt19937 draw(2);
    for (rewrite::rule const& r : rules) {
      auto all = rewrite::find_matches(r, g, 4);
      if (all.empty()) continue;
      rewrite::rule_match& m = all[draw() % all.size()];
      for (std::size_t p = 0; p < m.bound.size(); ++p)
        if (!m.bound[p]) m.parameter[p] = r.parameters[p].kind == rewrite::parameter_kind::axis ? 0 : 2;
      double const start = now();
      rewrite::rewriting const w = rewrite::apply_rule(r, m, g);
      double const t = now() - start;
      if (w.done()) one.push_back(t);
    }
    std::sort(one.begin(), one.end());
    row(name.c_str(), "applications", static_cast<double>(one.size()), "", 0);
    if (!one.empty()) row(name.c_str(), "applying and checking one, median", one[one.size() / 2], "s", quick ? 0 : 50e-6);
    if (!rewrite::problems(g.close()).empty()) { std::fprintf(stderr, "the graph is not valid any more\n"); return 1; }
  }
  return 0;
}
