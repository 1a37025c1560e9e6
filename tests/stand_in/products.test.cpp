// tests/stand_in/products.test.cpp - the cuBLASLt that is played: what it computes, and everything that it does not take
#include <cublasLt.h>
#include <cmath>
#include <cuda_runtime.h>
#include <doctest/doctest.h>
#include <random>

#include "gpu.hpp"

using namespace gpu_tests;

namespace {

/// One product with everything that goes into it, to be spoilt. D [m, n] = alpha A [m, k] B [k, n] + beta C, all by columns.
struct product {
  std::uint64_t m = 5, n = 4, k = 3;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cudaDataType_t scale = CUDA_R_32F, a_type = CUDA_R_32F, b_type = CUDA_R_32F, d_type = CUDA_R_32F;
  cublasOperation_t op_a = CUBLAS_OP_N, op_b = CUBLAS_OP_N;
  std::int64_t spare = 0;                                  // between columns
  std::int32_t batch = 1, batch_b = 1;
  std::int64_t apart_d = -1;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  std::int32_t bias_type = -1;
  void* aux = nullptr;
  std::int64_t aux_ld = 0;
  std::uint32_t promised = 16;
  std::uint64_t workspace = 0;
  std::size_t given = 0;
  std::ptrdiff_t shift_a = 0, shift_bias = 0, shift_workspace = 0;      // bytes
  bool another_problem = false;
  float alpha = 1, beta = 0;
  double wide_alpha = 1, wide_beta = 0;
  cublasStatus_t found = CUBLAS_STATUS_SUCCESS;

  std::int64_t ld_a() const { return static_cast<std::int64_t>(op_a == CUBLAS_OP_N ? m : k) + spare; }
  std::int64_t ld_b() const { return static_cast<std::int64_t>(op_b == CUBLAS_OP_N ? k : n) + spare; }
  std::int64_t ld_d() const { return static_cast<std::int64_t>(m) + spare; }
  std::int64_t size_a() const { return ld_a() * static_cast<std::int64_t>(op_a == CUBLAS_OP_N ? k : m); }
  std::int64_t size_b() const { return ld_b() * static_cast<std::int64_t>(op_b == CUBLAS_OP_N ? n : k); }
  std::int64_t size_d() const { return ld_d() * static_cast<std::int64_t>(n); }

