// tests/support/laws/fused.hpp - the laws of fused operators: each computes what its two parts do, one after the other
#pragma once
#include "../dense.hpp"
#include "../packed_heads.hpp"
#include <cmath>
#include <limits>
#include <tensorpar/op/core/spelling.hpp>
#include <tensorpar/op/operators.hpp>

namespace tests {

using namespace tensorpar;

using raw = std::vector<unsigned char>;
template <class Number> raw bytes_of(std::vector<Number> const& x) {
  auto const* const p = reinterpret_cast<unsigned char const*>(x.data());
  return {p, p + x.size() * sizeof(Number)};
}
template <class Number> std::vector<Number> numbers_in(raw const& x) {
  std::vector<Number> r(x.size() / sizeof(Number));
  std::copy(x.begin(), x.end(), reinterpret_cast<unsigned char*>(r.data()));
  return r;
}

/// Runs an operator in the policy's memory, results poisoned before. `sizes`: of the results' elements. `place`: the operand that the first
/// result takes the place of, or -1.
template <class Policy>
std::vector<raw> run_bytes(Policy const& policy, op::any_op const& o, std::vector<shape> const& in, std::vector<raw> const& operands,
                             std::vector<shape> const& out, std::vector<std::size_t> const& sizes, int place = -1) {
  auto const memory = policy.device_memory();
  struct piece {
    std::byte* at;
    i64 bytes;
  };
  std::vector<piece> all;
  std::vector<op::tensor_block> in_block, out_block;
  std::vector<void const*> in_at;
  std::vector<void*> out_at;
  std::vector<raw> r;
  auto const give = [&](raw const& from) {
    i64 const n = static_cast<i64>(from.size());
    all.push_back({memory.allocate(std::max<i64>(n, 1)), n});
    memory.write(all.back().at, from.data(), n);
    return all.back().at;
  };
  for (std::size_t k = 0; k < in.size(); ++k) {
    in_block.push_back(whole(in[k]));
    in_at.push_back(give(operands[k]));
  }
  for (std::size_t k = 0; k < out.size(); ++k) {
    out_block.push_back(whole(out[k]));
    r.emplace_back(static_cast<std::size_t>(out[k].elements()) * sizes[k], 0x7f);
    out_at.push_back(k == 0 && place >= 0 ? const_cast<void*>(in_at[static_cast<std::size_t>(place)]) : give(r.back()));
  }
  shapes const is{in.data(), static_cast<int>(in.size())}, os{out.data(), static_cast<int>(out.size())};
  exec::kernel_call c;
  c.op = &o;
  c.inputs = is.n;
  c.outputs = os.n;
  c.in = in_at.data();
  c.in_block = in_block.data();
  c.out = out_at.data();
  c.out_block = out_block.data();
  i64 const room = Policy::workspace(o, is, os) * static_cast<i64>(sizeof(typename Policy::scalar_type));
  raw const poison(static_cast<std::size_t>(std::min(room, i64{1} << 20)), 0x7f);       // most of it is for libraries
  all.push_back({memory.allocate(std::max<i64>(room, 1)), room});
  memory.write(all.back().at, poison.data(), static_cast<i64>(poison.size()));
  c.workspace = all.back().at;
  policy.run(c);
  memory.wait();
  for (std::size_t k = 0; k < out.size(); ++k) memory.read(r[k].data(), out_at[k], static_cast<i64>(r[k].size()));
  for (piece const& p : all) memory.release(p.at, std::max<i64>(p.bytes, 1));
  return r;
}
/// The same with operands and results of one number type each.
template <class Result, class Policy, class Number>
std::vector<std::vector<Result>> run_there(Policy const& policy, op::any_op const& o, std::vector<shape> const& in,
                                           std::vector<std::vector<Number>> const& operands, std::vector<shape> const& out,
                                           int place = -1) {
  std::vector<raw> given;
  for (auto const& x : operands) given.push_back(bytes_of(x));
  std::vector<std::vector<Result>> r;
  for (raw const& x : run_bytes(policy, o, in, given, out, std::vector<std::size_t>(out.size(), sizeof(Result)), place))
    r.push_back(numbers_in<Result>(x));
  return r;
}

inline void draw(bfloat16& x, std::mt19937_64& r) {
  float y = 0;
  draw(y, r);
  x = y;
}
/// Of two numbers, or of what they are read as.
inline double off(prime_field a, prime_field b) { return a == b ? 0 : 1; }
template <class Number> double off(Number a, Number b) {
  double const x = static_cast<double>(computed<Number>(a)), y = static_cast<double>(computed<Number>(b));
  double const d = std::abs(x - y) / (1 + std::abs(y));
  return d <= 1e300 ? d : 1e300;                       // NaN is off
}

/// The same where numbers that are not finite are to be so in both.
template <class Number> double off_or_odd(Number a, Number b) {
  if constexpr (!exec::scalar_traits<Number>::exact) {
    auto const x = computed<Number>(a), y = computed<Number>(b);
    if (!std::isfinite(x) && !std::isfinite(y)) return x == y || (std::isnan(x) && std::isnan(y)) ? 0 : 1;
  }
  return off(a, b);
}

/// Every fused operator by the policy, its parts by the reference. Number: of operands and results, Wide: of results that are sums over a
/// batch. The dtype of each is said by `narrow` and `wide`. odd: a third of the operands has a number that is NaN or infinite.
template <class Number, class Wide, class Policy, class Reference>
void check_fused(Policy const& policy, Reference const& reference, double tolerance,
                 std::vector<std::pair<i64, i64>> const& norm_sizes = {{7, 3}, {16, 40}, {264, 20}, {1040, 3}}, bool odd = false) {
  dtype const type = std::is_same_v<Number, bfloat16> ? dtype::bf16 : dtype::f32;
  std::mt19937_64 r(8);
  int tried = 0;
  auto const numbers = [&]<class N>(N, shape const& s) {
    std::vector<N> x(static_cast<std::size_t>(s.elements()));
    for (N& e : x) draw(e, r);
    if constexpr (!exec::scalar_traits<N>::exact)
      if (constexpr float inf = std::numeric_limits<float>::infinity(); odd && r() % 3 == 0)
        x[r() % x.size()] = N(std::vector<float>{inf, -inf, std::numeric_limits<float>::quiet_NaN()}[r() % 3]);
    return x;
  };
  auto const same = [&]<class N>(op::any_op const& o, std::vector<std::vector<N>> const& got, std::vector<std::vector<N>> const& want) {
    REQUIRE(got.size() == want.size());
    double worst = 0;
    for (std::size_t k = 0; k < got.size(); ++k) {
      REQUIRE(got[k].size() == want[k].size());
      for (std::size_t i = 0; i < got[k].size(); ++i)
        worst = std::max(worst, odd ? off_or_odd(got[k][i], want[k][i]) : off(got[k][i], want[k][i]));
    }
    CHECK_MESSAGE(worst <= tolerance, (op::spell(o) + " is off by " + std::to_string(worst)));
    ++tried;
  };
  auto const typed = [&](shape s, dtype t) {
    s.type = t;
    return s;
  };
  for (i64 width : {5, 16})
    for (bool bias : {false, true})
      for (auto const& lead : std::vector<std::vector<i64>>{{8}, {3, 7}}) {
        shape x{}, y{};
        for (i64 n : lead) {
          x.d[x.rank++] = dim(n);
          y.d[y.rank++] = dim(n);
        }
        i64 const out = width + 3 * (width % 2) + 8;
        x.d[x.rank++] = dim(width);
        y.d[y.rank++] = dim(out);
        x = typed(x, type);
        y = typed(y, type);
        std::vector<shape> in{x, typed({dim(out), dim(width)}, type)};
        if (bias) in.push_back(typed({dim(out)}, type));
        std::vector<std::vector<Number>> operands;
        for (shape const& s : in) operands.push_back(numbers(Number{}, s));
        op::any_op const plain = linear{out, bias};
        auto const first = run_there<Number>(reference, plain, in, operands, {y});
        op::any_op const with_gelu = op::linear_with{bias, true, false}, with_sum = op::linear_with{bias, false, true};
        same(with_gelu, run_there<Number>(policy, with_gelu, in, operands, {y, y}),
             {first[0], run_there<Number>(reference, gelu{}, {y}, first, {y})[0]});
        auto const more = numbers(Number{}, y);
        auto const sum = run_there<Number>(reference, add{}, {y, y}, std::vector<std::vector<Number>>{more, first[0]}, {y});
        in.push_back(y);
        operands.push_back(more);
        same(with_sum, run_there<Number>(policy, with_sum, in, operands, {y}), sum);
        same(with_sum, run_there<Number>(policy, with_sum, in, operands, {y}, static_cast<int>(in.size()) - 1), sum);

        // backward: from y's gradient to x's, W's and the bias'
        char const* const lead_text = lead.size() == 1 ? "0" : "01";
        std::string const at_x = std::string(lead_text) + "i", at_y = std::string(lead_text) + "o";
        contraction const to_x(at_y + ",oi->" + at_x), to_w(at_y + "," + at_x + "->oi"), to_b(at_y + "->o");
        auto const dy = numbers(Number{}, y), h = numbers(Number{}, x);
        auto const dx = run_there<Number>(reference, to_x, {y, in[1]}, std::vector<std::vector<Number>>{dy, operands[1]}, {x});
        std::vector<shape> const in_x{y, in[1], x};
        std::vector<std::vector<Number>> const operands_x{dy, operands[1], h};
        op::any_op const slope = op::contraction_with{to_x, true, false, false}, plus = op::contraction_with{to_x, false, true, false};
        same(slope, run_there<Number>(policy, slope, in_x, operands_x, {x}),
             run_there<Number>(reference, gelu_grad{}, {x, x}, std::vector<std::vector<Number>>{dx[0], h}, {x}));
        auto const dx_sum = run_there<Number>(reference, add{}, {x, x}, std::vector<std::vector<Number>>{dx[0], h}, {x});
        same(plus, run_there<Number>(policy, plus, in_x, operands_x, {x}), dx_sum);
        same(plus, run_there<Number>(policy, plus, in_x, operands_x, {x}, 2), dx_sum);
        dtype const wide = std::is_same_v<Wide, Number> ? type : dtype::f32;
        shape const w = typed(in[1], wide), b = typed({dim(out)}, wide);
        std::vector<std::vector<Number>> const operands_w{dy, operands[0]};
        auto const dw = run_there<Wide>(reference, to_w, {y, x}, operands_w, {w});
        auto const db = run_there<Wide>(reference, to_b, {y}, std::vector<std::vector<Number>>{dy}, {b});
        op::any_op const sums = op::contraction_with{to_w, false, false, true};
        same(sums, run_there<Wide>(policy, sums, {y, x}, operands_w, {w, b}), {dw[0], db[0]});
        op::any_op const by_columns = op::contraction_with{contraction(at_y + "," + at_x + "->io"), false, false, true};
        shape const turned = typed({dim(width), dim(out)}, wide);
        auto const dw_turned = run_there<Wide>(reference, transpose{0, 1}, {w}, std::vector<std::vector<Wide>>{dw[0]}, {turned});
        same(by_columns, run_there<Wide>(policy, by_columns, {y, x}, operands_w, {turned, b}), {dw_turned[0], db[0]});
      }
  // sums into what is there: W's gradient over micro-batches; and products in batches, which are no single one
  for (i64 n : {3, 16}) {
    shape const y = typed({dim(4), dim(n)}, type), x = typed({dim(4), dim(8)}, type), w = typed({dim(n), dim(8)}, type),
                b = typed({dim(n)}, type);
    op::any_op const both = op::contraction_with{contraction("0o,0i->oi"), false, true, true};
    std::vector<std::vector<Number>> const operands{numbers(Number{}, y), numbers(Number{}, x), numbers(Number{}, w)};
    std::vector<std::vector<Number>> const two{operands[0], operands[1]};
    auto const product = run_there<Number>(reference, contraction("0o,0i->oi"), {y, x}, two, {w});
    auto const sum = run_there<Number>(reference, add{}, {w, w}, std::vector<std::vector<Number>>{operands[2], product[0]}, {w});
    auto const column = run_there<Number>(reference, contraction("0o->o"), {y}, std::vector<std::vector<Number>>{operands[0]}, {b});
    for (int place : {-1, 2}) same(both, run_there<Number>(policy, both, {y, x, w}, operands, {w, b}, place), {sum[0], column[0]});
    op::any_op const slope_and_sums = op::contraction_with{contraction("0o,0i->oi"), true, false, true};
    auto const sloped = run_there<Number>(reference, gelu_grad{}, {w, w}, std::vector<std::vector<Number>>{product[0], operands[2]}, {w});
    same(slope_and_sums, run_there<Number>(policy, slope_and_sums, {y, x, w}, operands, {w, b}), {sloped[0], column[0]});
    shape const p = typed({dim(3), dim(n), dim(4)}, type), q = typed({dim(3), dim(4), dim(8)}, type),
                c = typed({dim(3), dim(n), dim(8)}, type);
    op::any_op const batches = op::contraction_with{contraction("bik,bkj->bij"), false, true, false};
    std::vector<std::vector<Number>> const three{numbers(Number{}, p), numbers(Number{}, q), numbers(Number{}, c)};
    std::vector<std::vector<Number>> const factors{three[0], three[1]};
    auto const each = run_there<Number>(reference, contraction("bik,bkj->bij"), {p, q}, factors, {c});
    auto const all = run_there<Number>(reference, add{}, {c, c}, std::vector<std::vector<Number>>{three[2], each[0]}, {c});
    for (int place : {-1, 2}) same(batches, run_there<Number>(policy, batches, {p, q, c}, three, {c}, place), all);
    op::any_op const numbers_only = op::contraction_with{contraction("i,i->i"), false, true, false};
    std::vector<std::vector<Number>> const lines{numbers(Number{}, b), numbers(Number{}, b), numbers(Number{}, b)};
    auto const prod = run_there<Number>(reference, mul{}, {b, b}, std::vector<std::vector<Number>>{lines[0], lines[1]}, {b});
    auto const line = run_there<Number>(reference, add{}, {b, b}, std::vector<std::vector<Number>>{lines[2], prod[0]}, {b});
    for (int place : {-1, 2}) same(numbers_only, run_there<Number>(policy, numbers_only, {b, b, b}, lines, {b}, place), line);
  }
  // norms: dx, dx and a term, with the gradients of gamma and beta or without; rows held by lanes and not; few rows and many
  int norms = 0;
  for (auto const& [n, rows] : norm_sizes)
    for (int kind = 0; kind < 12; ++kind) {
      bool const layer = kind < 8, plus = kind % 2, gamma = kind / 2 % 2, beta = kind / 4 % 2 && layer;
      if (rows > 100 && (gamma || beta)) continue;     // many rows are for dx, whose rows may then be held by less
      op::any_op const of_x = layer ? op::any_op(layernorm_grad_x{}) : op::any_op(rmsnorm_grad_x{}),
                   of_gamma = layer ? op::any_op(layernorm_grad_gamma{}) : op::any_op(rmsnorm_grad_gamma{}),
                   fused = op::norm_grads{1e-5, layer, plus, gamma, beta};
      shape const x = typed({dim(rows), dim(n)}, type), g = typed({dim(n)}, type);
      std::vector<shape> in{x, x, g};
      std::vector<std::vector<Number>> operands{numbers(Number{}, x), numbers(Number{}, x), numbers(Number{}, g)};
      auto dx = run_there<Number>(reference, of_x, in, operands, {x});
      std::vector<std::vector<Number>> const two{operands[0], operands[1]}, one{operands[0]};
      dtype const wide = std::is_same_v<Wide, Number> ? type : dtype::f32;
      std::vector<shape> out{x};
      std::vector<std::vector<Wide>> sums;
      if (gamma) sums.push_back(run_there<Wide>(reference, of_gamma, {x, x}, two, {typed(g, wide)})[0]);
      if (beta) sums.push_back(run_there<Wide>(reference, contraction("0o->o"), {x}, one, {typed(g, wide)})[0]);
      for (std::size_t k = 0; k < sums.size(); ++k) out.push_back(typed(g, wide));
      if (plus) {
        in.push_back(x);
        operands.push_back(numbers(Number{}, x));
        dx = run_there<Number>(reference, add{}, {x, x}, std::vector<std::vector<Number>>{dx[0], operands[3]}, {x});
      }
      std::vector<raw> given;
      for (auto const& o : operands) given.push_back(bytes_of(o));
      std::vector<std::size_t> sizes(out.size(), sizeof(Wide));
      sizes[0] = sizeof(Number);
      for (int place : {-1, 0, plus ? 3 : 1}) {
          if (rows > 100 && place != 0) continue;
        auto const got = run_bytes(policy, fused, in, given, out, sizes, place);
        same(fused, std::vector<std::vector<Number>>{numbers_in<Number>(got[0])}, dx);
        std::vector<std::vector<Wide>> left;
        for (std::size_t k = 1; k < got.size(); ++k) left.push_back(numbers_in<Wide>(got[k]));
        same(fused, left, sums);
        norms += 2;
      }
    }
  CHECK(tried == 8 * 8 + 2 * 7 + norms);
}

/// Attention that leaves log-sum-exps behind is attention, its gradient from them is the gradient; what it leaves is what straight loops
/// over the scores say, but for a field, which has no logarithm.
template <class Number, class Policy, class Reference>
void check_attention_lse(Policy const& policy, Reference const& reference, double tolerance) {
  using wide = computed<Number>;
  std::mt19937_64 r(9);
  struct {
    i64 batches, queries, keys, heads, head;
    bool causal;
  } const all[] = {{2, 5, 5, 3, 4, true}, {1, 7, 4, 1, 8, false}, {3, 4, 6, 2, 3, true}, {2, 8, 8, 2, 8, false}};
  for (auto const& s : all) {
    i64 const width = s.heads * s.head;
    shape q{dim(s.batches), dim(s.queries), dim(width)}, k{dim(s.batches), dim(s.keys), dim(width)};
    shape const lse{dim(s.batches), dim(s.heads), dim(s.queries)};
    q.type = k.type = std::is_same_v<Number, bfloat16> ? dtype::bf16 : dtype::f32;
    std::vector<std::vector<Number>> x;                            // dy, q, k, v
    std::vector<raw> given;
    for (shape const* t : {&q, &q, &k, &k}) {
      x.emplace_back(static_cast<std::size_t>(t->elements()));
      for (Number& e : x.back()) draw(e, r);
      given.push_back(bytes_of(x.back()));
    }
    attention const forward{s.heads, s.causal};
    op::attention_with_lse const keeping{s.heads, s.causal};
    auto const got = run_bytes(policy, keeping, {q, k, k}, {given[1], given[2], given[3]}, {q, lse}, {sizeof(Number), sizeof(wide)});
    auto const y = numbers_in<Number>(got[0]), want = run_there<Number>(reference, forward, {q, k, k},
                                                                        std::vector<std::vector<Number>>(x.begin() + 1, x.end()), {q})[0];
    auto const worst = [](auto const& a, auto const& b) {
      double most = 0;
      REQUIRE(a.size() == b.size());
      for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, off(a[i], b[i]));
      return most;
    };
    CHECK(worst(y, want) <= tolerance);
    if constexpr (!exec::scalar_traits<wide>::exact) {
      std::vector<wide> straight;
      for (i64 b = 0; b < s.batches; ++b) for (i64 h = 0; h < s.heads; ++h) for (i64 i = 0; i < s.queries; ++i) {
        double sum = 0;
        for (i64 j = 0; j < s.keys && (!s.causal || j <= i); ++j) {
          double score = 0;
          for (i64 e = 0; e < s.head; ++e)
            score += static_cast<double>(wide(x[1][static_cast<std::size_t>((b * s.queries + i) * width + h * s.head + e)])) *
                     static_cast<double>(wide(x[2][static_cast<std::size_t>((b * s.keys + j) * width + h * s.head + e)]));
          sum += std::exp(score / std::sqrt(static_cast<double>(s.head)));
        }
        straight.push_back(static_cast<wide>(std::log(sum)));
      }
      CHECK(worst(numbers_in<wide>(got[1]), straight) <= tolerance);
    }
    auto const gradients = run_there<Number>(reference, attention_grad{s.heads, s.causal}, {q, q, k, k}, x, {q, k, k});
    given.insert(given.end(), got.begin(), got.end());
    auto const from_lse = run_bytes(policy, op::attention_grad_from_lse{s.heads, s.causal}, {q, q, k, k, q, lse}, given, {q, k, k},
                                    std::vector<std::size_t>(3, sizeof(Number)));
    for (std::size_t n = 0; n < 3; ++n) CHECK(worst(numbers_in<Number>(from_lse[n]), gradients[n]) <= tolerance);
    if (s.queries != s.keys) continue;
    // the three as one tensor, head by head
    shape one = q;
    one.d[2] = dim(3 * width);
    raw const x3 = bytes_of(packed_heads(x[1], x[2], x[3], s.head));
    auto const packed_got =
        run_bytes(policy, packed_attention_with_lse{s.heads, s.causal}, {one}, {x3}, {q, lse}, {sizeof(Number), sizeof(wide)});
    CHECK(worst(numbers_in<Number>(packed_got[0]), want) <= tolerance);
    CHECK(worst(numbers_in<wide>(packed_got[1]), numbers_in<wide>(got[1])) <= tolerance);
    auto const packed_back = run_bytes(policy, packed_attention_grad_from_lse{s.heads, s.causal}, {q, one, q, lse},
                                       {given[0], x3, packed_got[0], packed_got[1]}, {one}, {sizeof(Number)});
    CHECK(worst(numbers_in<Number>(packed_back[0]), packed_heads(gradients[0], gradients[1], gradients[2], s.head)) <= tolerance);
  }
}

}  // namespace tests
