// tensorpar/exec/cudnn/cudnn.cuh - a GPU on which cuDNN does whole operators: attention in bf16, convolutions
#pragma once
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <tensorpar/exec/cuda/teams.cuh>
#include <tensorpar/exec/cudnn/attention_rooms.hpp>
#include <tensorpar/exec/cudnn/convolution_graphs.hpp>
#include <tensorpar/exec/cudnn/plan.cuh>

namespace tensorpar {

namespace detail {

/// One logical device's cuDNN; copies share handle and plans, which are made when they are first asked for.
class cudnn_library {
  using key = std::array<i64, 16>;
  struct shared {
    cudnnHandle_t handle = nullptr;
    std::mutex lock;
    // nothing: cuDNN has no way within the limits
    std::map<key, std::optional<cudnn_plan>> plans;
    ~shared() {
      plans.clear();
      if (handle) cudnnDestroy(handle);
    }
  };
  cuda_memory memory_;
  std::shared_ptr<shared> shared_ = std::make_shared<shared>();

 public:
  explicit cudnn_library(cuda_memory m) : memory_(std::move(m)) {}
  /// Precondition: a plan has been asked for.
  cudnnHandle_t handle() const { return shared_->handle; }
  /// The plan of make(), a graph that the key says all about; null: there is none.
  template <class Make>
  cudnn_plan const* plan(key const& k, cudnn_limits const& most, Make const& make) const {
    memory_.state().enter();
    std::lock_guard const held(shared_->lock);
    if (!shared_->handle) {
      cudnn_check(cudnnCreate(&shared_->handle), "cudnnCreate");
      cudnn_check(cudnnSetStream(shared_->handle, memory_.stream()), "cudnnSetStream");
    }
    auto i = shared_->plans.find(k);
    if (i == shared_->plans.end())
      i = shared_->plans.emplace(k, cudnn_plan::choose(make(), cudnn_target(shared_->handle), most)).first;
    return i->second ? &*i->second : nullptr;
  }
  /// Before 9.15.1 cuDNN's gradients of attention are right where keys come in whole tiles, as NVIDIA's own
  /// front end has it; what runs may be older than the header.
  static bool good_at_gradients(i64 keys) {
    std::size_t const v = cudnnGetVersion();
    return v > 91500 || (keys % 128 == 0 && v != 91000 && v != 91001);
  }
  /// From compute capability 10 on, a fixed order of sums needs more than the form of the graph.
  bool orders_sums() const {
    int major = 0;
    cuda_check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, memory_.gpu()),
               "cudaDeviceGetAttribute");
    return major < 10;
  }
};

template <class Scalar> struct widen_at {
  Scalar const* x;
  computed<Scalar>* y;
  constexpr void operator()(i64 i) const { y[i] = x[i]; }
};

}  // namespace detail

/// A GPU's teams of lanes, with cuDNN (9.8 or newer) for attention in bf16 (flash attention: scores are never
/// written down) and for convolutions of float and bf16. Other operators, and sizes that cuDNN refuses, have
/// the kernels of teams. Floats: see basic_cuda_teams; convolutions of float are rounded only where it says
/// tf32. InOrder: equal calls give equal bits; else the gradients of attention's queries are added up by
/// whoever comes first, which takes less time and memory.
/// Attention is the kernels' where a causal block begins with a later query. So is its gradient, and where
/// there is one key, where a causal block has fewer queries than keys, before cuDNN 9.15.1 where keys are no
/// multiple of 128, and, in one order, from compute capability 10. Scratch: bytes that the gradient of
/// attention may take, unless one batch element takes more; with fewer it goes in more turns. Where cuDNN
/// compiles kernels, the first call of a shape takes up to a second.
template <float_products Floats = float_products::full, bool InOrder = true, i64 Scratch = i64{256} << 20>
class basic_cudnn_teams : public basic_cuda_teams<Floats> {
  using base = basic_cuda_teams<Floats>;
  using rooms_of = detail::attention_rooms;
  detail::cudnn_library library_;

  basic_cudnn_teams(base b, detail::cudnn_library l) : base(std::move(b)), library_(std::move(l)) {}

 public:
  /// By all that scratch depends on.
  static std::string name() {
    return std::string("cudnn") + (Floats == float_products::full ? "" : " with rounded products") +
           (InOrder ? "" : " in any order") + ", " + std::to_string(Scratch) + " bytes at most";
  }
  explicit basic_cudnn_teams(exec::device_place at) : basic_cudnn_teams(cuda_memory(at)) {}
  explicit basic_cudnn_teams(cuda_memory m) : base(std::move(m)), library_(base::device_memory()) {}
  basic_cudnn_teams(cuda_memory m, std::shared_ptr<cuda_product_choices> c)
      : base(std::move(m), std::move(c)), library_(base::device_memory()) {}
  basic_cudnn_teams with_scratch(void* p) const { return {base::with_scratch(p), library_}; }