  /// The heuristic's answer, and where that is success the product's.
  cublasStatus_t run(void const* a, void const* b, void* d, void const* bias = nullptr, void* room = nullptr) {
    cublasLtHandle_t handle = nullptr;
    cublasLtMatmulDesc_t desc = nullptr;
    cublasLtMatrixLayout_t x = nullptr, y = nullptr, z = nullptr;
    cublasLtMatmulPreference_t want = nullptr;
    REQUIRE(cublasLtCreate(&handle) == CUBLAS_STATUS_SUCCESS);
    REQUIRE(cublasLtMatmulDescCreate(&desc, compute, scale) == CUBLAS_STATUS_SUCCESS);
    auto const layout = [&](cublasLtMatrixLayout_t& l, cudaDataType_t t, std::uint64_t rows, std::uint64_t cols, std::int64_t ld,
                            std::int32_t count, std::int64_t apart) {
      REQUIRE(cublasLtMatrixLayoutCreate(&l, t, rows, cols, ld) == CUBLAS_STATUS_SUCCESS);
      auto const set = [&](cublasLtMatrixLayoutAttribute_t what, auto const& v) {
        REQUIRE(cublasLtMatrixLayoutSetAttribute(l, what, &v, sizeof v) == CUBLAS_STATUS_SUCCESS);
      };
      set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, count);
      set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, apart);
    };
    layout(x, a_type, op_a == CUBLAS_OP_N ? m : k, op_a == CUBLAS_OP_N ? k : m, ld_a(), batch, size_a());
    layout(y, b_type, op_b == CUBLAS_OP_N ? k : n, op_b == CUBLAS_OP_N ? n : k, ld_b(), batch_b, size_b());
    layout(z, d_type, m, n, ld_d(), batch, apart_d < 0 ? size_d() : apart_d);
    auto const say = [&](cublasLtMatmulDescAttributes_t what, auto const& v) {
      REQUIRE(cublasLtMatmulDescSetAttribute(desc, what, &v, sizeof v) == CUBLAS_STATUS_SUCCESS);
    };
    say(CUBLASLT_MATMUL_DESC_TRANSA, op_a);
    say(CUBLASLT_MATMUL_DESC_TRANSB, op_b);
    say(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    say(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, bias_type);
    say(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    say(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, static_cast<void const*>(aux));
    say(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, aux_ld);
    REQUIRE(cublasLtMatmulPreferenceCreate(&want) == CUBLAS_STATUS_SUCCESS);
    auto const prefer = [&](cublasLtMatmulPreferenceAttributes_t what, auto const& v) {
      REQUIRE(cublasLtMatmulPreferenceSetAttribute(want, what, &v, sizeof v) == CUBLAS_STATUS_SUCCESS);
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace);
    for (int what = CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES; what <= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES; ++what)
      prefer(static_cast<cublasLtMatmulPreferenceAttributes_t>(what), promised);
    cublasLtMatmulHeuristicResult_t result{};
    int n_found = 0;
    found = cublasLtMatmulAlgoGetHeuristic(handle, desc, x, y, z, z, want, 1, &result, &n_found);
    cublasStatus_t r = found;
    if (found == CUBLAS_STATUS_SUCCESS) {
      auto const moved = [](void const* p, std::ptrdiff_t by) {
        return p ? const_cast<std::byte*>(static_cast<std::byte const*>(p)) + by : nullptr;
      };
      if (shift_bias) say(CUBLASLT_MATMUL_DESC_BIAS_POINTER, moved(bias, shift_bias));
      if (another_problem) say(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, std::int64_t{1});
      bool const wide = scale == CUDA_R_64F;
      void const* const one = wide ? static_cast<void const*>(&wide_alpha) : &alpha;
      void const* const before = wide ? static_cast<void const*>(&wide_beta) : &beta;
      void* const there = moved(room, shift_workspace);
      r = cublasLtMatmul(handle, desc, one, moved(a, shift_a), x, b, y, before, d, z, d, z, &result.algo, there, given, nullptr);
    }
    CHECK(cublasLtMatmulPreferenceDestroy(want) == CUBLAS_STATUS_SUCCESS);
    for (auto l : {x, y, z}) CHECK(cublasLtMatrixLayoutDestroy(l) == CUBLAS_STATUS_SUCCESS);
    CHECK(cublasLtMatmulDescDestroy(desc) == CUBLAS_STATUS_SUCCESS);
    CHECK(cublasLtDestroy(handle) == CUBLAS_STATUS_SUCCESS);
    return r;
  }
};

/// Numbers of one type, small and whole so that every type has them.
template <class T> std::vector<T> some(std::int64_t n, std::mt19937& draw) {
  std::vector<T> r(static_cast<std::size_t>(n));
  for (T& x : r) x = static_cast<T>(static_cast<int>(draw() % 7) - 3);
  return r;
}
std::uint16_t narrowed(float x) { return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x) >> 16); }

/// The same by the definition, in numbers of type T, and whether they agree.
template <class T> void check_numbers(product p, bool with_bias, T beta) {
  gpus const g;
  std::mt19937 draw(4);
  auto const a = some<T>(p.size_a() * p.batch, draw), b = some<T>(p.size_b() * p.batch, draw);
  auto const bias = some<T>(static_cast<std::int64_t>(p.m), draw);
  auto want = some<T>(p.size_d() * p.batch, draw);
  numbers<T> x(a.size()), y(b.size()), z(want.size()), v(bias.size());
  x.write(a);
  y.write(b);
  v.write(bias);
  if (beta == T(0)) std::fill(want.begin(), want.end(), std::numeric_limits<T>::quiet_NaN());      // must not be read
  z.write(want);
  p.beta = static_cast<float>(beta);
  p.wide_beta = beta;
  p.alpha = 2;
  p.wide_alpha = 2;
  if (with_bias) p.epilogue = CUBLASLT_EPILOGUE_BIAS;
  p.promised = 8;
  REQUIRE(p.run(x.at(), y.at(), z.at(), with_bias ? v.at() : nullptr) == CUBLAS_STATUS_SUCCESS);
  for (std::int64_t u = 0; u < p.batch; ++u)
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(p.m); ++i)
      for (std::int64_t j = 0; j < static_cast<std::int64_t>(p.n); ++j) {
        T s(0);
        for (std::int64_t l = 0; l < static_cast<std::int64_t>(p.k); ++l)
          s += a[static_cast<std::size_t>(u * p.size_a() + (p.op_a == CUBLAS_OP_N ? i + l * p.ld_a() : l + i * p.ld_a()))] *
               b[static_cast<std::size_t>(u * p.size_b() + (p.op_b == CUBLAS_OP_N ? l + j * p.ld_b() : j + l * p.ld_b()))];
        T& c = want[static_cast<std::size_t>(u * p.size_d() + i + j * p.ld_d())];
        c = 2 * s + (beta == T(0) ? T(0) : beta * c) + (with_bias ? bias[static_cast<std::size_t>(i)] : T(0));
      }
  auto const got = z.read();
  for (std::size_t i = 0; i < got.size(); ++i) CHECK((got[i] == want[i] || (std::isnan(got[i]) && std::isnan(want[i]))));
}

}  // namespace

