#include "support/random_network.hpp"

#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/op/operators.hpp>

namespace tests {

namespace {

class network {
  computation_graph g_;
  network_kind k_;
  std::mt19937& draw_;
  struct tensor { int value; i64 features; bool turned; };       // [samples, features], or the other way if turned
  struct matrix { int value; i64 rows, columns; };
  std::vector<tensor> acts_;
  std::vector<matrix> weights_;
  int names_ = 0;

  std::size_t below(std::size_t n) { return draw_() % n; }
  bool chance(int percent) { return static_cast<int>(below(100)) < percent; }
  i64 width() { return i64{2} << below(2); }
  int made(tensorpar::op::any_op const& o, std::vector<value_id> in) { return g_.node(g_.add(o, std::move(in))).out[0]; }
  int parameter(shape const& s) { return g_.add_parameter("p" + std::to_string(names_++), s, tensorpar::op::init::normal_02); }
  int function(int x) {
    switch (below(4)) {
      case 0: return made(relu{}, {x});
      case 1: return made(gelu{}, {x});
      case 2: return made(tanh_{}, {x});
      default: return made(scale{0.5}, {x});
    }
  }
  /// One that there is, or a new parameter; of `rows` rows.
  matrix weight(i64 rows) {
    std::vector<matrix> fit;
    for (matrix const& w : weights_) if (w.rows == rows) fit.push_back(w);
    if (!fit.empty() && chance(60)) return fit[below(fit.size())];
    i64 const columns = width();
    return remember({parameter({rows, columns}), rows, columns});
  }
  matrix remember(matrix w) {
    weights_.push_back(w);
    return w;
  }
  void make_weight() {
    matrix const a = weight(width());
    shape const s{dim(a.rows), dim(a.columns)};
    switch (below(5)) {
      case 0: {                                                    // an adapter
        int const u = parameter({a.rows, 2}), v = parameter({2, a.columns}), low = made(contraction("ik,kj->ij"), {u, v});
        remember({chance(50) ? made(add{}, {a.value, low}) : made(add{}, {low, a.value}), a.rows, a.columns});
        break;
      }
      case 1: remember({made(mul{}, {a.value, chance(30) ? a.value : parameter(s)}), a.rows, a.columns}); break;
      case 2: remember({function(a.value), a.rows, a.columns}); break;
      case 3: remember({made(contraction("ij->ji"), {a.value}), a.columns, a.rows}); break;
      default: remember({made(add{}, {a.value, chance(20) ? a.value : parameter(s)}), a.rows, a.columns});
    }
  }
  void layer() {
    tensor const x = acts_[below(acts_.size())];
    if (!x.turned && chance(25)) {
      acts_.push_back({g_.node(g_.add_with_weights(linear{4}, {x.value}, "l" + std::to_string(names_++))).out[0], 4, false});
      return;
    }
    matrix const w = weight(x.features);
    bool const turned = chance(30), first = chance(30);            // the result's axes; the weight as first operand
    std::string const a = x.turned ? "ib" : "bi", out = turned ? "jb" : "bj";
    acts_.push_back({first ? made(contraction("ij," + a + "->" + out), {w.value, x.value})
                           : made(contraction(a + ",ij->" + out), {x.value, w.value}), w.columns, turned});
  }
  void join() {
    tensor const x = acts_[below(acts_.size())];
    std::vector<tensor> fit;
    for (tensor const& y : acts_) if (y.features == x.features && y.turned == x.turned) fit.push_back(y);
    tensor const y = fit[below(fit.size())];                       // may be x
    acts_.push_back({chance(70) ? made(add{}, {x.value, y.value}) : made(mul{}, {x.value, y.value}), x.features, x.turned});
  }
  void shift() {
    tensor const x = acts_[below(acts_.size())];
    shape const s = g_.type(x.value);
    acts_.push_back({made(add{}, {x.value, parameter(s)}), x.features, x.turned});
  }

  int loss_of(tensor const& t) {
    if (t.turned) return loss_of({made(contraction("ib->bi"), {t.value}), t.features, false});
    if (t.features == 4) return made(mean_squared_error{}, {t.value, 1});
    int const w = parameter({t.features, 4});
    return made(mean_squared_error{}, {made(contraction("bi,ij->bj"), {t.value, w}), 1});
  }

 public:
  network(network_kind k, std::mt19937& draw) : k_(k), draw_(draw) {
    acts_.push_back({g_.add_input("x", {k.samples, 4}), 4, false});
    g_.add_input("y", {k.samples, 4});
  }
  computation_graph run() {
    for (int i = 0; i < k_.operators; ++i) {
      if (chance(35)) make_weight();
      if (chance(20)) join();
      if (k_.fixed_batch && chance(25)) shift();
      layer();
      if (chance(40)) {
        tensor const& t = acts_.back();
        acts_.push_back({function(t.value), t.features, t.turned});
      }
    }
    int loss = loss_of(acts_.back());
    if (chance(30)) loss = made(add{}, {loss, loss_of(acts_[below(acts_.size())])});
    if (chance(40)) loss = made(add{}, {loss, parameter(scalar)});
    if (chance(20)) loss = made(mul{}, {loss, parameter(scalar)});
    if (chance(30) && !weights_.empty()) {
      int const w = weights_[below(weights_.size())].value;
      loss = made(add{}, {made(contraction("ij,ij->"), {w, w}), loss});
    }
    g_.add_output("loss", loss);
    return std::move(g_);
  }
};

}  // namespace

computation_graph random_network(network_kind k, std::mt19937& draw) { return network(k, draw).run(); }

int second_readers(computation_graph const& g) {
  training_graph const t = differentiate(g);
  std::vector<char> goal(t.graph.values.size(), 0);
  for (int x : t.gradient) if (x >= 0) goal[static_cast<std::size_t>(x)] = 0;
  for (std::size_t x = 0; x < t.gradient.size(); ++x)
    if (g.values[x].role == value_role::parameter && t.gradient[x] >= 0) goal[static_cast<std::size_t>(t.gradient[x])] = 1;
  int n = 0;
  for (graph_node const& v : t.graph.nodes)
    if (v.phase == step_phase::backward) for (int x : v.in) n += goal[static_cast<std::size_t>(x)];
  return n;
}

}  // namespace tests