  template <class Scalar, class Op>
    requires(std::same_as<Scalar, bfloat16>&& exec::detail::attention_form<Op>::known &&
             !exec::detail::attention_form<Op>::gradient)
  bool whole(Op const& op, exec::kernel_call const& c) const {
    using form = exec::detail::attention_form<Op>;
    exec::detail::attention_heads<float> const a(c, op);
    if (!takes(a, c)) return false;
    rooms_of const rooms = rooms_of::forward(a.batches, a.heads(), a.queries, form::kept);
    std::byte* const room = first(c);
    auto const sizes = sizes_of(a, a.batches);
    auto const* plan = plan_of(1, sizes, [&] { return detail::attention_forward(sizes); });
    if (!plan) return false;
    forward(*plan, sizes, a.three<bfloat16 const>(c.in), c.out[0], form::kept ? c.out[1] : room + rooms.stats,
            room + rooms.library_at);
    return true;
  }
  /// Some batch elements at a time; without lse, or where parts of it lie badly, y and stats are computed
  /// again.
  template <class Scalar, class Op>
    requires(std::same_as<Scalar, bfloat16> && exec::detail::attention_form<Op>::gradient)
  bool whole(Op const& op, exec::kernel_call const& c) const {
    using form = exec::detail::attention_form<Op>;
    exec::detail::attention_heads<float> const a(c, op);
    // untried: keys that no query of the block sees; not supported, by the release notes: a single key
    if (!takes(a, c) || (a.causal && a.queries < a.keys) || a.keys == 1 ||
        !detail::cudnn_library::good_at_gradients(a.keys))
      return false;
    if (InOrder && !library_.orders_sums()) return false;
    i64 const lines = a.heads() * a.queries;
    auto const [n, from_lse] = rooms_of::turns_of(a.batches, op.heads, a.queries, a.keys, a.width, InOrder,
                                                  form::kept, lines, Scratch);
    rooms_of const rooms = rooms_of::backward(n, a.heads(), a.queries, a.keys, a.width, InOrder, from_lse);
    auto const sizes = sizes_of(a, n);
    detail::cudnn_plan const* again = nullptr;
    if (!from_lse) again = plan_of(1, sizes, [&] { return detail::attention_forward(sizes); });
    auto const* plan = plan_of(
        2, sizes, [&] { return detail::attention_backward(sizes, InOrder); }, rooms.library);
    if (!plan || (!from_lse && !again)) return false;
    detail::attention_tensors const g = detail::attention_backward(sizes, InOrder).at;
    std::byte *const room = first(c), *const library = room + rooms.library_at;
    auto const all_x = a.three<bfloat16 const>(c.in + form::q);
    auto const all_dx = a.three<bfloat16>(c.out);
    for (i64 b = 0; b < a.batches; b += n) {
      exec::detail::head_place const at = a.place(b, 0);
      auto const of = [](void* p, i64 elements) {
        return static_cast<void*>(static_cast<bfloat16*>(p) + elements);
      };
      exec::detail::attention_operands<bfloat16 const> const x{all_x.q + at.q, all_x.k + at.k,
                                                               all_x.v + at.k};
      void *y = room + rooms.y, *stats = room + rooms.stats;
      if (from_lse) {
        y = of(in(c, form::more), at.y);
        stats = static_cast<float*>(in(c, form::more + 1)) + b * lines;
      } else {
        forward(*again, sizes, x, y, stats, library);
      }
      std::vector<detail::fused_address> all{{g.q, mutable_of(x.q)},     {g.k, mutable_of(x.k)},
                                             {g.v, mutable_of(x.v)},     {g.y, y},
                                             {g.stats, stats},           {g.sum, room + rooms.sum},
                                             {g.dy, of(in(c, 0), at.y)}, {g.dq, all_dx.q + at.q},
                                             {g.dk, all_dx.k + at.k},    {g.dv, all_dx.v + at.k}};
      if (g.part >= 0) all.push_back({g.part, room + rooms.part});
      plan->run(library_.handle(), all, library);
    }
    return true;
  }
  template <class Scalar, class Op>
    requires(std::same_as<Scalar, bfloat16> && exec::detail::attention_form<Op>::known)
  static i64 whole_scratch(Op const& op, shapes in, shapes) {
    using form = exec::detail::attention_form<Op>;
    shape const& q = in[form::q];
    i64 const batches = q.d[0].n, queries = q.d[1].n, keys = in[form::k].d[1].n,
              width = q.d[2].n / (form::packed ? 3 : 1);
    if constexpr (!form::gradient)
      return alignment + rooms_of::forward(batches, op.heads, queries, form::kept).bytes;
    i64 const lines = form::kept ? in[form::more + 1].d[1].n * in[form::more + 1].d[2].n : 0;
    auto const [n, from_lse] =
        rooms_of::turns_of(batches, op.heads, queries, keys, width, InOrder, form::kept, lines, Scratch);
    return alignment + rooms_of::backward(n, op.heads, queries, keys, width, InOrder, from_lse).bytes;
  }

