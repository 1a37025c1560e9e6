// tensorpar/exec/cuda/products.cuh - matrix products by cuBLASLt; which algorithm is asked once for every shape
#pragma once
#include <array>
#include <concepts>
#include <map>
#include <mutex>
#include <optional>
#include <tensorpar/exec/cuda.cuh>
#include <tensorpar/exec/product_layout.hpp>

namespace tensorpar::detail {

/// A handle of cuBLASLt's that is given back.
template <class Handle, cublasStatus_t (*Destroy)(Handle)> class lt_handle {
  Handle h_ = nullptr;

 public:
  lt_handle() = default;
  lt_handle(lt_handle const&) = delete;
  lt_handle& operator=(lt_handle const&) = delete;
  ~lt_handle() { if (h_) Destroy(h_); }
  Handle* to() { return &h_; }
  Handle get() const { return h_; }
};

/// One logical device's products; copies share handle and algorithms.
class cuda_products {
  using key = std::array<i64, 14>;
  struct shared {
    lt_handle<cublasLtHandle_t, cublasLtDestroy> handle;
    std::mutex lock;
    std::map<key, std::optional<cublasLtMatmulAlgo_t>> chosen;   // nothing: the library has none
  };
  cuda_memory memory_;
  std::shared_ptr<shared> shared_ = std::make_shared<shared>();