TEST_CASE("products are what their definition says: transposed, with gaps, in batches, added to what was there, with biases") {
  for (cublasOperation_t op_a : {CUBLAS_OP_N, CUBLAS_OP_T})
    for (cublasOperation_t op_b : {CUBLAS_OP_N, CUBLAS_OP_T})
      for (std::int64_t spare : {0, 2})
        for (std::int32_t batch : {1, 3}) {
          product p;
          p.op_a = op_a;
          p.op_b = op_b;
          p.spare = spare;
          p.batch = p.batch_b = batch;
          check_numbers<float>(p, false, 0);
          check_numbers<float>(p, true, 3);
          p.compute = CUBLAS_COMPUTE_64F;
          p.scale = p.a_type = p.b_type = p.d_type = CUDA_R_64F;
          check_numbers<double>(p, false, 3);
        }
}

TEST_CASE("gelu with what it is taken of, times its slope, and sums of either operand, beside products") {
  gpus const g;
  product p;                                               // [8, 4] = [8, 3] [3, 4]
  p.m = 8;
  p.promised = 4;
  std::mt19937 draw(6);
  auto const a = some<float>(24, draw), b = some<float>(12, draw), bias = some<float>(8, draw), at = some<float>(32, draw);
  numbers<float> x(24), y(12), z(32), aux(32), v(8);
  x.write(a);
  y.write(b);
  std::vector<double> want(32);
  for (std::size_t j = 0; j < 4; ++j)
    for (std::size_t i = 0; i < 8; ++i)
      for (std::size_t l = 0; l < 3; ++l) want[i + 8 * j] += static_cast<double>(a[i + 8 * l]) * static_cast<double>(b[l + 3 * j]);
  auto const gelu_of = [](double t) { return 0.5 * t * (1 + std::tanh(0.7978845608028654 * (t + 0.044715 * t * t * t))); };
  p.aux = aux.at();
  p.aux_ld = 8;
  for (bool biased : {false, true}) {
    v.write(bias);
    p.epilogue = biased ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
    REQUIRE(p.run(x.at(), y.at(), z.at(), v.at()) == CUBLAS_STATUS_SUCCESS);
    for (std::size_t i = 0; i < 32; ++i) {
      double const t = want[i] + (biased ? static_cast<double>(bias[i % 8]) : 0);
      CHECK(static_cast<double>(aux.read()[i]) == t);
      CHECK(std::abs(static_cast<double>(z.read()[i]) - gelu_of(t)) < 1e-5);
    }
  }
  aux.write(at);
  p.epilogue = CUBLASLT_EPILOGUE_DGELU;
  REQUIRE(p.run(x.at(), y.at(), z.at()) == CUBLAS_STATUS_SUCCESS);
  for (std::size_t i = 0; i < 32; ++i) {
    double const t = static_cast<double>(at[i]), slope = (gelu_of(t + 1e-4) - gelu_of(t - 1e-4)) / 2e-4;
    CHECK(std::abs(static_cast<double>(z.read()[i]) - want[i] * slope) < 1e-3);
  }
  for (auto [epilogue, n] : {std::pair{CUBLASLT_EPILOGUE_BGRADA, std::size_t{8}}, std::pair{CUBLASLT_EPILOGUE_BGRADB, std::size_t{4}}}) {
    p.epilogue = epilogue;
    v.write(std::vector<float>(8, 77));
    REQUIRE(p.run(x.at(), y.at(), z.at(), v.at()) == CUBLAS_STATUS_SUCCESS);
    for (std::size_t i = 0; i < 8; ++i) {
      float sum = 0;
      for (std::size_t l = 0; l < 3; ++l) sum += n == 8 ? a[i + 8 * l] : i < 4 ? b[l + 3 * i] : 0;
      CHECK(v.read()[i] == (i < n ? sum : 77));
    }
    CHECK(p.run(x.at(), y.at(), z.at(), nullptr) == CUBLAS_STATUS_INVALID_VALUE);
  }
  p.epilogue = CUBLASLT_EPILOGUE_GELU_AUX;
  p.aux_ld = 12;
  CHECK(p.run(x.at(), y.at(), z.at()) == CUBLAS_STATUS_INVALID_VALUE);
  p.aux_ld = 0;
  CHECK(p.run(x.at(), y.at(), z.at()) == CUBLAS_STATUS_INVALID_VALUE);
  p.aux_ld = 8;
  p.aux = aux.at() + 1;
  CHECK(p.run(x.at(), y.at(), z.at()) == CUBLAS_STATUS_INVALID_VALUE);
  p.aux = nullptr;
  CHECK(p.run(x.at(), y.at(), z.at()) == CUBLAS_STATUS_INVALID_VALUE);
  p.aux = aux.at();
  p.batch = p.batch_b = 2;
  CHECK(p.run(x.at(), y.at(), z.at()) == CUBLAS_STATUS_NOT_SUPPORTED);
}

