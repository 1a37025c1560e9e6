// tests/support/cuda_stand_in/products.hpp - which products cuBLASLt takes, and one of them: D = alpha op(A) op(B) + beta C, plus a bias, gelu
// of it, times gelu's slope, or with sums of A or B beside it
#pragma once
#include "cublas_types.hpp"
#include "streams.hpp"
#include <bit>
#include <cmath>

namespace cuda_stand_in {

using product_desc = cublasLtMatmulDescOpaque_t;
using matrix_layout = cublasLtMatrixLayoutOpaque_t;

inline bool has_bias(product_desc const& d) { return d.epilogue & CUBLASLT_EPILOGUE_BIAS; }
inline bool has_sums(product_desc const& d) { return d.epilogue == CUBLASLT_EPILOGUE_BGRADA || d.epilogue == CUBLASLT_EPILOGUE_BGRADB; }
inline bool has_vector(product_desc const& d) { return has_bias(d) || has_sums(d); }
inline bool has_aux(product_desc const& d) { return d.epilogue & 128; }
/// Of the vector: a bias goes down a column, as sums of A do; sums of B go along a row.
inline std::uint64_t vector_length(product_desc const& d, matrix_layout const& r) {
  return d.epilogue == CUBLASLT_EPILOGUE_BGRADB ? r.cols : r.rows;
}
inline std::size_t bytes_of(std::int32_t type) { return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2; }
inline std::int32_t bias_type(product_desc const& d, matrix_layout const& r) { return d.bias_type < 0 ? r.type : d.bias_type; }
/// Bytes that an address is a multiple of, at most 256.
inline std::uint64_t alignment_of(void const* p) {
  auto const at = reinterpret_cast<std::uintptr_t>(p) | 256;
  return at & (~at + 1);
}

/// From the library's table of types, sizes, and strides. Stricter than it where it says nothing.
inline cublasStatus_t check_product(product_desc const& d, matrix_layout const& a, matrix_layout const& b, matrix_layout const& c,
                                    matrix_layout const& r) {
  bool const t_a = d.op_a != CUBLAS_OP_N, t_b = d.op_b != CUBLAS_OP_N;
  std::uint64_t const m = t_a ? a.cols : a.rows, k = t_a ? a.rows : a.cols, n = t_b ? b.rows : b.cols;
  if (m == 0 || n == 0 || k == 0 || (t_b ? b.cols : b.rows) != k || r.rows != m || r.cols != n || c.rows != m || c.cols != n)
    return CUBLAS_STATUS_INVALID_VALUE;
  for (matrix_layout const* x : {&a, &b, &c, &r}) {
    if (x->ld < static_cast<std::int64_t>(x->rows) || x->batch < 1 || x->batch != r.batch || x->apart < 0)
      return CUBLAS_STATUS_INVALID_VALUE;
    if (x->rows > 0x7fffffff || x->cols > 0x7fffffff) return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  std::int64_t const whole = static_cast<std::int64_t>((n - 1) * static_cast<std::uint64_t>(r.ld) + m);
  bool const within = r.apart > 0 && r.ld >= static_cast<std::int64_t>(m) * r.batch && r.apart >= static_cast<std::int64_t>(m);
  if (r.batch > 1 && r.apart < whole && !within) return CUBLAS_STATUS_INVALID_VALUE;         // results in each other's place
  if (c.type != r.type || c.ld != r.ld || c.apart != r.apart) return CUBLAS_STATUS_INVALID_VALUE;
  if (a.type != b.type) return CUBLAS_STATUS_NOT_SUPPORTED;
  bool const plain = d.epilogue == CUBLASLT_EPILOGUE_DEFAULT;
  bool known_epilogue = plain;                                                               // the stand-in has no others
  for (std::uint32_t e : {CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_GELU_AUX, CUBLASLT_EPILOGUE_GELU_AUX_BIAS, CUBLASLT_EPILOGUE_DGELU,
                          CUBLASLT_EPILOGUE_BGRADA, CUBLASLT_EPILOGUE_BGRADB})
    known_epilogue = known_epilogue || d.epilogue == e;
  if (!known_epilogue || ((has_aux(d) || has_sums(d)) && r.batch > 1)) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (has_aux(d) && (d.aux_ld % 8 || d.aux_ld < static_cast<std::int64_t>(m))) return CUBLAS_STATUS_INVALID_VALUE;
  if (d.compute == CUBLAS_COMPUTE_64F) {
    bool const doubles = d.scale == CUDA_R_64F && a.type == CUDA_R_64F && r.type == CUDA_R_64F;
    return doubles && plain ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
  }
  bool const floats = a.type == CUDA_R_32F && r.type == CUDA_R_32F,
             narrow = a.type == CUDA_R_16BF && (r.type == CUDA_R_16BF || r.type == CUDA_R_32F),
             known = d.compute == CUBLAS_COMPUTE_32F ? floats || narrow : d.compute == CUBLAS_COMPUTE_32F_FAST_TF32 && floats;
  if (!known || d.scale != CUDA_R_32F || (has_vector(d) && bias_type(d, r) != r.type)) return CUBLAS_STATUS_NOT_SUPPORTED;
  return CUBLAS_STATUS_SUCCESS;
}

/// An algorithm is good for what it was chosen for, and nothing else.
inline std::uint64_t problem_hash(product_desc const& d, matrix_layout const& a, matrix_layout const& b, matrix_layout const& c,
                                  matrix_layout const& r) {
  std::uint64_t h = 14695981039346656037u;
  auto const add = [&](auto x) { h = (h ^ static_cast<std::uint64_t>(x)) * 1099511628211u; };
  for (std::int32_t x : {d.compute, d.scale, d.op_a, d.op_b, bias_type(d, r)}) add(x);
  add(d.epilogue);
  add(d.bias_apart);
  add(d.aux_ld);
  for (matrix_layout const* x : {&a, &b, &c, &r}) {
    add(x->type);
    add(x->rows);
    add(x->cols);
    add(x->ld);
    add(x->batch);
    add(x->apart);
  }
  return h;
}

struct product_call_state {
  product_desc d;
  matrix_layout a, b, c, r;
  void const *pa, *pb, *pc;
  void* pr;
  double alpha, beta;
  void* workspace;
  std::size_t workspace_bytes;
  int algorithm;
};
/// How long a product takes longer than nothing, by what it is and by which algorithm; none: all take the same.
inline std::function<std::uint64_t(product_desc const&, int)>& product_time() {
  static std::function<std::uint64_t(product_desc const&, int)> f;
  return f;
}
inline double number_at(void const* p, std::int32_t type) {
  return type == CUDA_R_64F ? *static_cast<double const*>(p) : static_cast<double>(*static_cast<float const*>(p));
}
/// Which products fail for all that the heuristic said; none: all are computed.
inline std::function<bool(product_desc const&, int)>& product_refusal() {
  static std::function<bool(product_desc const&, int)> f;
  return f;
}
/// Are pointers and workspace what the algorithm was promised?
inline cublasStatus_t check_pointers(product_call_state const& p, cublasLtMatmulAlgo_t const* algo) {
  auto const off = [](void const* at, std::uint64_t by) { return reinterpret_cast<std::uintptr_t>(at) % by != 0; };
  if (off(p.pa, bytes_of(p.a.type)) || off(p.pb, bytes_of(p.b.type)) || off(p.pr, bytes_of(p.r.type))) return CUBLAS_STATUS_INVALID_VALUE;
  if (p.beta != 0 && !p.pc) return CUBLAS_STATUS_INVALID_VALUE;
  if (has_vector(p.d) && (!p.d.bias || off(p.d.bias, bytes_of(bias_type(p.d, p.r))))) return CUBLAS_STATUS_INVALID_VALUE;
  if (has_aux(p.d) && (!p.d.aux || off(p.d.aux, 16))) return CUBLAS_STATUS_INVALID_VALUE;
  if (p.workspace_bytes && (!p.workspace || off(p.workspace, 256))) return CUBLAS_STATUS_INVALID_VALUE;
  if (!algo) return CUBLAS_STATUS_SUCCESS;
  auto const& data = algo->data;
  if (data[0] != problem_hash(p.d, p.a, p.b, p.c, p.r) || data[6] > p.workspace_bytes) return CUBLAS_STATUS_INVALID_VALUE;
  bool const as_promised = !off(p.pa, data[1]) && !off(p.pb, data[2]) && (p.beta == 0 || !off(p.pc, data[3])) && !off(p.pr, data[4]) &&
                           !(has_vector(p.d) && off(p.d.bias, data[5])) && !(has_aux(p.d) && off(p.d.aux, data[7]));
  return as_promised ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

/// Numbers as they are computed with. tf32: rounded to 11 bits of precision.
template <class Number> Number load(void const* p, std::int64_t i, std::int32_t type, bool tf32) {
  if (type == CUDA_R_64F) return static_cast<Number>(static_cast<double const*>(p)[i]);
  if (type == CUDA_R_16BF)
    return static_cast<Number>(std::bit_cast<float>(static_cast<std::uint32_t>(static_cast<std::uint16_t const*>(p)[i]) << 16));
  float const x = static_cast<float const*>(p)[i];
  return static_cast<Number>(tf32 ? std::bit_cast<float>((std::bit_cast<std::uint32_t>(x) + 0x1000u) & ~0x1fffu) : x);
}
template <class Number> void store(void* p, std::int64_t i, std::int32_t type, Number x) {
  if (type == CUDA_R_64F) static_cast<double*>(p)[i] = static_cast<double>(x);
  else if (type == CUDA_R_32F) static_cast<float*>(p)[i] = static_cast<float>(x);
  else {
    std::uint32_t const u = std::bit_cast<std::uint32_t>(static_cast<float>(x));
    bool const nan = (u & 0x7fffffffu) > 0x7f800000u;
    static_cast<std::uint16_t*>(p)[i] = nan ? std::uint16_t{0x7fff} : static_cast<std::uint16_t>((u + 0x7fffu + (u >> 16 & 1)) >> 16);
  }
}
/// By hyperbolic tangents.
inline double gelu(double x) { return x / 2 * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x))); }
inline double gelu_slope(double x) {
  double const f = std::sqrt(2 / 3.14159265358979323846), t = std::tanh(f * (x + 0.044715 * x * x * x));
  return (1 + t) / 2 + x / 2 * (1 - t * t) * f * (1 + 3 * 0.044715 * x * x);
}
/// In the stream (products.cpp). Every operand must lie in one piece of the GPU's memory; the workspace is written all over, here and there.
cudaError_t run_product(product_call_state const& p, int gpu);

}  // namespace cuda_stand_in
