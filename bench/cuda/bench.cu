// bench/cuda/bench.cu - one GPU: memory-bound operators beside the speed of a copy, matrix products beside cuBLASLt called with scratch
#include "operation.cuh"

using namespace tensorpar;

namespace {

using policy_type = compute::cuda_bf16<>;
using bench::operation;
using bench::row;
using bench::seconds;

/// cuBLASLt by itself: y = x w^T of bf16 [n, n] matrices, all that can be prepared is.
double direct_seconds(cuda_memory const& memory, i64 n) {
  exec::detail::arena_memory<cuda_memory> const room(3 * n * n * 2, memory), scratch(i64{32} << 20, memory);
  bench::fill(memory, room.data(), 2 * n * n * 2);
  std::byte *const x = room.data(), *const w = x + n * n * 2, *const y = w + n * n * 2;
  auto const size = static_cast<uint64_t>(n);
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t desc = nullptr;
  cublasLtMatrixLayout_t matrix = nullptr;
  cublasLtMatmulPreference_t want = nullptr;
  cuda_check(cublasLtCreate(&handle), "cublasLtCreate");
  cuda_check(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
  cublasOperation_t const transposed = CUBLAS_OP_T;
  cuda_check(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed), "TRANSA");
  cuda_check(cublasLtMatrixLayoutCreate(&matrix, CUDA_R_16BF, size, size, n), "cublasLtMatrixLayoutCreate");
  cuda_check(cublasLtMatmulPreferenceCreate(&want), "cublasLtMatmulPreferenceCreate");
  uint64_t const most = uint64_t{32} << 20;
  cuda_check(cublasLtMatmulPreferenceSetAttribute(want, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof most), "WORKSPACE");
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  cuda_check(cublasLtMatmulAlgoGetHeuristic(handle, desc, matrix, matrix, matrix, matrix, want, 1, &found, &count), "heuristic");
  float const one = 1, zero = 0;
  double const s = seconds(memory.stream(), [&] {
    cuda_check(cublasLtMatmul(handle, desc, &one, w, matrix, x, matrix, &zero, y, matrix, y, matrix, &found.algo, scratch.data(),
                              static_cast<std::size_t>(most), memory.stream()), "cublasLtMatmul");
  });
  cublasLtMatmulPreferenceDestroy(want);
  cublasLtMatrixLayoutDestroy(matrix);
  cublasLtMatmulDescDestroy(desc);
  cublasLtDestroy(handle);
  return s;
}

/// What a layer of GPT-2 1.5B does on 16,384 tokens in one pass, beside the same in two.
void fused_rows(cuda_memory const& memory) {
  auto const half = [](shape const& s) { return s.of(dtype::bf16); };
  shape const x = half({16384, 1600}), y = half({16384, 6400}), up = half({6400, 1600}), down = half({1600, 6400}), b = half({6400}),
              c = half({1600}), sum{6400, 1600};
  contraction const to_x("0o,oi->0i"), to_w("0o,0i->oi");
  struct pair {
    char const* name;
    op::any_op both;
    std::vector<shape> in;
    op::any_op first;
    std::vector<shape> of_first;
    op::any_op then;
    std::vector<shape> of_then;
    bool wide;
  };
  for (bool measured : {false, true}) {
    auto const choices = std::make_shared<cuda_product_choices>();
    policy_type const policy{cuda_teams(memory, choices)};
    for (pair const& p : std::vector<pair>{
             {"linear with gelu", op::linear_with{true, true, false}, {x, up, b}, linear{6400}, {x, up, b}, gelu{}, {y}, false},
             {"linear with a sum", op::linear_with{true, false, true}, {y, down, c, x}, linear{1600}, {y, down, c}, add{}, {x, x}, false},
             {"gradient with gelu's slope", op::contraction_with{to_x, true, false, false}, {x, down, y}, to_x, {x, down}, gelu_grad{},
              {y, y}, false},
             {"gradient with a sum", op::contraction_with{to_x, false, true, false}, {y, up, x}, to_x, {y, up}, add{}, {x, x}, false},
             {"weights' gradient with a sum", op::contraction_with{to_w, false, true, false}, {y, x, sum}, to_w, {y, x}, add{}, {sum, sum},
              true},
             {"weights' gradient with the bias'", op::contraction_with{to_w, false, false, true}, {y, x}, to_w, {y, x},
              contraction("0o->o"), {y}, true},
             {"norm's gradient with a sum", op::norm_grads{1e-5, true, true, false, false}, {x, x, c, x}, layernorm_grad_x{}, {x, x, c},
              add{}, {x, x}, false},
             {"norm's gradients by x and gamma", op::norm_grads{1e-5, true, false, true, false}, {x, x, c}, layernorm_grad_x{}, {x, x, c},
              layernorm_grad_gamma{}, {x, x}, false}}) {
      choices->measure(measured);
      operation const both(policy, p.both, p.in, p.wide), first(policy, p.first, p.of_first, p.wide),
          then(policy, p.then, p.of_then, p.wide);
      both.run();
      first.run();
      choices->measure(false);
      double const fused = seconds(memory.stream(), [&] { both.run(); });
      double const apart = seconds(memory.stream(), [&] { first.run(); then.run(); });
      row(p.name + std::string(measured ? ", as measured" : ", by the heuristic"), "seconds, beside its two parts", fused, "s", apart);
    }
  }
}

double copy_speed(cuda_memory const& memory) {
  i64 const n = i64{1} << 30;
  exec::detail::arena_memory<cuda_memory> const a(n, memory), b(n, memory);
  double const s = seconds(memory.stream(), [&] {
    cuda_check(cudaMemcpyAsync(b.data(), a.data(), static_cast<std::size_t>(n), cudaMemcpyDeviceToDevice, memory.stream()), "cudaMemcpy");
  });
  return 2.0 * static_cast<double>(n) / s;
}

}  // namespace