  template <class Scalar, class Op>
    requires((std::same_as<Scalar, float> || std::same_as<Scalar, bfloat16>) && std::same_as<Op, conv2d>)
  bool whole(Op const& op, exec::kernel_call const& c) const {
    exec::detail::convolution_sizes const s(op.window(), c.in_block[0], c.out_block[0],
                                            c.in_block[1].local[1]);
    Scalar* const y = static_cast<Scalar*>(c.out[0]);
    if (!convolve<Scalar>(detail::fused_op::convolve, s, type<Scalar>, in(c, 0), in(c, 1), y, first(c)))
      return false;
    if (op.bias && c.first_share)
      base::each(c.out_block[0].elements(),
                 exec::detail::add_vector_at<Scalar>{static_cast<Scalar const*>(c.in[2]),
                                                                          y, s.filters, s.points()});
    return true;
  }
  template <class Scalar, class Op>
    requires((std::same_as<Scalar, float> || std::same_as<Scalar, bfloat16>)&&std::same_as<Op, conv2d_grad_x>)
  bool whole(Op const& op, exec::kernel_call const& c) const {
    exec::detail::convolution_sizes const s(op.window(), c.out_block[0], c.in_block[0],
                                            c.in_block[1].local[1]);
    return convolve<Scalar>(detail::fused_op::convolve_grad_x, s, type<Scalar>, c.out[0], in(c, 1), in(c, 0),
                            first(c));
  }
  /// Sums over images are floats, which cuDNN leaves only where operands are: bf16 is widened first, which
  /// rounding to 11 bits does not change.
  template <class Scalar, class Op>
    requires((std::same_as<Scalar, float> || std::same_as<Scalar, bfloat16>)&&std::same_as<Op, conv2d_grad_w>)
  bool whole(Op const& op, exec::kernel_call const& c) const {
    exec::detail::convolution_sizes const s(op.window(), c.in_block[1], c.in_block[0],
                                            c.out_block[0].local[1]);
    void *dy = in(c, 0), *x = in(c, 1);
    std::byte* room = first(c);
    if constexpr (std::same_as<Scalar, bfloat16>) {
      if (is_narrow(c.out_block[0].type)) return false;
      i64 const results = c.in_block[0].elements(), images = c.in_block[1].elements();
      auto *const wide_dy = reinterpret_cast<float*>(room), *const wide_x = reinterpret_cast<float*>(
                                                                room + aligned(results * 4));
      room += aligned(results * 4) + aligned(images * 4);
      if (!plan_of(detail::fused_op::convolve_grad_w, s, detail::fused_type::f32, true)) return false;
      base::each(results, detail::widen_at<bfloat16>{static_cast<bfloat16 const*>(dy), wide_dy});
      base::each(images, detail::widen_at<bfloat16>{static_cast<bfloat16 const*>(x), wide_x});
      dy = wide_dy;
      x = wide_x;
    }
    return convolve<Scalar>(detail::fused_op::convolve_grad_w, s, detail::fused_type::f32, x, c.out[0], dy,
                            room);
  }
  template <class Scalar, class Op>
    requires((std::same_as<Scalar, float> || std::same_as<Scalar, bfloat16>) &&
             (std::same_as<Op, conv2d> || std::same_as<Op, conv2d_grad_x> || std::same_as<Op, conv2d_grad_w>))
  static i64 whole_scratch(Op const&, shapes in, shapes out) {
    constexpr bool widens = std::same_as<Op, conv2d_grad_w> && std::same_as<Scalar, bfloat16>;
    i64 const elements = in[0].elements() + in[1].elements() + out[0].elements();
    return alignment + (widens ? aligned(in[0].elements() * 4) + aligned(in[1].elements() * 4) : 0) +
           detail::convolution_room(elements * (widens ? 4 : static_cast<i64>(sizeof(Scalar))));
  }