TEST_CASE("bf16 is rounded once, tf32 before") {
  gpus const g;
  numbers<std::uint16_t> x(8), y(8), z(8);
  product p;
  p.m = p.n = 1;
  p.k = 2;
  p.a_type = p.b_type = p.d_type = CUDA_R_16BF;
  x.write({narrowed(1), narrowed(1)});
  y.write({narrowed(256), narrowed(1)});                   // 257 has one bit too many
  REQUIRE(p.run(x.at(), y.at(), z.at()) == CUBLAS_STATUS_SUCCESS);
  CHECK(z.read()[0] == narrowed(256));
  numbers<float> f(8), h(8), r(8);
  p.a_type = p.b_type = CUDA_R_16BF;
  p.d_type = CUDA_R_32F;
  REQUIRE(p.run(x.at(), y.at(), r.at()) == CUBLAS_STATUS_SUCCESS);
  CHECK(r.read()[0] == 257);
  p.a_type = p.b_type = CUDA_R_32F;
  f.write({1, 0});
  h.write({1 + 1.0f / 4096, 0});
  for (auto [how, want] : {std::pair{CUBLAS_COMPUTE_32F, 1 + 1.0f / 4096}, std::pair{CUBLAS_COMPUTE_32F_FAST_TF32, 1.0f}}) {
    p.compute = how;
    REQUIRE(p.run(f.at(), h.at(), r.at()) == CUBLAS_STATUS_SUCCESS);
    CHECK(r.read()[0] == want);
  }
}

