// tests/exec/teams/product_layout.test.cpp - products in the form of BLAS are the products of the strides, wherever a form is found
#include <tensorpar/exec/teams/product_layout.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <tensorpar/exec/teams/kernels/device.hpp>
#include <tensorpar/exec/teams/kernels/host.hpp>
#include <vector>

using namespace tensorpar;

namespace {

/// What BLAS does with a form: everything by columns.
void by_columns(detail::blas_product const& f, prime_field const* x, prime_field const* y, prime_field* c, bool accumulate) {
  auto const at = [](detail::blas_operand const& o, prime_field const* p, i64 i,
                     i64 j) { return o.transposed ? p[j + i * o.ld] : p[i + j * o.ld]; };
  for (i64 i = 0; i < f.m; ++i)
    for (i64 j = 0; j < f.n; ++j) {
      prime_field s = accumulate ? c[i + j * f.ldc] : prime_field(0);
      for (i64 l = 0; l < f.k; ++l) s += at(f.x, x, i, l) * at(f.y, y, l, j);
      c[i + j * f.ldc] = s;
    }
}

std::vector<prime_field> numbers(i64 n, std::mt19937_64& draw) {
  std::vector<prime_field> r(static_cast<std::size_t>(n));
  for (prime_field& x : r) x = prime_field::raw(draw() % prime_field::modulus);
  return r;
}

}  // namespace

TEST_CASE("a form gives the product; matrices by rows or by columns, with gaps or without, always have one") {
  std::mt19937_64 draw(6);
  int swapped = 0, thin = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    auto const some = [&](i64 n) { return static_cast<i64>(draw() % static_cast<u64>(n)); };
    exec::matrix_products<prime_field> p;
    p.m = 1 + some(4);
    p.n = 1 + some(4);
    p.k = 1 + some(4);
    p.accumulate = some(2) == 1;
    // by rows or by columns; sometimes a wider distance
    auto const strides = [&](i64 rows, i64 cols, i64& row, i64& col) {
      bool const rowwise = some(2) == 1;
      i64 const apart = (rowwise ? cols : rows) + some(3);
      row = rowwise ? apart : 1;
      col = rowwise ? 1 : apart;
    };
    strides(p.m, p.k, p.a.row, p.a.col);
    strides(p.k, p.n, p.b.row, p.b.col);
    strides(p.m, p.n, p.c.row, p.c.col);
    auto const a = numbers(100, draw), b = numbers(100, draw);
    auto want = numbers(100, draw), got = want;
    p.a.p = a.data();
    p.b.p = b.data();
    p.c.p = want.data();
    exec::host_teams<>{}.product(p);
    detail::blas_product const f = detail::blas_form(p);
    REQUIRE(f.fits);
    CHECK(f.ldc >= f.m);
    CHECK(f.x.ld >= (f.x.transposed ? f.k : f.m));
    CHECK(f.y.ld >= (f.y.transposed ? f.n : f.k));
    by_columns(f, f.swapped ? b.data() : a.data(), f.swapped ? a.data() : b.data(), got.data(), p.accumulate);
    CHECK(got == want);
    swapped += f.swapped;
    thin += p.m == 1 || p.n == 1 || p.k == 1;
  }
  CHECK(swapped > 500);
  CHECK(thin > 500);
}

TEST_CASE("strides that are neither one, and columns that overlap, have no form") {
  exec::matrix_products<float> p;
  p.m = p.n = p.k = 3;
  p.a = {nullptr, 3, 1};
  p.b = {nullptr, 3, 1};
  p.c = {nullptr, 6, 2};
  CHECK_FALSE(detail::blas_form(p).fits);
  p.c = {nullptr, 3, 1};
  CHECK(detail::blas_form(p).fits);
  p.a = {nullptr, 1, 1};
  CHECK_FALSE(detail::blas_form(p).fits);
  p.a = {nullptr, 7, 2};
  CHECK_FALSE(detail::blas_form(p).fits);
}

TEST_CASE("products of a batch: two loops around") {
  std::mt19937_64 draw(8);
  auto const a = numbers(2 * 3 * 4 * 5, draw), b = numbers(2 * 5 * 6, draw);
  std::vector<prime_field> c(2 * 3 * 4 * 6);
  exec::matrix_products<prime_field> p;
  p.m = 4;
  p.n = 6;
  p.k = 5;
  p.a = {a.data(), 5, 1};
  p.b = {b.data(), 6, 1};
  p.c = {c.data(), 6, 1};
  p.batch[0] = {2, 3 * 4 * 5, 5 * 6, 3 * 4 * 6};
  p.batch[1] = {3, 4 * 5, 0, 4 * 6};                           // b is the same for all three
  exec::host_teams<>{}.product(p);
  for (int t = 0; t < 2; ++t)
    for (int u = 0; u < 3; ++u)
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 6; ++j) {
          prime_field s;
          for (int l = 0; l < 5; ++l)
            s += a[static_cast<std::size_t>(((t * 3 + u) * 4 + i) * 5 + l)] * b[static_cast<std::size_t>((t * 5 + l) * 6 + j)];
          CHECK(c[static_cast<std::size_t>(((t * 3 + u) * 4 + i) * 6 + j)] == s);
        }
}
