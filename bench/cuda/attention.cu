// bench/cuda/attention.cu - one GPU: attention and its gradient by cuDNN, in one order and not, beside the kernels of teams
#include "operation.cuh"
#include <tensorpar/exec/cudnn/cudnn.cuh>

using namespace tensorpar;

namespace {

template <class Policy> double seconds_of(cuda_memory const& memory, op::any_op const& op, std::vector<shape> const& in) {
  Policy const policy{exec::device_place{}};
  bench::operation<Policy> const o(policy, op, in);
  double const s = bench::seconds(policy.device_memory().stream(), [&] { o.run(); });
  memory.wait();
  return s;
}

}  // namespace

/// Operations of the square, all of it: half of them are masked away.
int main() try {
  if (!cuda_devices()) {
    std::printf("skipped: there is no GPU\n");
    return 77;
  }
  cuda_memory const memory(0);
  for (auto const& [heads, name] : std::vector<std::pair<i64, std::string>>{{12, "124M"}, {25, "1.5B"}}) {
    i64 const batch = 16, length = 1024;
    shape x{dim(batch), dim(length), dim(heads * 64)};
    x.type = dtype::bf16;
    double const square = static_cast<double>(batch * heads * length * length * 64);
    op::any_op const forward(attention{heads, true}), back(attention_grad{heads, true}), from_lse(op::attention_grad_from_lse{heads, true});
    shape const lse{dim(batch), dim(heads), dim(length)};
    shape x3 = x;
    x3.d[2] = dim(3 * x.d[2].n);
    op::any_op const packed(packed_attention{heads, true}), packed_from_lse(packed_attention_grad_from_lse{{heads, true}});
    std::string const of = ", causal, bf16, GPT-2 " + name + ", 16 sequences";
    double const kernels = seconds_of<compute::cuda_bf16<>>(memory, forward, {x, x, x}),
                 kernels_back = seconds_of<compute::cuda_bf16<>>(memory, back, {x, x, x, x});
    bench::row("attention" + of, "operations per second, beside the kernels of teams",
               4 * square / seconds_of<compute::cudnn_bf16<>>(memory, forward, {x, x, x}), "FLOP/s", 4 * square / kernels);
    bench::row("attention of one packed tensor" + of, "operations per second, beside the kernels of teams",
               4 * square / seconds_of<compute::cudnn_bf16<>>(memory, packed, {x3}), "FLOP/s", 4 * square / kernels);
    bench::row("gradient of attention in one order" + of, "operations per second, beside the kernels of teams",
               10 * square / seconds_of<compute::cudnn_bf16<>>(memory, back, {x, x, x, x}), "FLOP/s", 10 * square / kernels_back);
    bench::row("gradient of attention" + of, "operations per second, beside the kernels of teams",
               10 * square / seconds_of<compute::cudnn_bf16<false>>(memory, back, {x, x, x, x}), "FLOP/s", 10 * square / kernels_back);
    bench::row("gradient of attention from its log-sum-exps" + of, "operations per second, beside the kernels of teams",
               10 * square / seconds_of<compute::cudnn_bf16<false>>(memory, from_lse, {x, x, x, x, x, lse}), "FLOP/s",
               10 * square / kernels_back);
    bench::row("gradient of attention of one packed tensor from its log-sum-exps" + of,
               "operations per second, beside the kernels of teams",
               10 * square / seconds_of<compute::cudnn_bf16<false>>(memory, packed_from_lse, {x, x3, x, lse}), "FLOP/s",
               10 * square / kernels_back);
  }
  return 0;
} catch (std::exception const& e) {
  std::printf("bench/cuda: %s\n", e.what());
  return 1;
}