int main() try {
  if (!cuda_devices()) {
    std::printf("skipped: there is no GPU\n");
    return 77;
  }
  cuda_memory const memory(0);
  policy_type const policy{cuda_teams(memory)};
  double const copy = copy_speed(memory);
  row("copy of 1 GiB", "bytes per second", copy, "B/s", 0);
  shape const square{8192, 8192}, vector{8192};
  struct named {
    char const* name;
    op::any_op op;
    std::vector<shape> in;
  };
  for (named const& x : std::vector<named>{{"relu", relu{}, {square}},
                                           {"gelu", gelu{}, {square}},
                                           {"add", add{}, {square, square}},
                                           {"softmax", softmax{}, {square}},
                                           {"layernorm", layernorm{}, {square, vector, vector}},
                                           {"layernorm_grad_x", layernorm_grad_x{}, {square, square, vector}},
                                           {"layernorm_grad_gamma", layernorm_grad_gamma{}, {square, square}},
                                           {"transpose", transpose{0, 1}, {square}},
                                           {"adamw_update", adamw_update{}, {square, square, square, square}},
                                           {"square_sum", square_sum{}, {square}}}) {
    operation const o(policy, x.op, x.in);
    row(x.name, "bytes per second", o.bytes() / seconds(memory.stream(), [&] { o.run(); }), "B/s", copy);
  }
  for (i64 n : {1024, 4096, 8192}) {
    operation const o(policy, linear{n, false}, {{dim(n), dim(n)}, {dim(n), dim(n)}});
    double const work = 2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
    row("linear, fp32, " + std::to_string(n) + " cubed", "operations per second", work / seconds(memory.stream(), [&] { o.run(); }),
        "FLOP/s", 0);
  }
  auto const half = [](shape const& s) { return s.of(dtype::bf16); };
  for (named const& x : std::vector<named>{
           {"gelu", gelu{}, {half(square)}},
           {"gelu_grad", gelu_grad{}, {half(square), half(square)}},
           {"add", add{}, {half(square), half(square)}},
           {"softmax", softmax{}, {half(square)}},
           {"layernorm", layernorm{}, {half(square), half(vector), half(vector)}},
           {"layernorm_grad_x", layernorm_grad_x{}, {half(square), half(square), half(vector)}},
           {"layernorm_grad_gamma", layernorm_grad_gamma{}, {half(square), half(square)}},
           {"bias gradient", contraction("0o->o"), {half(square)}},
           {"adamw with master", with_master<adamw_update>{}, {half(square), square, square, square, square}}}) {
    operation const o(policy, x.op, x.in);
    row(std::string(x.name) + ", bf16", "bytes per second", o.bytes() / seconds(memory.stream(), [&] { o.run(); }), "B/s", copy);
  }
  for (i64 n : {1024, 4096, 8192}) {
    operation const o(policy, linear{n, false}, {half({dim(n), dim(n)}), half({dim(n), dim(n)})});
    double const work = 2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
    double const direct = direct_seconds(memory, n), own = seconds(memory.stream(), [&] { o.run(); });
    row("linear, bf16, " + std::to_string(n) + " cubed", "operations per second, beside cuBLASLt called directly", work / own, "FLOP/s",
        work / direct);
  }
  fused_rows(memory);
  memory.wait();
  return 0;
} catch (std::exception const& e) {
  std::printf("bench/cuda: %s\n", e.what());
  return 1;
}
