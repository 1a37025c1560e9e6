// tests/support/cuda_stand_in/cublasLt.h - matrix products as cuBLASLt takes them: what it would refuse is refused, in its words
#pragma once
#include "calls.hpp"
#include "cublas_types.hpp"
#include "products.hpp"
#include <new>

namespace cuda_stand_in {

inline std::map<std::string, cublasStatus_t>& product_errors() {      // by call: what it says instead of being done
  static std::map<std::string, cublasStatus_t> all;
  return all;
}
/// A GPU that is broken, or an error that a test wants.
template <class F> cublasStatus_t product_call(char const* name, F&& f) {
  the_machine& m = the_machine::get();
  std::lock_guard const held(m.lock);
  ++m.calls[name];
  if (auto const i = product_errors().find(name); i != product_errors().end()) return i->second;
  return f();
}
template <class T> cublasStatus_t make(T** to, T value) {
  std::lock_guard const held(the_machine::get().lock);
  if (!to) return CUBLAS_STATUS_INVALID_VALUE;
  *to = new T(value);
  ++the_machine::get().descriptors;
  return CUBLAS_STATUS_SUCCESS;
}
template <class T> cublasStatus_t unmake(T* p) {
  std::lock_guard const held(the_machine::get().lock);
  if (!p) return CUBLAS_STATUS_INVALID_VALUE;
  delete p;
  --the_machine::get().descriptors;
  return CUBLAS_STATUS_SUCCESS;
}
/// Sets `to` from a buffer, whose size must be right.
template <class T> cublasStatus_t put(T& to, void const* from, std::size_t n) {
  if (!from || n != sizeof(T)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&to, from, n);
  return CUBLAS_STATUS_SUCCESS;
}
/// A value that may be said but not changed.
template <class T> cublasStatus_t only(T value, void const* from, std::size_t n) {
  T said{};
  if (cublasStatus_t const s = put(said, from, n); s != CUBLAS_STATUS_SUCCESS) return s;
  return said == value ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

}  // namespace cuda_stand_in

inline cublasStatus_t cublasLtCreate(cublasLtHandle_t* h) {
  return cuda_stand_in::product_call("cublasLtCreate", [&] {
    using namespace cuda_stand_in;
    if (the_machine::get().gpus == 0 || the_machine::get().state(current_gpu) != cudaSuccess || scheduler::get().refuse_unsafe())
      return CUBLAS_STATUS_NOT_INITIALIZED;
    return make(h, cublasLtContext{current_gpu});
  });
}
/// Waits for the GPU, as the library says of itself.
inline cublasStatus_t cublasLtDestroy(cublasLtHandle_t h) {
  return cuda_stand_in::product_call("cublasLtDestroy", [&] {
    if (!h) return CUBLAS_STATUS_NOT_INITIALIZED;
    cuda_stand_in::scheduler::get().finish_all(h->gpu);
    return cuda_stand_in::unmake(h);
  });
}
inline cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* x, cudaDataType type, std::uint64_t rows, std::uint64_t cols,
                                                 std::int64_t ld) {
  return cuda_stand_in::make(x, cublasLtMatrixLayoutOpaque_t{type, rows, cols, ld, 1, 0});
}
inline cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t x) { return cuda_stand_in::unmake(x); }
inline cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t x, cublasLtMatrixLayoutAttribute_t what, void const* p,
                                                       std::size_t n) {
  using namespace cuda_stand_in;
  if (!x) return CUBLAS_STATUS_INVALID_VALUE;
  switch (what) {
    case CUBLASLT_MATRIX_LAYOUT_TYPE: return put(x->type, p, n);
    case CUBLASLT_MATRIX_LAYOUT_ORDER: return only(std::int32_t{0}, p, n);          // columns
    case CUBLASLT_MATRIX_LAYOUT_ROWS: return put(x->rows, p, n);
    case CUBLASLT_MATRIX_LAYOUT_COLS: return put(x->cols, p, n);
    case CUBLASLT_MATRIX_LAYOUT_LD: return put(x->ld, p, n);
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT: return put(x->batch, p, n);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET: return put(x->apart, p, n);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}
inline cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* d, cublasComputeType_t compute, cudaDataType_t scale) {
  cublasLtMatmulDescOpaque_t const plain{compute, scale, CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_EPILOGUE_DEFAULT, nullptr, 0, -1, nullptr, 0};
  return cuda_stand_in::make(d, plain);
}
inline cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d) { return cuda_stand_in::unmake(d); }
inline cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t what, void const* p,
                                                     std::size_t n) {
  using namespace cuda_stand_in;
  if (!d) return CUBLAS_STATUS_INVALID_VALUE;
  switch (what) {
    case CUBLASLT_MATMUL_DESC_COMPUTE_TYPE: return put(d->compute, p, n);
    case CUBLASLT_MATMUL_DESC_SCALE_TYPE: return put(d->scale, p, n);
    case CUBLASLT_MATMUL_DESC_POINTER_MODE: return only(std::int32_t{0}, p, n);     // numbers of the host's
    case CUBLASLT_MATMUL_DESC_TRANSA: return put(d->op_a, p, n);
    case CUBLASLT_MATMUL_DESC_TRANSB: return put(d->op_b, p, n);
    case CUBLASLT_MATMUL_DESC_EPILOGUE: return put(d->epilogue, p, n);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return put(d->bias, p, n);
    case CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE: return put(d->bias_apart, p, n);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE: return put(d->bias_type, p, n);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER: return put(d->aux, p, n);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD: return put(d->aux_ld, p, n);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}
inline cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* w) {
  return cuda_stand_in::make(w, cublasLtMatmulPreferenceOpaque_t{0, {256, 256, 256, 256}});
}
inline cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t w) { return cuda_stand_in::unmake(w); }
inline cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t w, cublasLtMatmulPreferenceAttributes_t what,
                                                           void const* p, std::size_t n) {
  using namespace cuda_stand_in;
  if (!w) return CUBLAS_STATUS_INVALID_VALUE;
  switch (what) {
    case CUBLASLT_MATMUL_PREF_SEARCH_MODE: return only(std::uint32_t{0}, p, n);
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES: return put(w->workspace, p, n);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK: return only(std::uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE}, p, n);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return put(w->aligned[what - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES], p, n);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}

