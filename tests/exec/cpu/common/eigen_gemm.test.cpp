// tests/exec/cpu/common/eigen_gemm.test.cpp - matrix products of any size and any strides
#include "support/dense.hpp"
#include <array>
#include <tensorpar/exec/cpu/common/eigen_gemm.hpp>
#include <tensorpar/exec/cpu/common/eigen_packed.hpp>

using namespace tensorpar;

namespace {

template <class Scalar> bool close(Scalar a, Scalar b, i64 k) {
  if constexpr (std::same_as<Scalar, prime_field>) return a == b;
  else return std::fabs(a - b) <= (sizeof(Scalar) == 4 ? 1e-6 : 1e-15) * static_cast<double>(k + 4);
}

/// One product in every storage order; elements around c must stay untouched.
template <class Scalar> void check_product(i64 m, i64 n, i64 k, std::mt19937_64& r) {
  auto draw = [&](i64 count) { std::vector<Scalar> x(static_cast<std::size_t>(count)); for (Scalar& e : x) tests::draw(e, r); return x; };
  i64 const gap = static_cast<i64>(r() % 3);
  for (int order = 0; order < 27; ++order) {
    auto view = [&](int kind, i64 rows, i64 cols) -> std::pair<i64, i64> {   // row major, column major, neither
      if (kind == 0) return {cols + gap, 1};
      if (kind == 1) return {1, rows + gap};
      return {2 * cols + 1, 2};
    };
    auto size = [](std::pair<i64, i64> s, i64 rows, i64 cols) { return (rows - 1) * s.first + (cols - 1) * s.second + 1; };
    auto const sa = view(order % 3, m, k), sb = view(order / 3 % 3, k, n), sc = view(order / 9, m, n);
    auto const a = draw(size(sa, m, k)), b = draw(size(sb, k, n)), c = draw(size(sc, m, n));
    for (bool accumulate : {false, true}) {
      auto got = c, expected = c;
      for (i64 i = 0; i < m; ++i)
        for (i64 j = 0; j < n; ++j) {
          Scalar& s = expected[static_cast<std::size_t>(i * sc.first + j * sc.second)];
          if (!accumulate) s = Scalar(0);
          for (i64 l = 0; l < k; ++l)
            s += a[static_cast<std::size_t>(i * sa.first + l * sa.second)] * b[static_cast<std::size_t>(l * sb.first + j * sb.second)];
        }
      exec::multiply<Scalar>(m, n, k, {a.data(), sa.first, sa.second}, {b.data(), sb.first, sb.second}, {got.data(), sc.first, sc.second},
                       accumulate);
      bool same = true;
      for (std::size_t e = 0; e < got.size(); ++e) same = same && close(got[e], expected[e], k);
      CHECK_MESSAGE(same, (std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k) + ", order " + std::to_string(order)));
    }
  }
}

}  // namespace

TEST_CASE("products of every shape and storage order agree with three loops") {
  std::mt19937_64 r(6);
  i64 const shapes[][3] = {{1, 1, 1}, {1, 7, 5}, {7, 1, 5}, {7, 5, 1}, {1, 1, 40}, {3, 4, 5}, {33, 2, 127}, {2, 33, 126}, {35, 37, 200}};
  for (auto const& s : shapes) {
    check_product<float>(s[0], s[1], s[2], r);
    check_product<double>(s[0], s[1], s[2], r);
    check_product<prime_field>(s[0], s[1], s[2], r);
  }
  for (int i = 0; i < 12; ++i) {
    i64 const m = 1 + static_cast<i64>(r() % 40), n = 1 + static_cast<i64>(r() % 40), k = 1 + static_cast<i64>(r() % 150);
    check_product<prime_field>(m, n, k, r);
    check_product<double>(m, n, k, r);
  }
}

TEST_CASE("lazy reduction does not overflow at the largest elements") {
  i64 const k = 1000;
  std::vector<prime_field> const a(static_cast<std::size_t>(2 * k), prime_field(-1));
  prime_field c[4];
  exec::multiply<prime_field>(2, 2, k, {a.data(), k, 1}, {a.data(), 1, k}, {c, 2, 1});
  for (prime_field x : c) CHECK(x == prime_field(1000));
}

TEST_CASE("packed products agree with three loops across the edges of tiles, blocks and panels") {
  std::mt19937_64 r(11);
  for (auto const& [m, n, k] : {std::array<i64, 3>{1, 1, 1}, {7, 17, 3}, {121, 9, 257}, {13, 515, 5}, {6, 16, 512}}) {
    std::vector<double> a(static_cast<std::size_t>(m * k)), b(static_cast<std::size_t>(k * n)), c(static_cast<std::size_t>(m * n));
    for (auto* x : {&a, &b, &c}) for (double& e : *x) tests::draw(e, r);
    for (bool accumulate : {false, true}) {
      auto got = c;
      exec::detail::packed_product<double>::run(m, n, k, {a.data(), k, 1}, {b.data(), n, 1}, {got.data(), n, 1}, accumulate);
      for (i64 i = 0; i < m; ++i)
        for (i64 j = 0; j < n; ++j) {
          double want = accumulate ? c[static_cast<std::size_t>(i * n + j)] : 0;
          for (i64 l = 0; l < k; ++l) want += a[static_cast<std::size_t>(i * k + l)] * b[static_cast<std::size_t>(l * n + j)];
          REQUIRE(close(got[static_cast<std::size_t>(i * n + j)], want, k));
        }
    }
  }
}
