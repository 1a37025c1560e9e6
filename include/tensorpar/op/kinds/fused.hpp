// tensorpar/op/kinds/fused.hpp - operators in one pass over memory: what programs are made of once they are
// unrolled (program/fuse_tasks.hpp)
#pragma once
#include <tensorpar/op/kinds/contraction.hpp>
#include <tensorpar/op/kinds/pointwise.hpp>
#include <tensorpar/op/kinds/reduction.hpp>
#include <tensorpar/op/kinds/rms_norm.hpp>

namespace tensorpar::op {

/// A linear and what follows it. Operands: x, W, b if bias, and r if plus. Results: y of the linear; with
/// then_gelu also gelu(y), and y is kept for the derivative; with plus y + r. One of the two at most.
struct linear_with {
  bool bias = true, then_gelu = false, plus = false;
  static constexpr auto name = "linear_with";
  static constexpr auto work = op::work_kind::product;
  static constexpr int arity = -1;
  static constexpr void describe(auto& s, auto&& visit) {
    visit("bias", s.bias);
    visit("then_gelu", s.then_gelu);
    visit("plus", s.plus);
  }
  constexpr notation_text notation_for(shapes) const {
    notation_text t;
    t.put("...i,oi");
    if (bias) t.put(",o");
    if (plus) t.put(",...o");
    t.put("->...o");
    if (then_gelu) t.put(",...o");
    return then_gelu || plus ? sums_whole(t) : t;
  }
  constexpr inference infer(shapes in) const {
    if (in.n != 2 + bias + plus || in[1].rank != 2)
      return mismatch("linear_with takes x, W: [out, in], and maybe a bias and a term", in.n ? in[0] : scalar,
                      scalar);
    inference r = linear{in[1].d[0].n, bias, {}}.infer(in);
    if (r.ok() && then_gelu) r.out[r.n++] = r.out[0];
    return r;
  }
  constexpr double flops(shapes in, shapes y) const {
    double const each = then_gelu ? 8 : plus ? 1 : 0;
    return linear{y[0].last().n, bias, {}}.flops(in, y) + each * static_cast<double>(y[0].elements());
  }
};

/// A contraction of two operands, and what is done with its result or with its first operand. Operands: a, b,
/// then h if slope, then r if plus. Results: c; with slope c gelu'(h); with plus c + r; with sums also, of
/// c's type, the sums of a over all that c sums over, which leave a's last axis alone. One of slope and plus
/// at most.
struct contraction_with {
  contraction product{};
  bool slope = false, plus = false, sums = false;
  static constexpr auto name = "contraction_with";
  static constexpr auto work = op::work_kind::product;
  static constexpr bool sums_wide = true;
  static constexpr int arity = -1;
  static constexpr void describe(auto& s, auto&& visit) {
    contraction::describe(s.product, visit);
    visit("slope", s.slope);
    visit("plus", s.plus);
    visit("sums", s.sums);
  }
  constexpr notation_text notation_for(shapes) const {
    notation_text const whole = product.spelled();
    std::string_view const s = whole.view();
    auto const arrow = s.find("->");
    std::string_view const given = s.substr(0, arrow), result = s.substr(arrow + 2),
                           a = given.substr(0, given.find(','));
    notation_text t;
    t.put(given);
    for (int more = slope + plus; more > 0; --more) t.put(',').put(result);
    t.put("->").put(result);
    if (sums) {
      t.put(',');
      for (char const c : a) if (result.find(c) != result.npos) t.put(c);
    }
    return plus ? sums_whole(t) : t;
  }
  constexpr inference infer(shapes in) const {
    if (in.n < 2)
      return mismatch("contraction_with takes two operands and more", in.n ? in[0] : scalar, scalar);
    inference r = product.infer({in.begin(), 2});
    if (r.ok() && sums) {
      shape s{in[0].last()};
      s.type = r.out[0].type;
      r.out[r.n++] = s;
    }
    return r;
  }
  constexpr double flops(shapes in, shapes y) const {
    double const each = slope ? 12 : plus ? 1 : 0;
    return info<contraction>.flops(saved().a, {in.begin(), 2}, y) +
           each * static_cast<double>(y[0].elements()) + (sums ? static_cast<double>(in[0].elements()) : 0);
  }

 private:
  struct words {
    i64 a[max_attrs];
  };
  constexpr words saved() const {
    words w{};
    save(product, w.a);
    return w;
  }
};

/// Gradients of layernorm, or of rmsnorm if not centred, in one pass. Operands: dy, x, gamma, and r if plus.
/// Results: dx, or dx + r; dgamma if gamma; dbeta, the sums of dy, if beta. The last two have one type.
struct norm_grads {
  double eps = 1e-5;
  bool centred = true, plus = false, gamma = false, beta = false;
  static constexpr auto name = "norm_grads";
  static constexpr bool sums_wide = true;
  static constexpr int arity = -1;
  static constexpr void describe(auto& s, auto&& visit) {
    visit("eps", s.eps);
    visit("centred", s.centred);
    visit("plus", s.plus);
    visit("gamma", s.gamma);
    visit("beta", s.beta);
  }
  constexpr notation_text notation_for(shapes) const {
    notation_text t;
    t.put("...E,...E,E").put(plus ? ",...E" : "").put("->...E");
    for (int sums = gamma + beta; sums > 0; --sums) t.put(",E");
    return t;
  }
  constexpr inference infer(shapes in) const {
    if (in.n != 3 + plus || in[0].rank < 1)
      return mismatch("norm_grads takes dy, x, gamma and maybe a term", in.n ? in[0] : scalar, scalar);
    inference r = in[0];
    for (int sums = gamma + beta; sums > 0; --sums) {
      r.out[r.n] = {in[0].last()};
      r.out[r.n++].type = in[0].type;
    }
    return r;
  }
  constexpr double flops(shapes in, shapes) const {
    double const each = centred ? 14.0 + plus + (gamma ? 4 : 0) + beta : 9.0 + plus + (gamma ? 3 : 0) + beta;
    return each * static_cast<double>(in[0].elements());
  }
};

}  // namespace tensorpar::op
