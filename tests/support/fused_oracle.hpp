// tests/support/fused_oracle.hpp - what a graph of fused operations means, one operation after another, in double
#pragma once
#include <cmath>
#include <doctest/doctest.h>
#include <tensorpar/exec/cudnn/graph.hpp>

namespace tests {

using tensorpar::i64;
using tensorpar::detail::fused_graph;
using tensorpar::detail::fused_op;
using tensorpar::detail::fused_step;
using tensorpar::detail::fused_tensor;

/// Every tensor's memory, as its strides lay it out. Nothing is rounded.
class fused_oracle {
  fused_graph const& g_;
  std::vector<std::vector<double>> memory_;
  std::vector<bool> written_;

  fused_tensor const& tensor(int t) const { return g_.tensors[static_cast<std::size_t>(t)]; }
  static i64 elements(fused_tensor const& t) {
    i64 n = 1;
    for (i64 e : t.extent) n *= e;
    return n;
  }
  /// Where the element at `index` lies; an axis of extent one is repeated.
  static std::size_t place(fused_tensor const& t, std::vector<i64> const& index) {
    i64 at = 0;
    for (std::size_t d = 0; d < t.extent.size(); ++d) at += (t.extent[d] == 1 ? 0 : index[d]) * t.apart[d];
    return static_cast<std::size_t>(at);
  }
  template <class Visit> static void each_index(fused_tensor const& t, Visit&& visit) {
    std::vector<i64> index(t.extent.size());
    for (i64 i = 0; i < elements(t); ++i) {
      i64 rest = i;
      for (std::size_t d = t.extent.size(); d-- > 0; rest /= t.extent[d]) index[d] = rest % t.extent[d];
      visit(index);
    }
  }
  double read(int t, std::vector<i64> const& index) const {
    if (!written_[static_cast<std::size_t>(t)]) FAIL("a tensor is read before it is made");
    return memory_[static_cast<std::size_t>(t)][place(tensor(t), index)];
  }
  template <class F> void write(int t, F&& f) {
    each_index(tensor(t), [&](std::vector<i64> const& index) { memory_[static_cast<std::size_t>(t)][place(tensor(t), index)] = f(index); });
    written_[static_cast<std::size_t>(t)] = true;
  }
  static double function(fused_op op, double x, double b, double t) {
    switch (op) {
      case fused_op::product: return x * b;
      case fused_op::minus: return x - b;
      case fused_op::plus: return x + b;
      case fused_op::quotient: return x / b;
      case fused_op::exp_: return std::exp(x);
      case fused_op::log_: return std::log(x);
      case fused_op::copy: return x;
      case fused_op::at_least: return x >= b;
      case fused_op::select: return t != 0 ? x : b;
      default: break;
    }
    FAIL("no function of elements");
    return 0;
  }
  void reduce(fused_step const& s) {
    bool const top = s.op == fused_op::top;
    write(s.to, [&](auto const&) { return top ? -INFINITY : 0; });
    auto& to = memory_[static_cast<std::size_t>(s.to)];
    each_index(tensor(s.x), [&](std::vector<i64> const& index) {
      double& r = to[place(tensor(s.to), index)];
      r = top ? std::max(r, read(s.x, index)) : r + read(s.x, index);
    });
  }
  /// visit(image index, filter index, result index) for everything that a convolution multiplies.
  template <class Visit> void each_product(fused_step const& s, int images, int filters, int results, Visit&& visit) const {
    auto const &x = tensor(images).extent, &f = tensor(filters).extent, &y = tensor(results).extent;
    i64 const groups = x[1] / f[1], per = f[0] / groups;
    for (i64 n = 0; n < y[0]; ++n) for (i64 o = 0; o < y[1]; ++o) for (i64 r = 0; r < y[2]; ++r) for (i64 q = 0; q < y[3]; ++q)
      for (i64 c = 0; c < f[1]; ++c) for (i64 i = 0; i < f[2]; ++i) for (i64 j = 0; j < f[3]; ++j) {
        i64 const h = r * s.window.stride + i - s.window.pad_h, w = q * s.window.stride + j - s.window.pad_w;
        if (h < 0 || h >= x[2] || w < 0 || w >= x[3]) continue;
        visit(std::vector<i64>{n, o / per * f[1] + c, h, w}, std::vector<i64>{o, c, i, j}, std::vector<i64>{n, o, r, q});
      }
  }
  void convolve(fused_step const& s) {
    write(s.to, [](auto const&) { return 0; });
    bool const forward = s.op == fused_op::convolve, by_image = s.op == fused_op::convolve_grad_x;
    int const images = forward ? s.x : by_image ? s.to : s.b, filters = forward || by_image ? s.b : s.to, results = forward ? s.to : s.x;
    auto& to = memory_[static_cast<std::size_t>(s.to)];
    each_product(s, images, filters, results, [&](auto const& x, auto const& f, auto const& y) {
      if (forward) to[place(tensor(s.to), y)] += read(images, x) * read(filters, f);
      else if (by_image) to[place(tensor(s.to), x)] += read(results, y) * read(filters, f);
      else to[place(tensor(s.to), f)] += read(results, y) * read(images, x);
    });
  }

