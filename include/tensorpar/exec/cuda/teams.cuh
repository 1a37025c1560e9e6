// tensorpar/exec/cuda/teams.cuh - teams of lanes on a GPU: a block of threads or a warp for each, matrix
// products by cuBLASLt
#pragma once
#include <bit>
#include <tensorpar/exec/cuda/cuda.cuh>
#include <tensorpar/exec/cuda/products.cuh>
#include <tensorpar/exec/teams/teams.hpp>
#include <type_traits>
#include <utility>

namespace tensorpar {

namespace detail {
/// A block of threads, or one of its warps. Its calls are compiled for the host too, where constexpr bodies
/// are checked, and never run there.
template <int Lanes> struct cuda_team {
  static constexpr int lanes = Lanes, warp = 32, warps = Lanes / warp;
  static_assert(warps > 0 && (Lanes & (Lanes - 1)) == 0 && warps <= warp);

  static __host__ __device__ int lane() {
#ifdef __CUDA_ARCH__
    return static_cast<int>(threadIdx.x) % lanes;
#else
    return 0;
#endif
  }
  static __host__ __device__ void meet() {
#ifdef __CUDA_ARCH__
    if constexpr (warps > 1) __syncthreads();
    else __syncwarp();
#endif
  }
  template <class F> __host__ __device__ void each(i64 n, F&& f) const {
    for (i64 i = lane(); i < n; i += lanes) f(i);
    meet();
  }
  template <class Scalar, class F> __host__ __device__ Scalar sum(i64 n, F&& f) const {
    Scalar part(0);
    for (i64 i = lane(); i < n; i += lanes) part += f(i);
    return folded(part, [](Scalar a, Scalar b) { return a + b; });
  }
  template <class Scalar, class F> __host__ __device__ Scalar top(i64 n, F&& f) const {
    Scalar part = f(lane() < n ? lane() : 0);
    for (i64 i = lane() + lanes; i < n; i += lanes) {
      Scalar const x = f(i);
      if (exec::scalar_traits<Scalar>::greater(x, part)) part = x;
    }
    return folded(part, [](Scalar a, Scalar b) { return exec::scalar_traits<Scalar>::greater(b, a) ? b
                                                : a; });
  }
  template <class F> __host__ __device__ void alone(F&& f) const {
    if (lane() == 0) f();
    meet();
  }
  template <int Turns> static constexpr int slots = Turns;
  template <int Turns, class F> __host__ __device__ void turns(i64 n, F&& f) const {
    unrolled([&]<int K>(std::integral_constant<int, K>) {
      if (i64 const i = lane() + K * lanes; i < n) f(i, K);
    }, std::make_integer_sequence<int, Turns>{});
  }
  template <int Turns, class Scalar, class F> __host__ __device__ Scalar sum_turns(i64 n, F&& f) const {
    Scalar part(0);
    turns<Turns>(n, [&](i64 i, int k) { part += f(i, k); });
    return folded(part, [](Scalar a, Scalar b) { return a + b; });
  }

 private:
  /// Turns are numbers that the compiler knows, so that what they index stays in registers.
  template <class F, int... K>
  static __host__ __device__ void unrolled(F&& f, std::integer_sequence<int, K...>) {
    (f(std::integral_constant<int, K>{}), ...);
  }
  /// The number of the lane whose place differs in this bit.
  template <class T> static __host__ __device__ T across(T x, int bit) {
#ifdef __CUDA_ARCH__
    static_assert(sizeof(T) % 4 == 0 && sizeof(T) <= 16);
    struct words {
      unsigned w[sizeof(T) / 4];
    };
    auto all = std::bit_cast<words>(x);
    for (unsigned& w : all.w) w = __shfl_xor_sync(0xffffffffu, w, bit);
    return std::bit_cast<T>(all);
#else
    return x;
#endif
  }
  /// A number for every warp, in the block's shared memory.
  template <class T> static __host__ __device__ T* shared() {
#ifdef __CUDA_ARCH__
    alignas(16) __shared__ unsigned char room[warps * sizeof(T)];
    return reinterpret_cast<T*>(room);
#else
    return nullptr;
#endif
  }
  /// Every lane's number joined, for every lane. Both of a pair join the same two, in the order of their
  /// places: the same bits in all.
  template <class T, class Join> static __host__ __device__ T folded(T part, Join join) {
    auto const with = [&](int bit) {
      T const other = across(part, bit);
      part = lane() & bit ? join(other, part) : join(part, other);
    };
    for (int bit = 1; bit < warp; bit *= 2) with(bit);
    if constexpr (warps > 1) {
      T* const room = shared<T>();
      if (lane() % warp == 0) room[lane() / warp] = part;
      meet();
      part = room[lane() % warps];
      meet();                                  // before the room is used again
      for (int bit = 1; bit < warps; bit *= 2) with(bit);
    }
    return part;
  }
};
/// The i-th group of N neighbours; and what is left over.
template <class F, int N> struct several_at {
  F f;
  constexpr void operator()(i64 i) const { f.template several<N>(i * N); }
};
template <class F> struct from_at {
  F f;
  i64 begin;
  constexpr void operator()(i64 i) const { f(begin + i); }
};
/// Threads of a block in which teams work: one team, or one in each warp.
inline constexpr int team_lanes = 256;
template <int Lanes, class F> __device__ void run_teams(i64 n, F const& f) {
  constexpr int teams = team_lanes / Lanes;
  i64 const step = static_cast<i64>(gridDim.x) * teams;
  for (i64 i = static_cast<i64>(blockIdx.x) * teams + static_cast<int>(threadIdx.x) / Lanes; i < n; i += step)
    f(i, cuda_team<Lanes>{});
}
template <int Lanes, class F> __global__ void team_kernel_of(i64 n, F f) { run_teams<Lanes>(n, f); }
/// With room for so many blocks in every multiprocessor, for teams that are few and should all be there at
/// once.
template <int Lanes, int Blocks, class F>
__global__ void __launch_bounds__(team_lanes, Blocks) team_kernel_beside(i64 n, F f) {
  run_teams<Lanes>(n, f);
}
}  // namespace detail

/// One GPU, or a share of it: models `team_device`. What its stream was given is done in order. Floats: how
/// products of them are computed.
template <float_products Floats = float_products::full> class basic_cuda_teams {
  cuda_memory memory_;
  detail::cuda_products products_;
  void* scratch_ = nullptr;
  static constexpr i64 alignment = 256;

 public:
  using memory = cuda_memory;
  static std::string name() { return "cuda"; }
  static constexpr i64 product_scratch = detail::cuda_products::scratch_bytes + alignment;
  explicit basic_cuda_teams(exec::device_place at) : basic_cuda_teams(cuda_memory(at)) {}
  explicit basic_cuda_teams(cuda_memory m) : memory_(std::move(m)), products_(memory_, Floats) {}
  basic_cuda_teams(cuda_memory m, std::shared_ptr<cuda_product_choices> c)
      : memory_(std::move(m)), products_(memory_, Floats, std::move(c)) {}

  memory device_memory() const { return memory_; }
  /// Precondition: product_scratch bytes of this memory at p.
  basic_cuda_teams with_scratch(void* p) const {
    basic_cuda_teams r = *this;
    auto const at = reinterpret_cast<std::uintptr_t>(p);
    r.scratch_ = reinterpret_cast<void*>((at + alignment - 1) / alignment * alignment);
    return r;
  }
  template <class F> void each(i64 n, F const& f) const {
    if constexpr (requires { F::at_once; }) {
      if (f.aligned()) {
        constexpr int together = F::at_once;
        detail::launch_each(memory_.state(), n / together, detail::several_at<F, together>{f});
        return detail::launch_each(memory_.state(), n % together,
                                   detail::from_at<F>{f, n / together * together});
      }
    }
    detail::launch_each(memory_.state(), n, f);
  }
  /// Where there are enough teams to fill a GPU with warps, the more the longer their lines are, a team is a
  /// warp.
  template <class F> void teams(i64 n, F const& f) const {
    if constexpr (requires { f.length(); })
      if ((n >= 1024 && f.length() <= 512) || (n >= 8192 && f.length() <= 4096))
        return launch_teams<32>(n, f);
    launch_teams<detail::team_lanes>(n, f);
  }
  /// Rows are held by warps where they are many and short, else by blocks, in as few turns as can be: what a
  /// lane holds are registers that other teams do not have.
  template <class F> void teams_holding(i64 n, F const& f) const {
    using exec::detail::in_turns;
    constexpr int block = detail::team_lanes;
    i64 const s = f.stretches();
    if constexpr (F::holds >= 4 && blocks_of<F> == 0)
      if (s > 0 && s <= 4 * 32 && n >= 1024) return launch_teams<32>(n, exec::detail::in_turns<F, 4>{f});
    if constexpr (requires { F::by_warps; })
      if (s > 4 * 32 && s <= F::by_warps * 32 && n >= 1024)
        return launch_teams<32, 3>(n, exec::detail::in_turns<F, F::by_warps>{f});
    if constexpr (F::holds >= 1)
      if (s > 0 && s <= block) return launch_teams<block, blocks_of<F>>(n, exec::detail::in_turns<F, 1>{f});
    if constexpr (F::holds >= 2)
      if (s > block && s <= 2 * block) return launch_teams<block>(n, exec::detail::in_turns<F, 2>{f});
    if constexpr (F::holds >= 4)
      if (s > 2 * block && s <= 4 * block) return launch_teams<block>(n, exec::detail::in_turns<F, 4>{f});
    if constexpr (F::holds >= 8)
      if (s > 4 * block && s <= 8 * block) return launch_teams<block>(n, exec::detail::in_turns<F, 8>{f});
    teams(n, exec::detail::in_turns<F, 0>{f});
  }
  template <class Scalar, class Result> void product(exec::matrix_products<Scalar, Result> const& p) const {
    if (products_.multiply(p, scratch_)) return;
    if (auto q = p; p.bias) {                  // the library adds no bias to doubles
      q.bias = nullptr;
      if (products_.multiply(q, scratch_)) {
        exec::detail::add_bias_at<Scalar, Result> const f{p};
        return each(f.count(), f);
      }
    }
    exec::detail::product_at<Scalar, Result> const f{p};
    each(f.count(), f);
  }
  template <class Scalar, class Result, class Apart>
  void product_with(exec::matrix_products<Scalar, Result> const& p,
                    exec::product_epilogue<Scalar, Result> const& e, Apart const& apart) const {
    if (!products_.multiply(p, e, scratch_, apart)) apart();
  }
  exec::index_fault* fault() const { return memory_.state().fault; }
  /// Kernels may still be writing one: the memory's `wait` throws it.
  void settle() const {}

 private:
  /// How many blocks of it a multiprocessor should have room for; 0: as the compiler sees fit.
  template <class F> static constexpr int blocks_of = [] {
    if constexpr (requires { F::blocks; }) return F::blocks;
    else return 0;
  }();
  template <int Lanes, int Blocks = 0, class F> void launch_teams(i64 n, F const& f) const {
    if (n <= 0) return;
    i64 const each = detail::team_lanes / Lanes, blocks = (n + each - 1) / each, most = i64{1} << 30;
    auto const run = [&](auto* kernel) {
      detail::launch(memory_.state(), kernel, static_cast<unsigned>(blocks < most ? blocks : most),
                     detail::team_lanes, n, f);
    };
    if constexpr (Blocks > 0) run(detail::team_kernel_beside<Lanes, Blocks, F>);
    else run(detail::team_kernel_of<Lanes, F>);
  }
};
using cuda_teams = basic_cuda_teams<>;

namespace compute {
/// Every operator on a GPU: float, double (both by cuBLASLt where the operator is a matrix product) or
/// prime_field (exact).
template <class Scalar, class Own = op::op_set<>> using cuda = teams<Scalar, cuda_teams, Own>;
/// Floats whose products are computed by tensor cores, from operands rounded to 11 bits.
template <class Own = op::op_set<>>
using cuda_tf32 = teams<float, basic_cuda_teams<float_products::tf32>, Own>;
/// Floats, and bf16 where the graph says so (ir/mixed_precision.hpp).
template <class Own = op::op_set<>> using cuda_bf16 = teams<float, cuda_teams, Own, bfloat16>;
}  // namespace compute

}  // namespace tensorpar