 private:
  static constexpr i64 alignment = 256;
  template <class Scalar>
  static constexpr detail::fused_type type =
      std::same_as<Scalar, bfloat16> ? detail::fused_type::bf16 : detail::fused_type::f32;
  static constexpr i64 aligned(i64 n) { return (n + alignment - 1) / alignment * alignment; }
  // as the library takes addresses
  static void* mutable_of(void const* p) { return const_cast<void*>(p); }
  static void* in(exec::kernel_call const& c, int k) { return mutable_of(c.in[k]); }
  /// Scratch, from a multiple of 256 on.
  static std::byte* first(exec::kernel_call const& c) {
    return reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(c.workspace) + alignment - 1) /
                                        alignment * alignment);
  }
  static bool at_16(exec::kernel_call const& c) {
    std::uintptr_t all = 0;
    for (int k = 0; k < c.inputs; ++k) all |= reinterpret_cast<std::uintptr_t>(c.in[k]);
    for (int k = 0; k < c.outputs; ++k) all |= reinterpret_cast<std::uintptr_t>(c.out[k]);
    return all % 16 == 0;
  }
  /// The mask of the graphs begins with the first query.
  static bool takes(exec::detail::attention_heads<float> const& a, exec::kernel_call const& c) {
    bool const some = a.batches > 0 && a.queries > 0 && a.keys > 0 && a.head > 0;
    return some && a.head % 8 == 0 && !(a.causal && a.first_query > 0) && at_16(c);
  }
  static detail::attention_sizes sizes_of(exec::detail::attention_heads<float> const& a, i64 batches) {
    return {batches, a.heads(), a.queries, a.keys, a.head, a.factor, a.causal, a.packed};
  }
  void forward(detail::cudnn_plan const& plan, detail::attention_sizes const& sizes,
               exec::detail::attention_operands<bfloat16 const> const& x, void* y, void* stats,
               void* library) const {
    detail::attention_tensors const f = detail::attention_forward(sizes).at;
    plan.run(
        library_.handle(),
        {{f.q, mutable_of(x.q)}, {f.k, mutable_of(x.k)}, {f.v, mutable_of(x.v)}, {f.y, y}, {f.stats, stats}},
        library);
  }
  template <class Make>
  detail::cudnn_plan const* plan_of(i64 what, detail::attention_sizes const& s, Make const& make,
                                    i64 room = detail::attention_rooms::forward(0, 0, 0).library) const {
    return library_.plan({what, s.batches, s.heads, s.queries, s.keys, s.head, s.causal, s.packed},
                         {room, InOrder, true}, make);
  }
  detail::cudnn_plan const* plan_of(detail::fused_op op, exec::detail::convolution_sizes const& s,
                                    detail::fused_type t, bool rounds) const {
    i64 const bytes = detail::convolution_elements(s) * (t == detail::fused_type::f32 ? 4 : 2);
    return library_.plan(
        {static_cast<i64>(op), static_cast<i64>(t), rounds, s.images, s.channels, s.height, s.width,
         s.filters, s.high, s.wide, s.depth, s.w.kernel_h, s.w.kernel_w, s.w.stride, s.w.pad_h, s.w.pad_w},
        {detail::convolution_room(bytes), true, rounds}, [&] { return detail::convolution(op, s, t); });
  }
  template <class Scalar>
  bool convolve(detail::fused_op op, exec::detail::convolution_sizes const& s, detail::fused_type t,
                void* images, void* filters, void* results, std::byte* room) const {
    bool const rounds = std::same_as<Scalar, bfloat16> || Floats == float_products::tf32;
    std::uintptr_t const all = reinterpret_cast<std::uintptr_t>(images) |
                               reinterpret_cast<std::uintptr_t>(filters) |
                               reinterpret_cast<std::uintptr_t>(results);
    if (all % 16) return false;
    auto const* plan = plan_of(op, s, t, rounds);
    if (!plan) return false;
    detail::convolution_graph const at = detail::convolution(op, s, t);
    plan->run(library_.handle(), {{at.images, images}, {at.filters, filters}, {at.results, results}}, room);
    return true;
  }
};
using cudnn_teams = basic_cudnn_teams<>;

namespace compute {
/// As compute::cuda, with cuDNN's convolutions.
template <class Scalar, class Own = op::op_set<>> using cudnn = teams<Scalar, cudnn_teams, Own>;
template <class Own = op::op_set<>>
using cudnn_tf32 = teams<float, basic_cudnn_teams<float_products::tf32>, Own>;
/// As compute::cuda_bf16, with cuDNN's convolutions and attention. InOrder: see basic_cudnn_teams.
template <bool InOrder = true, class Own = op::op_set<>>
using cudnn_bf16 = teams<float, basic_cudnn_teams<float_products::full, InOrder>, Own, bfloat16>;
}  // namespace compute

}  // namespace tensorpar