 public:
  explicit fused_oracle(fused_graph const& g) : g_(g), memory_(g.tensors.size()), written_(g.tensors.size()) {
    for (std::size_t t = 0; t < g.tensors.size(); ++t) {
      i64 last = 0;
      for (std::size_t d = 0; d < g.tensors[t].extent.size(); ++d) last += (g.tensors[t].extent[d] - 1) * g.tensors[t].apart[d];
      memory_[t].assign(static_cast<std::size_t>(last + 1), std::nan(""));
      if (g.tensors[t].is == fused_tensor::role::number) {
        memory_[t][0] = static_cast<double>(g.tensors[t].value);
        written_[t] = true;
      }
    }
  }
  /// The memory of a tensor that has an address.
  void give(int t, std::vector<double> const& values) {
    REQUIRE(tensor(t).is == fused_tensor::role::given);
    REQUIRE(values.size() == memory_[static_cast<std::size_t>(t)].size());
    memory_[static_cast<std::size_t>(t)] = values;
    written_[static_cast<std::size_t>(t)] = true;
  }
  std::vector<double> const& memory(int t) const { return memory_[static_cast<std::size_t>(t)]; }

  void run() {
    for (fused_step const& s : g_.steps) {
      fused_tensor const& to = tensor(s.to);
      REQUIRE(!written_[static_cast<std::size_t>(s.to)]);
      if (s.op == fused_op::sum || s.op == fused_op::top) {
        reduce(s);
      } else if (s.op == fused_op::convolve || s.op == fused_op::convolve_grad_x || s.op == fused_op::convolve_grad_w) {
        convolve(s);
      } else if (s.op == fused_op::view) {
        REQUIRE(memory(s.x).size() == memory(s.to).size());
        memory_[static_cast<std::size_t>(s.to)] = memory(s.x);
        written_[static_cast<std::size_t>(s.to)] = written_[static_cast<std::size_t>(s.x)];
      } else if (s.op == fused_op::multiply) {
        std::size_t const row = to.extent.size() - 2, col = row + 1;
        i64 const inner = tensor(s.x).extent[col];
        REQUIRE(inner == tensor(s.b).extent[row]);
        REQUIRE((written_[static_cast<std::size_t>(s.x)] && written_[static_cast<std::size_t>(s.b)]));
        auto const &x = memory(s.x), &y = memory(s.b);
        auto const step_x = static_cast<std::size_t>(tensor(s.x).apart[col]), step_y = static_cast<std::size_t>(tensor(s.b).apart[row]);
        write(s.to, [&](std::vector<i64> const& index) {
          std::vector<i64> a = index, b = index;
          a[col] = b[row] = 0;
          std::size_t const at_x = place(tensor(s.x), a), at_y = place(tensor(s.b), b);
          double sum = 0;
          for (std::size_t k = 0; k < static_cast<std::size_t>(inner); ++k) sum += x[at_x + k * step_x] * y[at_y + k * step_y];
          return sum;
        });
      } else if (s.op == fused_op::index) {
        write(s.to, [&](std::vector<i64> const& index) { return static_cast<double>(index[static_cast<std::size_t>(s.axis)]); });
      } else {
        write(s.to, [&](std::vector<i64> const& index) {
          return function(s.op, read(s.x, index), s.b < 0 ? 0 : read(s.b, index), s.t < 0 ? 0 : read(s.t, index));
        });
      }
    }
  }
};

}  // namespace tests