TEST_CASE("what the library does not take is refused, each thing with its status") {
  gpus const g;
  numbers<double> a(256), b(256), d(256), bias(256), room(1024);
  auto const with = [&](auto&& spoil) {
    product p;
    spoil(p);
    return p.run(a.at(), b.at(), d.at(), bias.at(), room.at());
  };
  CHECK(with([](product&) {}) == CUBLAS_STATUS_SUCCESS);
  // types
  CHECK(with([](product& p) { p.a_type = CUDA_R_64F; }) == CUBLAS_STATUS_NOT_SUPPORTED);
  CHECK(with([](product& p) { p.d_type = CUDA_R_16BF; }) == CUBLAS_STATUS_NOT_SUPPORTED);
  CHECK(with([](product& p) { p.scale = CUDA_R_64F; }) == CUBLAS_STATUS_NOT_SUPPORTED);
  CHECK(with([](product& p) { p.compute = CUBLAS_COMPUTE_64F; }) == CUBLAS_STATUS_NOT_SUPPORTED);
  CHECK(with([](product& p) { p.a_type = p.b_type = CUDA_R_16F; }) == CUBLAS_STATUS_NOT_SUPPORTED);
  CHECK(with([](product& p) {
          p.compute = CUBLAS_COMPUTE_64F;
          p.scale = p.a_type = p.b_type = p.d_type = CUDA_R_64F;
          p.epilogue = CUBLASLT_EPILOGUE_BIAS;
        }) == CUBLAS_STATUS_NOT_SUPPORTED);
  CHECK(with([](product& p) {
          p.epilogue = CUBLASLT_EPILOGUE_BIAS;
          p.bias_type = CUDA_R_16BF;
        }) == CUBLAS_STATUS_NOT_SUPPORTED);
  CHECK(with([](product& p) { p.epilogue = CUBLASLT_EPILOGUE_RELU; }) == CUBLAS_STATUS_NOT_SUPPORTED);
  // sizes
  CHECK(with([](product& p) { p.spare = -1; }) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(with([](product& p) { p.k = 0; }) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(with([](product& p) { p.batch = 2; }) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(with([](product& p) { p.batch = p.batch_b = 2; }) == CUBLAS_STATUS_SUCCESS);
  CHECK(with([](product& p) {
          p.batch = p.batch_b = 2;
          p.apart_d = 19;
        }) == CUBLAS_STATUS_INVALID_VALUE);
  // promises
  CHECK(with([](product& p) { p.shift_a = 4; }) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(with([](product& p) {
          p.shift_a = 4;
          p.promised = 4;
        }) == CUBLAS_STATUS_SUCCESS);
  CHECK(with([](product& p) { p.promised = 3; }) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(with([](product& p) { p.epilogue = CUBLASLT_EPILOGUE_BIAS; }) == CUBLAS_STATUS_SUCCESS);
  CHECK(with([](product& p) {
          p.epilogue = CUBLASLT_EPILOGUE_BIAS;
          p.shift_bias = 4;
        }) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(with([](product& p) { p.another_problem = true; }) == CUBLAS_STATUS_INVALID_VALUE);
  // the workspace
  CHECK(with([](product& p) { p.workspace = p.given = 4096; }) == CUBLAS_STATUS_SUCCESS);
  CHECK(with([](product& p) { p.workspace = 4096; }) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(with([](product& p) {
          p.workspace = p.given = 4096;
          p.shift_workspace = 16;
        }) == CUBLAS_STATUS_INVALID_VALUE);
  // attributes of the wrong size, and what there is none of
  cublasLtMatmulDesc_t desc = nullptr;
  REQUIRE(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F) == CUBLAS_STATUS_SUCCESS);
  std::int64_t const eight = 1;
  CHECK(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &eight, sizeof eight) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(cublasLtMatmulDescDestroy(desc) == CUBLAS_STATUS_SUCCESS);
  CHECK(cublasLtMatmulDescDestroy(nullptr) == CUBLAS_STATUS_INVALID_VALUE);
}

TEST_CASE("operands that reach beyond their memory, a workspace that is written, and a GPU that fell off") {
  gpus const g;
  numbers<float> a(15), b(12), d(20), room(1024);
  a.write(std::vector<float>(15, 1));
  b.write(std::vector<float>(12, 1));
  product p;
  p.workspace = p.given = 4096;
  room.write(std::vector<float>(1024, 1));
  CHECK(p.run(a.at(), b.at(), d.at(), nullptr, room.at()) == CUBLAS_STATUS_SUCCESS);
  CHECK(d.read() == std::vector<float>(20, 3));
  CHECK(std::isnan(room.read()[0]));
  p.k = 4;
  CHECK(p.run(a.at(), b.at(), d.at(), nullptr, room.at()) == CUBLAS_STATUS_SUCCESS);
  CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
  CHECK(g.complained("reach beyond their memory"));
  g.again();
  g.m.fall_off(0);
  cublasLtHandle_t h = nullptr;
  CHECK(cublasLtCreate(&h) == CUBLAS_STATUS_NOT_INITIALIZED);
}
