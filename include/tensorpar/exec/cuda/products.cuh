// tensorpar/exec/cuda/products.cuh - matrix products by cuBLASLt; which algorithm is asked or measured once
// for every shape
#pragma once
#include <array>
#include <concepts>
#include <memory>
#include <optional>
#include <tensorpar/core/index.hpp>
#include <tensorpar/exec/cuda/choices.cuh>
#include <tensorpar/exec/cuda/cuda.cuh>
#include <tensorpar/exec/step/captured_graphs.hpp>
#include <tensorpar/exec/teams/product_layout.hpp>
#include <vector>

namespace tensorpar {

/// How products of floats are computed: in full, or with operands rounded to 11 bits (tensor cores; sums are
/// floats all the same).
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

/// One logical device's products; copies share handle and choices.
class cuda_products {
  using key = cuda_product_choices::key;
  using algorithm = cuda_product_choices::algorithm;
  using handle = lt_handle<cublasLtHandle_t, cublasLtDestroy>;
  cuda_memory memory_;
  float_products floats_;
  std::shared_ptr<cuda_product_choices> choices_;
  std::shared_ptr<handle> handle_ = std::make_shared<handle>();
  // beside a product; elsewhere a kernel after it is faster, as others have measured
  bool good_at_gelu_ = false;

