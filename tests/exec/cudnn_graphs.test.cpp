// tests/exec/cudnn_graphs.test.cpp - the graphs that cuDNN is handed mean attention, convolutions and their gradients; scratch has room
#include "support/dense.hpp"
#include "support/fused_oracle.hpp"
#include "support/eigen_once.hpp"
#include "support/teams_once.hpp"
#include <tensorpar/exec/cudnn/attention_graphs.hpp>
#include <tensorpar/exec/cudnn/attention_rooms.hpp>
#include <tensorpar/exec/cudnn/convolution_graphs.hpp>
#include <tensorpar/exec/cudnn/graph.hpp>
#include <tensorpar/exec/teams/teams.hpp>

using namespace tests;
using tensorpar::detail::attention_rooms;
using tensorpar::detail::attention_sizes;
using policy = compute::teams<double>;

namespace {

double furthest(std::vector<double> const& a, std::vector<double> const& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::fabs(a[i] - b[i]) <= worst ? worst : std::fabs(a[i] - b[i]);
  return worst;
}
attention_sizes sizes(i64 b, i64 h, i64 q, i64 k, i64 d, bool causal, bool packed = false) {
  return {b, h, q, k, d, static_cast<float>(1 / std::sqrt(static_cast<double>(d))), causal, packed};
}
std::vector<attention_sizes> some_sizes() {
  return {sizes(1, 1, 1, 1, 8, false),       sizes(2, 3, 4, 5, 8, false),       sizes(2, 3, 5, 4, 4, true),
          sizes(1, 2, 6, 6, 16, true),       sizes(3, 1, 2, 7, 4, true),        sizes(2, 3, 5, 5, 4, true, true),
          sizes(1, 2, 4, 4, 8, false, true), sizes(3, 1, 1, 1, 8, true, true)};
}
struct attention_case {
  attention_sizes s;
  std::vector<dense<double>> operands;  // dy, q, k, v
  std::vector<double> y;
  std::vector<dense<double>> gradients;
  attention_case(attention_sizes const& a, std::mt19937_64& r) : s(a) {
    i64 const w = s.heads * s.head;
    for (i64 n : {s.queries, s.queries, s.keys, s.keys})
      operands.push_back(random_dense<double>(shape{dim(s.batches), dim(n), dim(w)}, 1, r));
    y = run_whole<policy>(tensorpar::op::any_op(attention{s.heads, s.causal}), {operands[1], operands[2], operands[3]})[0].real;
    gradients = run_whole<policy>(tensorpar::op::any_op(attention_grad{s.heads, s.causal}), operands);
  }
  /// Where element e of q, k, v or a gradient lies, from its first on.
  std::size_t place(std::size_t e) const {
    std::size_t const head = static_cast<std::size_t>(s.head);
    return s.packed ? e / head * 3 * head + e % head : e;
  }
  /// In memory from its first element to its last; what is of others there is no number.
  std::vector<double> laid_out(std::vector<double> const& x) const {
    std::vector<double> all(place(x.size() - 1) + 1, std::nan(""));
    for (std::size_t e = 0; e < x.size(); ++e) all[place(e)] = x[e];
    return all;
  }
  std::vector<double> read(std::vector<double> const& memory, std::size_t n) const {
    std::vector<double> x(n);
    for (std::size_t e = 0; e < n; ++e) x[e] = memory.at(place(e));
    return x;
  }
};
/// The factor of the graph is a float.
constexpr double rounding = 1e-6;

fused_oracle forward(detail::attention_graph const& g, attention_case const& c) {
  fused_oracle o(g);
  o.give(g.at.q, c.laid_out(c.operands[1].real));
  o.give(g.at.k, c.laid_out(c.operands[2].real));
  o.give(g.at.v, c.laid_out(c.operands[3].real));
  o.run();
  return o;
}

fused_oracle backward(detail::attention_graph const& g, attention_case const& c, std::vector<double> const& y,
                      std::vector<double> const& stats) {
  fused_oracle o(g);
  o.give(g.at.dy, c.operands[0].real);
  o.give(g.at.q, c.laid_out(c.operands[1].real));
  o.give(g.at.k, c.laid_out(c.operands[2].real));
  o.give(g.at.v, c.laid_out(c.operands[3].real));
  o.give(g.at.y, y);
  o.give(g.at.stats, stats);
  o.run();
  return o;
}
double off(fused_oracle const& o, detail::attention_graph const& g, attention_case const& c) {
  double worst = 0;                                            // one that is no number counts
  int const tensors[] = {g.at.dq, g.at.dk, g.at.dv};
  for (std::size_t n = 0; n < 3; ++n)
    worst += furthest(c.read(o.memory(tensors[n]), c.gradients[n].real.size()), c.gradients[n].real);
  return worst;
}

}  // namespace

TEST_CASE("the graph of attention computes attention, and the logarithm of each query's sum of weights") {
  std::mt19937_64 r(1);
  for (attention_sizes const& s : some_sizes()) {
    attention_case const c(s, r);
    auto const g = detail::attention_forward(s);
    fused_oracle const o = forward(g, c);
    CHECK(furthest(o.memory(g.at.y), c.y) < rounding);
    i64 const w = s.heads * s.head;
    std::vector<double> stats;
    for (i64 b = 0; b < s.batches; ++b)
      for (i64 h = 0; h < s.heads; ++h)
        for (i64 q = 0; q < s.queries; ++q) {
          double sum = 0;
          for (i64 k = 0; k < s.keys && !(s.causal && k > q); ++k) {
            double x = 0;
            for (i64 e = 0; e < s.head; ++e)
              x += c.operands[1].real[static_cast<std::size_t>((b * s.queries + q) * w + h * s.head + e)] *
                   c.operands[2].real[static_cast<std::size_t>((b * s.keys + k) * w + h * s.head + e)];
            sum += std::exp(x / std::sqrt(static_cast<double>(s.head)));
          }
          stats.push_back(std::log(sum));
        }
    CHECK(furthest(o.memory(g.at.stats), stats) < rounding);
  }
}