  struct matrix {
    lt_handle<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy> layout;
    matrix(cudaDataType type, i64 rows, i64 cols, i64 ld, i64 batch, i64 apart) {
      cuda_check(cublasLtMatrixLayoutCreate(layout.to(), type, static_cast<uint64_t>(rows), static_cast<uint64_t>(cols), ld),
                 "cublasLtMatrixLayoutCreate");
      int const count = static_cast<int>(batch);
      set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, count);
      set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, static_cast<int64_t>(apart));
    }
    template <class T> void set(cublasLtMatrixLayoutAttribute_t what, T const& value) {
      cuda_check(cublasLtMatrixLayoutSetAttribute(layout.get(), what, &value, sizeof value), "cublasLtMatrixLayoutSetAttribute");
    }
  };

 public:
  explicit cuda_products(cuda_memory m) : memory_(std::move(m)) {
    memory_.state().enter();
    cuda_check(cublasLtCreate(shared_->handle.to()), "cublasLtCreate");
  }

  /// False: not for these scalars, strides or sizes. Takes no scratch.
  template <class Scalar> bool multiply(matrix_products<Scalar> const& p) const {
    if constexpr (std::same_as<Scalar, float> || std::same_as<Scalar, double>) {
      i64 const most = i64{1} << 31;
      if (p.m <= 0 || p.n <= 0 || p.k <= 0 || p.batch[0].extent >= most) return false;
      blas_product const form = blas_form(p);
      if (!form.fits) return false;
      auto const& apart = p.batch[1];
      for (i64 u = 0; u < apart.extent; ++u)       // one key for all of them: the first says whether there is an algorithm
        if (!run(p, form, p.a.p + u * apart.a, p.b.p + u * apart.b, p.c.p + u * apart.c)) return false;
      return true;
    } else {
      return false;
    }
  }

 private:
  template <class Scalar>
  bool run(matrix_products<Scalar> const& p, blas_product const& form, Scalar const* a, Scalar const* b, Scalar* c) const {
    constexpr bool wide = sizeof(Scalar) == 8;
    cudaDataType const type = wide ? CUDA_R_64F : CUDA_R_32F;
    cublasOperation_t const x_op = form.x.transposed ? CUBLAS_OP_T : CUBLAS_OP_N, y_op = form.y.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    lt_handle<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy> desc;
    cuda_check(cublasLtMatmulDescCreate(desc.to(), wide ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F, type), "cublasLtMatmulDescCreate");
    auto const say = [&](cublasLtMatmulDescAttributes_t what, cublasOperation_t const& op) {
      cuda_check(cublasLtMatmulDescSetAttribute(desc.get(), what, &op, sizeof op), "cublasLtMatmulDescSetAttribute");
    };
    say(CUBLASLT_MATMUL_DESC_TRANSA, x_op);
    say(CUBLASLT_MATMUL_DESC_TRANSB, y_op);
    auto const& batch = p.batch[0];
    i64 const x_apart = form.swapped ? batch.b : batch.a, y_apart = form.swapped ? batch.a : batch.b;
    auto const stored = [&](i64 rows, i64 cols, blas_operand const& o, i64 apart) {
      return o.transposed ? matrix(type, cols, rows, o.ld, batch.extent, apart) : matrix(type, rows, cols, o.ld, batch.extent, apart);
    };
    matrix const x = stored(form.m, form.k, form.x, x_apart), y = stored(form.k, form.n, form.y, y_apart),
                 z(type, form.m, form.n, form.ldc, batch.extent, batch.c);
    Scalar const one(1), before = p.accumulate ? Scalar(1) : Scalar(0);
    Scalar const *left = form.swapped ? b : a, *right = form.swapped ? a : b;
    i64 const left_apart = form.swapped ? p.batch[1].b : p.batch[1].a, right_apart = form.swapped ? p.batch[1].a : p.batch[1].b;
    key const k{wide, form.m, form.n, form.k, form.x.transposed, form.x.ld, form.y.transposed, form.y.ld, form.ldc, batch.extent, x_apart,
                y_apart, batch.c, aligned(left, left_apart) | aligned(right, right_apart) << 8 | aligned(c, p.batch[1].c) << 16};
    std::optional<cublasLtMatmulAlgo_t> const algorithm = choose(k, desc.get(), x.layout.get(), y.layout.get(), z.layout.get());
    if (!algorithm) return false;
    memory_.state().enter();
    cuda_check(cublasLtMatmul(shared_->handle.get(), desc.get(), &one, left, x.layout.get(), right, y.layout.get(), &before, c,
                              z.layout.get(), c, z.layout.get(), &*algorithm, nullptr, 0, memory_.stream()),
               "cublasLtMatmul");
    return true;
  }
  /// Bytes that the address and all that lie `apart` numbers from it are multiples of, at most 16.
  template <class Scalar> static i64 aligned(Scalar const* p, i64 apart) {
    std::uintptr_t const low = (reinterpret_cast<std::uintptr_t>(p) | static_cast<std::uintptr_t>(apart) * sizeof(Scalar)) & 15;
    return low ? static_cast<i64>(low & (~low + 1)) : 16;
  }
  std::optional<cublasLtMatmulAlgo_t> choose(key const& k, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t x, cublasLtMatrixLayout_t y,
                                             cublasLtMatrixLayout_t z) const {
    std::lock_guard const held(shared_->lock);
    if (auto const known = shared_->chosen.find(k); known != shared_->chosen.end()) return known->second;
    lt_handle<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy> want;
    cuda_check(cublasLtMatmulPreferenceCreate(want.to()), "cublasLtMatmulPreferenceCreate");
    uint64_t const scratch = 0;
    auto const say = [&](cublasLtMatmulPreferenceAttributes_t what, auto const& value) {
      cuda_check(cublasLtMatmulPreferenceSetAttribute(want.get(), what, &value, sizeof value), "cublasLtMatmulPreferenceSetAttribute");
    };
    say(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, scratch);
    uint32_t const left = static_cast<uint32_t>(k[13] & 255), right = static_cast<uint32_t>(k[13] >> 8 & 255),
                   to = static_cast<uint32_t>(k[13] >> 16 & 255);
    say(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, left);
    say(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, right);
    say(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, to);
    say(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, to);
    cublasLtMatmulHeuristicResult_t found{};
    int n = 0;
    cublasStatus_t const status = cublasLtMatmulAlgoGetHeuristic(shared_->handle.get(), desc, x, y, z, z, want.get(), 1, &found, &n);
    if (status != CUBLAS_STATUS_NOT_SUPPORTED) cuda_check(status, "cublasLtMatmulAlgoGetHeuristic");
    std::optional<cublasLtMatmulAlgo_t>& chosen = shared_->chosen[k];
    if (status == CUBLAS_STATUS_SUCCESS && n > 0) chosen = found.algo;
    return chosen;
  }
};

}  // namespace tensorpar::detail
