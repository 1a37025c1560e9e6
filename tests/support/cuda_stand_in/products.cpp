// tests/support/cuda_stand_in/products.cpp - a product is computed
#include "products.hpp"
#include <algorithm>
#include <vector>

namespace cuda_stand_in {
namespace {

/// to += x from, all in bounds: the one loop that takes time.
template <class Number>
#if !defined(__clang__)
__attribute__((optimize("O3")))                // -O2 of clang++ does
#endif
__attribute__((no_sanitize("address", "undefined"))) void add_column(Number* to, Number const* from, Number x, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) to[i] += x * from[i];
}
template <class Number> void multiply(product_call_state const& p) {
  std::size_t const m = p.r.rows, n = p.r.cols, k = p.d.op_a == CUBLAS_OP_N ? p.a.cols : p.a.rows;
  bool const t_a = p.d.op_a != CUBLAS_OP_N, t_b = p.d.op_b != CUBLAS_OP_N, tf32 = p.d.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  std::vector<Number> a(m * k), column(m), sums_a(m), sums_b(n);
  auto const index = [](matrix_layout const& x, bool turned, std::int64_t u, std::size_t row, std::size_t col) {
    return u * x.apart + static_cast<std::int64_t>(turned ? col : row) + static_cast<std::int64_t>(turned ? row : col) * x.ld;
  };
  for (std::int64_t u = 0; u < p.r.batch; ++u) {
    for (std::size_t l = 0; l < k; ++l)
      for (std::size_t i = 0; i < m; ++i) a[l * m + i] = load<Number>(p.pa, index(p.a, t_a, u, i, l), p.a.type, tf32);
    for (std::size_t j = 0; j < n; ++j) {
      std::fill(column.begin(), column.end(), Number(0));
      for (std::size_t l = 0; l < k; ++l)
        add_column(column.data(), a.data() + l * m, load<Number>(p.pb, index(p.b, t_b, u, l, j), p.b.type, tf32), m);
      for (std::size_t i = 0; i < m; ++i) {
        std::int64_t const at = index(p.r, false, u, i, j);
        Number x = static_cast<Number>(p.alpha) * column[i];
        if (p.beta != 0) x += static_cast<Number>(p.beta) * load<Number>(p.pc, at, p.c.type, false);     // else C may hold anything
        if (has_bias(p.d)) x += load<Number>(p.d.bias, u * p.d.bias_apart + static_cast<std::int64_t>(i), bias_type(p.d, p.r), false);
        std::int64_t const aside = static_cast<std::int64_t>(i) + static_cast<std::int64_t>(j) * p.d.aux_ld;
        if (p.d.epilogue == CUBLASLT_EPILOGUE_DGELU) x *= static_cast<Number>(gelu_slope(load<double>(p.d.aux, aside, p.r.type, false)));
        else if (has_aux(p.d)) {
          store(const_cast<void*>(p.d.aux), aside, p.r.type, x);
          x = static_cast<Number>(gelu(static_cast<double>(x)));
        }
        store(p.pr, at, p.r.type, x);
      }
      for (std::size_t l = 0; l < k; ++l) sums_b[j] += load<Number>(p.pb, index(p.b, t_b, u, l, j), p.b.type, false);
    }
    for (std::size_t l = 0; l < k; ++l) for (std::size_t i = 0; i < m; ++i) sums_a[i] += a[l * m + i];
  }
  if (!has_sums(p.d)) return;
  std::vector<Number> const& sums = p.d.epilogue == CUBLASLT_EPILOGUE_BGRADA ? sums_a : sums_b;
  for (std::size_t i = 0; i < sums.size(); ++i)
    store(const_cast<void*>(p.d.bias), static_cast<std::int64_t>(i), bias_type(p.d, p.r), sums[i]);
}
/// What is read and written, column by column.
void touch_all(product_call_state const& p) {
  auto const matrix = [](void const* at, matrix_layout const& x, bool writes) {
    for (std::int64_t u = 0; u < x.batch; ++u)
      for (std::int64_t col = 0; col < static_cast<std::int64_t>(x.cols); ++col)
        races::touch(static_cast<std::byte const*>(at) + static_cast<std::size_t>(u * x.apart + col * x.ld) * bytes_of(x.type),
                     x.rows * bytes_of(x.type), writes);
  };
  matrix(p.pa, p.a, false);
  matrix(p.pb, p.b, false);
  if (p.beta != 0) matrix(p.pc, p.c, false);
  matrix(p.pr, p.r, true);
  if (has_aux(p.d)) {
    matrix_layout aux = p.r;
    aux.ld = p.d.aux_ld;
    matrix(p.d.aux, aux, p.d.epilogue != CUBLASLT_EPILOGUE_DGELU);
  }
  std::size_t const one = bytes_of(bias_type(p.d, p.r));
  for (std::int64_t u = 0; has_vector(p.d) && u < p.r.batch; ++u)
    races::touch(static_cast<std::byte const*>(p.d.bias) + static_cast<std::size_t>(u * p.d.bias_apart) * one, vector_length(p.d, p.r) * one,
                 has_sums(p.d));
}

}  // namespace

cudaError_t run_product(product_call_state const& p, int gpu) {
  the_machine& m = the_machine::get();
  bool fits = true;
  auto const look = [&](void const* at, std::int64_t numbers, std::int32_t type) {
    fits = fits && m.memory.owner(at, static_cast<std::size_t>(numbers) * bytes_of(type)) == gpu;
  };
  auto const extent = [](matrix_layout const& x) {
    return (x.batch - 1) * x.apart + (static_cast<std::int64_t>(x.cols) - 1) * x.ld + static_cast<std::int64_t>(x.rows);
  };
  look(p.pa, extent(p.a), p.a.type);
  look(p.pb, extent(p.b), p.b.type);
  look(p.pr, extent(p.r), p.r.type);
  if (p.beta != 0) look(p.pc, extent(p.c), p.c.type);
  if (has_vector(p.d))
    look(p.d.bias, (p.r.batch - 1) * p.d.bias_apart + static_cast<std::int64_t>(vector_length(p.d, p.r)), bias_type(p.d, p.r));
  if (has_aux(p.d))
    look(p.d.aux, (static_cast<std::int64_t>(p.r.cols) - 1) * p.d.aux_ld + static_cast<std::int64_t>(p.r.rows), p.r.type);
  if (p.workspace_bytes) fits = fits && m.memory.owner(p.workspace, p.workspace_bytes) == gpu;
  if (!fits) {
    m.complain("a product's operands or workspace reach beyond their memory");
    return cudaErrorIllegalAddress;
  }
  std::size_t const some = std::min<std::size_t>(p.workspace_bytes, 4096);
  if (some) {
    races::touch(p.workspace, p.workspace_bytes, true);
    std::memset(p.workspace, 0xff, some);
    std::memset(static_cast<std::byte*>(p.workspace) + p.workspace_bytes - some, 0xff, some);
  }
  touch_all(p);
  if (product_time()) m.clock += product_time()(p.d, p.algorithm);
  if (p.d.compute == CUBLAS_COMPUTE_64F) multiply<double>(p);
  else multiply<float>(p);
  return cudaSuccess;
}

}  // namespace cuda_stand_in