TEST_CASE("the graph of its gradient computes the gradient, whoever adds it up") {
  std::mt19937_64 r(2);
  for (attention_sizes const& s : some_sizes())
    for (bool in_order : {true, false}) {
      attention_case const c(s, r);
      auto const f = detail::attention_forward(s);
      auto const g = detail::attention_backward(s, in_order);
      fused_oracle const before = forward(f, c);
      fused_oracle const o = backward(g, c, before.memory(f.at.y), before.memory(f.at.stats));
      CHECK((g.at.part < 0) == in_order);
      CHECK(off(o, g, c) < rounding);
    }
}

TEST_CASE("every step of the gradient's graph matters") {
  std::mt19937_64 r(3);
  for (bool packed : {false, true}) {
    attention_case const c(sizes(2, 2, 3, 3, 4, true, packed), r);
    auto const f = detail::attention_forward(c.s);
    fused_oracle const before = forward(f, c);
    auto const whole_graph = detail::attention_backward(c.s, true);
    int harmless = 0, tried = 0;
    for (std::size_t i = 0; i < whole_graph.steps.size(); ++i) {
      auto g = whole_graph;
      fused_op& op = g.steps[i].op;
      if (op == fused_op::product)
        op = fused_op::plus;
      else if (op == fused_op::minus)
        op = fused_op::plus;
      else if (op == fused_op::exp_ || op == fused_op::select)
        op = fused_op::copy;
      else
        continue;
      ++tried;
      fused_oracle const o = backward(g, c, before.memory(f.at.y), before.memory(f.at.stats));
      harmless += off(o, g, c) < rounding;
    }
    CHECK(tried >= 9);
    CHECK(harmless == 0);
  }
}

TEST_CASE("the graphs of convolutions compute them and their gradients, in groups too") {
  std::mt19937_64 r(4);
  for (conv2d const& op : {conv2d{4, 3}, conv2d{4, 3, 2, 1, 2}, conv2d{6, 1, 1, 0, 3}, conv2d{2, 5, 2, 2, 1, false, 3, 0}}) {
    dense<double> const x = random_dense<double>({2, 6, 9, 8}, 1, r),
                        filter = random_dense<double>({op.out, 6 / op.groups, op.window().kernel_h, op.window().kernel_w}, 1, r);
    auto const y = run_whole<policy>(tensorpar::op::any_op(op), {x, filter})[0];
    dense<double> const dy = random_dense<double>(y.block.local_shape(), 1, r);
    tensorpar::exec::detail::convolution_sizes const s(op.window(), x.block, y.block, 6 / op.groups);
    auto const check = [&](fused_op what, std::vector<double> const& want) {
      auto const g = detail::convolution(what, s, detail::fused_type::f32);
      fused_oracle o(g);
      int const to = what == fused_op::convolve ? g.results : what == fused_op::convolve_grad_x ? g.images : g.filters;
      if (to != g.images) o.give(g.images, x.real);
      if (to != g.filters) o.give(g.filters, filter.real);
      if (to != g.results) o.give(g.results, dy.real);
      o.run();
      CHECK(furthest(o.memory(to), want) < 1e-12);
    };
    check(fused_op::convolve, y.real);
    conv2d_grad_x const back{op.kernel, op.stride, op.pad, op.groups, op.kernel_w, op.pad_w, 9, 8};
    check(fused_op::convolve_grad_x, run_whole<policy>(tensorpar::op::any_op(back), {dy, filter})[0].real);
    conv2d_grad_w const sums{op.kernel, op.stride, op.pad, op.groups, op.kernel_w, op.pad_w};
    check(fused_op::convolve_grad_w, run_whole<policy>(tensorpar::op::any_op(sums), {dy, x})[0].real);
  }
}

TEST_CASE("attention's scratch: rooms follow one another, and as many batch elements are done at once as there is room for") {
  for (int kind = 0; kind < 4; ++kind)
    for (i64 batches : {1, 6, 16, 64})
      for (i64 length : {7, 1024, 4096}) {
        bool const in_order = kind % 2, kept = kind / 2;
        i64 const heads = 25, width = heads * 64, n = attention_rooms::batches_at_once(batches, heads, length, length, width, in_order,
                                                                                       kept);
        CHECK(batches % n == 0);
        auto const r = attention_rooms::backward(n, heads, length, length, width, in_order, kept);
        CHECK((n == 1 || r.bytes <= i64{256} << 20));
        for (i64 more = n + 1; more <= batches; ++more)
          if (batches % more == 0)
            CHECK(attention_rooms::backward(more, heads, length, length, width, in_order, kept).bytes > i64{256} << 20);
        std::vector<std::pair<i64, i64>> rooms;
        if (!kept) rooms.push_back({r.stats, n * heads * length * 4});
        rooms.push_back({r.sum, n * heads * length * 4});
        if (!kept) rooms.push_back({r.y, n * length * width * 2});
        if (!in_order) rooms.push_back({r.part, n * length * width * 4});
        rooms.push_back({r.library_at, r.library});
        i64 end = 0;
        for (auto const& [at, bytes] : rooms) {
          CHECK(at % 256 == 0);
          CHECK(at >= end);
          end = at + bytes;
        }
        CHECK(end <= r.bytes);
        CHECK(r.bytes < end + 256);
      }
}
