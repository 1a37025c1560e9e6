// tensorpar/exec/cuda/products.cuh - matrix products by cuBLASLt; which algorithm is asked once for every shape
#pragma once
#include <array>
#include <concepts>
#include <map>
#include <mutex>
#include <optional>
#include <tensorpar/exec/cuda.cuh>
#include <tensorpar/exec/product_layout.hpp>

namespace tensorpar {

/// How products of floats are computed: in full, or with operands rounded to 11 bits (tensor cores; sums are floats all the same).
enum class float_products : int { full, tf32 };

namespace detail {

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

template <class Number> struct cuda_number {
  static constexpr bool given = false;
};
template <> struct cuda_number<float> {
  static constexpr bool given = true;
  static constexpr cudaDataType type = CUDA_R_32F;
};
template <> struct cuda_number<double> {
  static constexpr bool given = true;
  static constexpr cudaDataType type = CUDA_R_64F;
};
template <> struct cuda_number<bfloat16> {
  static constexpr bool given = true;
  static constexpr cudaDataType type = CUDA_R_16BF;
};

/// One logical device's products; copies share handle and algorithms.
class cuda_products {
  using key = std::array<i64, 17>;
  struct shared {
    lt_handle<cublasLtHandle_t, cublasLtDestroy> handle;
    std::mutex lock;
    std::map<key, std::optional<cublasLtMatmulAlgo_t>> chosen;   // nothing: the library has none
  };
  cuda_memory memory_;
  float_products floats_;
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
  /// Room that algorithms may use, if a caller has it: what NVIDIA advises for Hopper.
  static constexpr i64 scratch_bytes = i64{32} << 20;

  explicit cuda_products(cuda_memory m, float_products f = float_products::full) : memory_(std::move(m)), floats_(f) {
    memory_.state().enter();
    cuda_check(cublasLtCreate(shared_->handle.to()), "cublasLtCreate");
  }

  /// False: not for these numbers, strides or sizes. `scratch`: scratch_bytes of the GPU's memory, at a multiple of 256, or null.
  template <class Scalar, class Result> bool multiply(matrix_products<Scalar, Result> const& p, void* scratch = nullptr) const {
    if constexpr (cuda_number<Scalar>::given && cuda_number<Result>::given) {
      i64 const most = i64{1} << 31;
      if (p.m <= 0 || p.n <= 0 || p.k <= 0 || p.batch[0].extent >= most) return false;
      blas_product const form = blas_form(p);
      if (!form.fits || (p.bias && !form.swapped)) return false;         // a bias goes down a column
      auto const& apart = p.batch[1];
      for (i64 u = 0; u < apart.extent; ++u)       // one key for all of them: the first says whether there is an algorithm
        if (!run(p, form, p.a.p + u * apart.a, p.b.p + u * apart.b, p.c.p + u * apart.c, scratch)) return false;
      return true;
    } else {
      return false;
    }
  }