  struct matrix {
    lt_handle<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy> layout;
    matrix(cudaDataType type, i64 rows, i64 cols, i64 ld, i64 batch, i64 apart) {
      cuda_check(cublasLtMatrixLayoutCreate(layout.to(), type, static_cast<uint64_t>(rows),
                                            static_cast<uint64_t>(cols), ld),
                 "cublasLtMatrixLayoutCreate");
      int const count = static_cast<int>(batch);
      set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, count);
      set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, static_cast<int64_t>(apart));
    }
    template <class T> void set(cublasLtMatrixLayoutAttribute_t what, T const& value) {
      cuda_check(cublasLtMatrixLayoutSetAttribute(layout.get(), what, &value, sizeof value),
                 "cublasLtMatrixLayoutSetAttribute");
    }
  };

 public:
  /// Room that algorithms may use, if a caller has it: what NVIDIA advises for Hopper.
  static constexpr i64 scratch_bytes = i64{32} << 20;

  explicit cuda_products(cuda_memory m, float_products f = float_products::full,
                         std::shared_ptr<cuda_product_choices> c = std::make_shared<cuda_product_choices>())
      : memory_(std::move(m)), floats_(f), choices_(std::move(c)) {
    memory_.state().enter();
    cuda_check(cublasLtCreate(handle_->to()), "cublasLtCreate");
    int major = 0;
    cuda_check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, memory_.gpu()),
               "cudaDeviceGetAttribute");
    good_at_gelu_ = major == 9 || major == 10;
  }

  /// False: not for these numbers, strides or sizes. `scratch`: scratch_bytes of the GPU's memory, at a
  /// multiple of 256, or null.
  template <class Scalar, class Result>
  bool multiply(exec::matrix_products<Scalar, Result> const& p, void* scratch = nullptr) const {
    return multiply(p, {}, scratch, [] {});
  }
  /// A product and what follows it, or false: then nothing is done, and apart() is how it is to be done.
  template <class Scalar, class Result, class Apart>
  bool multiply(exec::matrix_products<Scalar, Result> const& p,
                exec::product_epilogue<Scalar, Result> const& e, void* scratch, Apart const& apart) const {
    if constexpr (cuda_number<Scalar>::given && cuda_number<Result>::given) {
      i64 const most = i64{1} << 31;
      if (p.m <= 0 || p.n <= 0 || p.k <= 0 || p.batch[0].extent >= most) return false;
      blas_product const form = blas_form(p);
      if (!form.fits || (p.bias && !form.swapped)) return false;         // a bias goes down a column
      auto const& turn = p.batch[1];
      std::optional<algorithm> by;                 // of all turns: the first says whether there is one
      for (i64 u = 0; u < turn.extent; ++u)
        if (!run(p, form, e, p.a.p + u * turn.a, p.b.p + u * turn.b, p.c.p + u * turn.c, scratch, apart, by))
          return false;
      return true;
    } else {
      return false;
    }
  }

 private:
  template <class Scalar, class Result, class Apart>
  bool run(exec::matrix_products<Scalar, Result> const& p, blas_product const& form,
           exec::product_epilogue<Scalar, Result> const& e, Scalar const* a, Scalar const* b, Result* c,
           void* scratch, Apart const& apart, std::optional<algorithm>& by) const {
    using number = computed<Scalar>;
    constexpr bool is_double = std::same_as<Scalar, double>, is_float = std::same_as<Scalar, float>;
    cublasComputeType_t const how = is_double ? CUBLAS_COMPUTE_64F
                                    : is_float && floats_ == float_products::tf32
                                        ? CUBLAS_COMPUTE_32F_FAST_TF32
                                        : CUBLAS_COMPUTE_32F;
    constexpr cudaDataType type = cuda_number<Scalar>::type, result_type = cuda_number<Result>::type;
    cublasOperation_t const x_op = form.x.transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                            y_op = form.y.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    // of gelu: what it is taken of, or its slope is taken at; of a bias, or of sums: the vector
    void* const aside = e.before ? static_cast<void*>(e.before) : const_cast<Result*>(e.slope);
    void const* const vector = p.bias ? static_cast<void const*>(p.bias) : e.sums;
    cublasLtEpilogue_t const epilogue = epilogue_of(p.bias, e, form.swapped);
    if (declines<Scalar>(p, form, e, vector, aside)) return false;
    lt_handle<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy> desc;
    cuda_check(cublasLtMatmulDescCreate(desc.to(), how, cuda_number<number>::type),
               "cublasLtMatmulDescCreate");
    auto const say = [&](cublasLtMatmulDescAttributes_t what, auto const& value) {
      cuda_check(cublasLtMatmulDescSetAttribute(desc.get(), what, &value, sizeof value),
                 "cublasLtMatmulDescSetAttribute");
    };
    say(CUBLASLT_MATMUL_DESC_TRANSA, x_op);
    say(CUBLASLT_MATMUL_DESC_TRANSB, y_op);
    say(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    if (vector) say(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, result_type);
    if (aside) say(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, static_cast<int64_t>(form.ldc));
    auto const& batch = p.batch[0];
    i64 const x_apart = form.swapped ? batch.b : batch.a, y_apart = form.swapped ? batch.a : batch.b;
    auto const stored = [&](i64 rows, i64 cols, blas_operand const& o, i64 between) {
      return o.transposed ? matrix(type, cols, rows, o.ld, batch.extent, between)
                          : matrix(type, rows, cols, o.ld, batch.extent, between);
    };
    matrix const x = stored(form.m, form.k, form.x, x_apart), y = stored(form.k, form.n, form.y, y_apart),
                 z(result_type, form.m, form.n, form.ldc, batch.extent, batch.c);
    Result const* const onto = e.plus ? e.plus : c;
    number const one(1), before = p.accumulate || e.plus ? number(1) : number(0);
    Scalar const *left = form.swapped ? b : a, *right = form.swapped ? a : b;
    i64 const left_apart = form.swapped ? p.batch[1].b : p.batch[1].a,
              right_apart = form.swapped ? p.batch[1].a : p.batch[1].b;
    i64 const flags = (scratch ? 1 : 0) | (before == number(0) ? 0 : 2);
    i64 const at = aligned(left, left_apart) | aligned(right, right_apart) << 8 |
                   aligned(c, p.batch[1].c) << 16 | (e.plus ? aligned(e.plus, 0) << 24 : 0);
    key const k{i64{type},         i64{result_type}, flags,         form.m,    form.n,       form.k,
                form.x.transposed, form.x.ld,        form.y.transposed, form.y.ld, form.ldc, batch.extent,
                x_apart,           y_apart,          batch.c,       i64{epilogue}, i64{how}, at};
    // who chooses reads off the addresses what it may rely on: no more than multiples of 16
    auto const point = [&](bool there) {
      auto const any = reinterpret_cast<void const*>(std::uintptr_t{16});
      if (vector) say(CUBLASLT_MATMUL_DESC_BIAS_POINTER, there ? vector : any);
      if (aside)
        say(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, there ? static_cast<void const*>(aside) : any);
    };
    auto const compute = [&](algorithm const& way) {
      memory_.state().enter();
      return cublasLtMatmul(handle_->get(), desc.get(), &one, left, x.layout.get(), right, y.layout.get(),
                            &before, onto, z.layout.get(), c, z.layout.get(), &way.data, scratch,
                            scratch ? scratch_bytes : 0, memory_.stream());
    };
    auto const named = [&] {
      return heuristic(k, desc.get(), x.layout.get(), y.layout.get(), z.layout.get());
    };
    bool const slow = e.sums || (aside && !good_at_gelu_);             // as far as is known
    return compute_by(k, slow, e.plus || aside || e.sums, apart, named, compute, point, by);
  }
  /// Computes by the algorithm that turns before have chosen (`by`), that is remembered for this key, or that
  /// is found now; false: by none. `named()`: algorithms that the library names; `point(there)`: says where
  /// operands lie, really or as anywhere; `more`: there is more to do than a product.
  template <class Apart, class Named, class Compute, class Point>
  bool compute_by(key const& k, bool slow, bool more, Apart const& apart, Named const& named,
                  Compute const& compute, Point const& point, std::optional<algorithm>& by) const {
    // turns before are done: there is no other way any more
    if (by) {
      point(true);
      cuda_check(compute(*by), "cublasLtMatmul");
      return true;
    }
    std::optional<cuda_product_choices::choice> chosen = choices_->find(k);
    if (!chosen) {
      point(false);
      bool const measures = choices_->measuring();
      std::vector<algorithm> found;
      if (measures || !slow) found = named();
      chosen.emplace();
      if (measures) {
        point(true);
        *chosen = fastest(found, compute, more, apart);
      } else if (!found.empty()) {
        chosen->by = found.front();
      }
      choices_->keep(k, *chosen);
    }
    point(true);
    if (chosen->apart || !chosen->by) return false;
    cublasStatus_t const status = compute(*chosen->by);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED) {       // although its own heuristic named it
      choices_->keep(k, {});
      return false;
    }
    cuda_check(status, "cublasLtMatmul");
    by = chosen->by;
    return true;
  }
  /// Is this a product that the library takes wrongly, slowly or not at all? `vector`: a bias, or where sums
  /// go; `aside`: what gelu is taken of, or its slope at.
  template <class Scalar, class Result>
  static bool declines(exec::matrix_products<Scalar, Result> const& p, blas_product const& form,
                       exec::product_epilogue<Scalar, Result> const& e, void const* vector, void* aside) {
    if (std::same_as<Scalar, double> && (aside || vector)) return true;  // documented in part
    if (p.bias && !std::same_as<Scalar, Result>) return true;            // a bias is of the result's type
    if (e.sums && (p.bias || aside)) return true;
    // some kernels of the library read it 16 bytes at a time wherever it lies, and there is no way to say so
    // (pytorch/pytorch#194497)
    if (vector && reinterpret_cast<std::uintptr_t>(vector) % 16) return true;
    return aside &&
           (!std::same_as<Scalar, bfloat16> || aligned(static_cast<Result*>(aside), 0) < 16 || form.ldc % 8);
  }
  template <class Scalar, class Result>
  static cublasLtEpilogue_t epilogue_of(Scalar const* bias, exec::product_epilogue<Scalar, Result> const& e,
                                        bool swapped) {
    if (e.before) return bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
    if (e.slope) return CUBLASLT_EPILOGUE_DGELU;
    if (e.sums) return swapped ? CUBLASLT_EPILOGUE_BGRADB : CUBLASLT_EPILOGUE_BGRADA;
    return bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
  }
  /// Seconds that a call takes within a recording, which is how steps are run. It has been made before.
  template <class Call> double seconds(Call const& call) const {
    constexpr int calls = 8, trials = 3;
    auto const all = exec::detail::recorded(memory_, [&] { for (int k = 0; k < calls; ++k) call(); });
    auto begun = memory_.make_timed_mark(), ended = memory_.make_timed_mark();
    memory_.replay(all);                       // warms up
    double best = 0;
    for (int trial = 0; trial < trials; ++trial) {
      memory_.set(begun);
      memory_.replay(all);
      memory_.set(ended);
      memory_.wait();
      if (double const s = memory_.seconds(begun, ended) / calls; trial == 0 || s < best) best = s;
    }
    return best;
  }
  /// Of the algorithms that do it, and of doing without where something follows the product.
  template <class Compute, class Apart>
  cuda_product_choices::choice fastest(std::vector<algorithm> const& found, Compute const& compute,
                                       bool follows, Apart const& apart) const {
    cuda_product_choices::choice best;
    double least = 0;
    for (algorithm const& a : found) {
      if (compute(a) != CUBLAS_STATUS_SUCCESS) continue;                 // a heuristic may err
      double const s = seconds([&] { cuda_check(compute(a), "cublasLtMatmul"); });
      if (!best.by || s < least) {
        best.by = a;
        least = s;
      }
    }
    if (!follows || !best.by) return best;
    apart();
    best.apart = seconds(apart) < least;
    return best;
  }
  /// Bytes that the address and all that lie `apart` numbers from it are multiples of, at most 16.
  template <class Number> static i64 aligned(Number const* p, i64 apart) {
    std::uintptr_t const low =
        (reinterpret_cast<std::uintptr_t>(p) | static_cast<std::uintptr_t>(apart) * sizeof(Number)) & 15;
    return low ? static_cast<i64>(low & (~low + 1)) : 16;
  }
  /// What the library would take, the best by its own lights first.
  std::vector<algorithm> heuristic(key const& k, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t x,
                                   cublasLtMatrixLayout_t y, cublasLtMatrixLayout_t z) const {
    lt_handle<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy> want;
    cuda_check(cublasLtMatmulPreferenceCreate(want.to()), "cublasLtMatmulPreferenceCreate");
    uint64_t const scratch = k[2] & 1 ? static_cast<uint64_t>(scratch_bytes) : 0;
    auto const say = [&](cublasLtMatmulPreferenceAttributes_t what, auto const& value) {
      cuda_check(cublasLtMatmulPreferenceSetAttribute(want.get(), what, &value, sizeof value),
                 "cublasLtMatmulPreferenceSetAttribute");
    };
    say(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, scratch);
    // none in bf16
    say(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
        static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
    auto const at = [&](int byte) { return static_cast<uint32_t>(k.back() >> 8 * byte & 255); };
    say(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, at(0));
    say(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, at(1));
    say(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, at(3) ? at(3) : at(2));
    say(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, at(2));
    std::array<cublasLtMatmulHeuristicResult_t, cuda_product_choices::candidates> found{};
    int n = 0;
    int const most = choices_->measuring() ? cuda_product_choices::candidates : 1;
    cublasStatus_t const status =
        cublasLtMatmulAlgoGetHeuristic(handle_->get(), desc, x, y, z, z, want.get(), most, found.data(), &n);
    bool const plain = k[15] == CUBLASLT_EPILOGUE_DEFAULT || k[15] == CUBLASLT_EPILOGUE_BIAS;
    if (status != CUBLAS_STATUS_NOT_SUPPORTED && (plain || status != CUBLAS_STATUS_INVALID_VALUE))
      cuda_check(status, "cublasLtMatmulAlgoGetHeuristic");
    std::vector<algorithm> r;
    for (int i = 0; status == CUBLAS_STATUS_SUCCESS && i < n; ++i)
      if (found[idx(i)].state == CUBLAS_STATUS_SUCCESS)
        r.push_back({found[idx(i)].algo});
    return r;
  }
};

}  // namespace detail
}  // namespace tensorpar
