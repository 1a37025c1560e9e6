// tests/support/laws/fused.hpp - the laws of fused operators: each computes what its two parts do, one after the other
#pragma once
#include "../dense.hpp"
#include <cmath>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/op/spelling.hpp>

namespace tests {

using namespace tensorpar;

/// Runs an operator in the policy's memory: operands and results of one number type each, results poisoned before. `place`: the operand
/// that the first result takes the place of, or -1.
template <class Result, class Policy, class Number>
std::vector<std::vector<Result>> run_there(Policy const& policy, any_op const& o, std::vector<shape> const& in,
                                           std::vector<std::vector<Number>> const& operands, std::vector<shape> const& out,
                                           int place = -1) {
  auto const memory = policy.device_memory();
  struct piece {
    std::byte* at;
    i64 bytes;
  };
  std::vector<piece> all;
  std::vector<tensor_block> in_block, out_block;
  std::vector<void const*> in_at;
  std::vector<void*> out_at;
  auto const give = [&](void const* from, i64 bytes) {
    all.push_back({memory.allocate(std::max<i64>(bytes, 1)), bytes});
    memory.write(all.back().at, from, bytes);
    return all.back().at;
  };
  for (std::size_t k = 0; k < in.size(); ++k) {
    in_block.push_back(whole(in[k]));
    in_at.push_back(give(operands[k].data(), static_cast<i64>(operands[k].size() * sizeof(Number))));
  }
  for (std::size_t k = 0; k < out.size(); ++k) {
    out_block.push_back(whole(out[k]));
    std::vector<unsigned char> const poison(static_cast<std::size_t>(out[k].elements()) * sizeof(Result), 0x7f);
    out_at.push_back(k == 0 && place >= 0 ? const_cast<void*>(in_at[static_cast<std::size_t>(place)])
                                          : give(poison.data(), static_cast<i64>(poison.size())));
  }
  shapes const is{in.data(), static_cast<int>(in.size())}, os{out.data(), static_cast<int>(out.size())};
  std::vector<unsigned char> const garbage(
      static_cast<std::size_t>(Policy::workspace(o, is, os)) * sizeof(typename Policy::scalar_type), 0x7f);
  kernel_call c;
  c.op = &o;
  c.inputs = is.n;
  c.outputs = os.n;
  c.in = in_at.data();
  c.in_block = in_block.data();
  c.out = out_at.data();
  c.out_block = out_block.data();
  c.workspace = give(garbage.data(), static_cast<i64>(garbage.size()));
  policy.run(c);
  memory.wait();
  std::vector<std::vector<Result>> r;
  for (std::size_t k = 0; k < out.size(); ++k) {
    r.emplace_back(static_cast<std::size_t>(out[k].elements()));
    memory.read(r.back().data(), out_at[k], static_cast<i64>(r.back().size() * sizeof(Result)));
  }
  for (piece const& p : all) memory.release(p.at, std::max<i64>(p.bytes, 1));
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

/// Every fused operator by the policy, its parts by the reference. Number: of operands and results, Wide: of results that are sums over a
/// batch. The dtype of each is said by `narrow` and `wide`.
template <class Number, class Wide, class Policy, class Reference>
void check_fused(Policy const& policy, Reference const& reference, double tolerance) {
  dtype const type = std::is_same_v<Number, bfloat16> ? dtype::bf16 : dtype::f32;
  std::mt19937_64 r(8);
  int tried = 0;
  auto const numbers = [&]<class N>(N, shape const& s) {
    std::vector<N> x(static_cast<std::size_t>(s.elements()));
    for (N& e : x) draw(e, r);
    return x;
  };
  auto const same = [&]<class N>(any_op const& o, std::vector<std::vector<N>> const& got, std::vector<std::vector<N>> const& want) {
    REQUIRE(got.size() == want.size());
    double worst = 0;
    for (std::size_t k = 0; k < got.size(); ++k) {
      REQUIRE(got[k].size() == want[k].size());
      for (std::size_t i = 0; i < got[k].size(); ++i) worst = std::max(worst, off(got[k][i], want[k][i]));
    }
    CHECK_MESSAGE(worst <= tolerance, (spell(o) + " is off by " + std::to_string(worst)));
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
        any_op const plain = linear{out, bias};
        auto const first = run_there<Number>(reference, plain, in, operands, {y});
        any_op const with_gelu = linear_with{bias, true, false}, with_sum = linear_with{bias, false, true};
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
        any_op const slope = contraction_with{to_x, true, false, false}, plus = contraction_with{to_x, false, true, false};
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
        any_op const sums = contraction_with{to_w, false, false, true};
        same(sums, run_there<Wide>(policy, sums, {y, x}, operands_w, {w, b}), {dw[0], db[0]});
        any_op const by_columns = contraction_with{contraction(at_y + "," + at_x + "->io"), false, false, true};
        shape const turned = typed({dim(width), dim(out)}, wide);
        auto const dw_turned = run_there<Wide>(reference, transpose{0, 1}, {w}, std::vector<std::vector<Wide>>{dw[0]}, {turned});
        same(by_columns, run_there<Wide>(policy, by_columns, {y, x}, operands_w, {turned, b}), {dw_turned[0], db[0]});
      }
  // sums into what is there: W's gradient over micro-batches; and products in batches, which are no single one
  for (i64 n : {3, 16}) {
    shape const y = typed({dim(4), dim(n)}, type), x = typed({dim(4), dim(8)}, type), w = typed({dim(n), dim(8)}, type),
                b = typed({dim(n)}, type);
    any_op const both = contraction_with{contraction("0o,0i->oi"), false, true, true};
    std::vector<std::vector<Number>> const operands{numbers(Number{}, y), numbers(Number{}, x), numbers(Number{}, w)};
    std::vector<std::vector<Number>> const two{operands[0], operands[1]};
    auto const product = run_there<Number>(reference, contraction("0o,0i->oi"), {y, x}, two, {w});
    auto const sum = run_there<Number>(reference, add{}, {w, w}, std::vector<std::vector<Number>>{operands[2], product[0]}, {w});
    auto const column = run_there<Number>(reference, contraction("0o->o"), {y}, std::vector<std::vector<Number>>{operands[0]}, {b});
    for (int place : {-1, 2}) same(both, run_there<Number>(policy, both, {y, x, w}, operands, {w, b}, place), {sum[0], column[0]});
    any_op const slope_and_sums = contraction_with{contraction("0o,0i->oi"), true, false, true};
    auto const sloped = run_there<Number>(reference, gelu_grad{}, {w, w}, std::vector<std::vector<Number>>{product[0], operands[2]}, {w});
    same(slope_and_sums, run_there<Number>(policy, slope_and_sums, {y, x, w}, operands, {w, b}), {sloped[0], column[0]});
    shape const p = typed({dim(3), dim(n), dim(4)}, type), q = typed({dim(3), dim(4), dim(8)}, type),
                c = typed({dim(3), dim(n), dim(8)}, type);
    any_op const batches = contraction_with{contraction("bik,bkj->bij"), false, true, false};
    std::vector<std::vector<Number>> const three{numbers(Number{}, p), numbers(Number{}, q), numbers(Number{}, c)};
    std::vector<std::vector<Number>> const factors{three[0], three[1]};
    auto const each = run_there<Number>(reference, contraction("bik,bkj->bij"), {p, q}, factors, {c});
    auto const all = run_there<Number>(reference, add{}, {c, c}, std::vector<std::vector<Number>>{three[2], each[0]}, {c});
    for (int place : {-1, 2}) same(batches, run_there<Number>(policy, batches, {p, q, c}, three, {c}, place), all);
    any_op const numbers_only = contraction_with{contraction("i,i->i"), false, true, false};
    std::vector<std::vector<Number>> const lines{numbers(Number{}, b), numbers(Number{}, b), numbers(Number{}, b)};
    auto const prod = run_there<Number>(reference, mul{}, {b, b}, std::vector<std::vector<Number>>{lines[0], lines[1]}, {b});
    auto const line = run_there<Number>(reference, add{}, {b, b}, std::vector<std::vector<Number>>{lines[2], prod[0]}, {b});
    for (int place : {-1, 2}) same(numbers_only, run_there<Number>(policy, numbers_only, {b, b, b}, lines, {b}, place), line);
  }
  for (i64 n : {7, 16})
    for (auto const& [op, fused] : std::vector<std::pair<any_op, any_op>>{{layernorm_grad_x{}, layernorm_grad_x_plus{}},
                                                                          {rmsnorm_grad_x{}, rmsnorm_grad_x_plus{}}}) {
      shape const x = typed({dim(3), dim(5), dim(n)}, type), g = typed({dim(n)}, type);
      std::vector<std::vector<Number>> operands{numbers(Number{}, x), numbers(Number{}, x), numbers(Number{}, g)};
      auto const dx = run_there<Number>(reference, op, {x, x, g}, operands, {x});
      operands.push_back(numbers(Number{}, x));
      auto const sum = run_there<Number>(reference, add{}, {x, x}, std::vector<std::vector<Number>>{dx[0], operands[3]}, {x});
      for (int place : {-1, 0, 3}) same(fused, run_there<Number>(policy, fused, {x, x, g, x}, operands, {x}, place), sum);
    }
  CHECK(tried == 8 * 8 + 2 * 7 + 4 * 3);
}

}  // namespace tests