 private:
  template <class Scalar, class Result>
  bool run(matrix_products<Scalar, Result> const& p, blas_product const& form, Scalar const* a, Scalar const* b, Result* c,
           void* scratch) const {
    using number = computed<Scalar>;
    constexpr bool is_double = std::same_as<Scalar, double>, is_float = std::same_as<Scalar, float>;
    cublasComputeType_t const how = is_double                                        ? CUBLAS_COMPUTE_64F
                                    : is_float && floats_ == float_products::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                                                    : CUBLAS_COMPUTE_32F;
    constexpr cudaDataType type = cuda_number<Scalar>::type, result_type = cuda_number<Result>::type;
    cublasOperation_t const x_op = form.x.transposed ? CUBLAS_OP_T : CUBLAS_OP_N, y_op = form.y.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    lt_handle<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy> desc;
    cuda_check(cublasLtMatmulDescCreate(desc.to(), how, cuda_number<number>::type), "cublasLtMatmulDescCreate");
    auto const say = [&](cublasLtMatmulDescAttributes_t what, auto const& value) {
      cuda_check(cublasLtMatmulDescSetAttribute(desc.get(), what, &value, sizeof value), "cublasLtMatmulDescSetAttribute");
    };
    say(CUBLASLT_MATMUL_DESC_TRANSA, x_op);
    say(CUBLASLT_MATMUL_DESC_TRANSB, y_op);
    if (p.bias) {
      say(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
      say(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type);
    }
    auto const& batch = p.batch[0];
    i64 const x_apart = form.swapped ? batch.b : batch.a, y_apart = form.swapped ? batch.a : batch.b;
    auto const stored = [&](i64 rows, i64 cols, blas_operand const& o, i64 apart) {
      return o.transposed ? matrix(type, cols, rows, o.ld, batch.extent, apart) : matrix(type, rows, cols, o.ld, batch.extent, apart);
    };
    matrix const x = stored(form.m, form.k, form.x, x_apart), y = stored(form.k, form.n, form.y, y_apart),
                 z(result_type, form.m, form.n, form.ldc, batch.extent, batch.c);
    number const one(1), before = p.accumulate ? number(1) : number(0);
    Scalar const *left = form.swapped ? b : a, *right = form.swapped ? a : b;
    i64 const left_apart = form.swapped ? p.batch[1].b : p.batch[1].a, right_apart = form.swapped ? p.batch[1].a : p.batch[1].b;
    i64 const bias_alignment = p.bias ? aligned(p.bias, 0) : 0;
    key const k{static_cast<i64>(type), static_cast<i64>(result_type), bias_alignment, scratch != nullptr, form.m, form.n, form.k,
                form.x.transposed, form.x.ld, form.y.transposed, form.y.ld, form.ldc, batch.extent, x_apart, y_apart, batch.c,
                aligned(left, left_apart) | aligned(right, right_apart) << 8 | aligned(c, p.batch[1].c) << 16};
    auto const biased_by = [&](void const* at) { if (p.bias) say(CUBLASLT_MATMUL_DESC_BIAS_POINTER, at); };
    biased_by(reinterpret_cast<void const*>(bias_alignment));            // who chooses reads off the address what it may rely on
    std::optional<cublasLtMatmulAlgo_t> const algorithm = choose(k, desc.get(), x.layout.get(), y.layout.get(), z.layout.get());
    if (!algorithm) return false;
    biased_by(p.bias);
    memory_.state().enter();
    cuda_check(cublasLtMatmul(shared_->handle.get(), desc.get(), &one, left, x.layout.get(), right, y.layout.get(), &before, c,
                              z.layout.get(), c, z.layout.get(), &*algorithm, scratch, scratch ? scratch_bytes : 0, memory_.stream()),
               "cublasLtMatmul");
    return true;
  }
  /// Bytes that the address and all that lie `apart` numbers from it are multiples of, at most 16.
  template <class Number> static i64 aligned(Number const* p, i64 apart) {
    std::uintptr_t const low = (reinterpret_cast<std::uintptr_t>(p) | static_cast<std::uintptr_t>(apart) * sizeof(Number)) & 15;
    return low ? static_cast<i64>(low & (~low + 1)) : 16;
  }
  std::optional<cublasLtMatmulAlgo_t> choose(key const& k, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t x, cublasLtMatrixLayout_t y,
                                             cublasLtMatrixLayout_t z) const {
    std::lock_guard const held(shared_->lock);
    if (auto const known = shared_->chosen.find(k); known != shared_->chosen.end()) return known->second;
    lt_handle<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy> want;
    cuda_check(cublasLtMatmulPreferenceCreate(want.to()), "cublasLtMatmulPreferenceCreate");
    uint64_t const scratch = k[3] ? static_cast<uint64_t>(scratch_bytes) : 0;
    auto const say = [&](cublasLtMatmulPreferenceAttributes_t what, auto const& value) {
      cuda_check(cublasLtMatmulPreferenceSetAttribute(want.get(), what, &value, sizeof value), "cublasLtMatmulPreferenceSetAttribute");
    };
    say(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, scratch);
    i64 const alignment = k.back();
    uint32_t const left = static_cast<uint32_t>(alignment & 255), right = static_cast<uint32_t>(alignment >> 8 & 255),
                   to = static_cast<uint32_t>(alignment >> 16 & 255);
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

}  // namespace detail
}  // namespace tensorpar