/// Three algorithms for whatever is supported: they take all the workspace that they may have.
inline cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t h, cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t a,
                                                     cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t r,
                                                     cublasLtMatmulPreference_t w, int wanted, cublasLtMatmulHeuristicResult_t* found,
                                                     int* n) {
  return cuda_stand_in::product_call("cublasLtMatmulAlgoGetHeuristic", [&] {
    using namespace cuda_stand_in;
    if (!h) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (scheduler::get().refuse_unsafe()) return CUBLAS_STATUS_INTERNAL_ERROR;      // as some versions do within a capture
    if (!d || !a || !b || !c || !r || !w || wanted < 1 || !found || !n) return CUBLAS_STATUS_INVALID_VALUE;
    *n = 0;
    if (cublasStatus_t const s = check_product(*d, *a, *b, *c, *r); s != CUBLAS_STATUS_SUCCESS) return s;
    for (std::uint32_t at : w->aligned) if (at == 0 || (at & (at - 1))) return CUBLAS_STATUS_INVALID_VALUE;
    *n = std::min(wanted, 3);
    for (int i = 0; i < *n; ++i) {
      found[i] = {};
      auto& data = found[i].algo.data;
      data[0] = problem_hash(*d, *a, *b, *c, *r);
      for (int k = 0; k < 4; ++k) data[1 + k] = w->aligned[k];
      data[5] = d->bias ? alignment_of(d->bias) : 1;          // their values say what may be relied on
      found[i].workspaceSize = data[6] = w->workspace;
      data[7] = d->aux ? alignment_of(d->aux) : 1;
      data[8] = static_cast<std::uint64_t>(i);
    }
    return CUBLAS_STATUS_SUCCESS;
  });
}
inline cublasStatus_t cublasLtMatmul(cublasLtHandle_t h, cublasLtMatmulDesc_t d, void const* alpha, void const* pa,
                                     cublasLtMatrixLayout_t a, void const* pb, cublasLtMatrixLayout_t b, void const* beta, void const* pc,
                                     cublasLtMatrixLayout_t c, void* pr, cublasLtMatrixLayout_t r, cublasLtMatmulAlgo_t const* algo,
                                     void* workspace, std::size_t workspace_bytes, cudaStream_t s) {
  return cuda_stand_in::product_call("cublasLtMatmul", [&] {
    using namespace cuda_stand_in;
    if (!h) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!d || !a || !b || !c || !r || !alpha || !beta || !pa || !pb || !pr) return CUBLAS_STATUS_INVALID_VALUE;
    queue* const q = queue_of(s);
    if (!q || q->gpu != h->gpu || current_gpu != h->gpu) return CUBLAS_STATUS_EXECUTION_FAILED;
    if (the_machine::get().state(h->gpu) != cudaSuccess) return CUBLAS_STATUS_EXECUTION_FAILED;
    if (cublasStatus_t const x = check_product(*d, *a, *b, *c, *r); x != CUBLAS_STATUS_SUCCESS) return x;
    double const by = number_at(alpha, d->scale), and_by = number_at(beta, d->scale);
    int const which = algo ? static_cast<int>(algo->data[8]) : 0;
    product_call_state const p{*d, *a, *b, *c, *r, pa, pb, pc, pr, by, and_by, workspace, workspace_bytes, which};
    if (cublasStatus_t const x = check_pointers(p, algo); x != CUBLAS_STATUS_SUCCESS) return x;
    if (product_refusal() && product_refusal()(*d, which)) return CUBLAS_STATUS_INTERNAL_ERROR;
    cudaError_t const asked = scheduler::get().ask(*q, [p, gpu = h->gpu] { return run_product(p, gpu); });
    return asked == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
  });
}
