// tests/exec/cudnn.test.cu - a GPU on which cuDNN does attention and convolutions: the numbers of the kernels of teams
#include "support/laws/teams.hpp"
#include "support/packed_heads.hpp"
#include "support/staged.hpp"
#include "support/training.hpp"
#include <doctest/doctest.h>
#include <tensorpar/exec/comm/threads.hpp>
#include <tensorpar/exec/comm/virtual_ranks.hpp>
#include <tensorpar/exec/cudnn/cudnn.cuh>
#include <tensorpar/exec/step/fuse.hpp>
#include <tensorpar/ir/mixed_precision.hpp>
#include <tensorpar/zoo/gpt.hpp>

using namespace tests;

static_assert(tensorpar::exec::team_device<cudnn_teams, float> && tensorpar::exec::team_device<cudnn_teams, bfloat16>);
static_assert(tensorpar::exec::replayable_policy<compute::cudnn<float>> && tensorpar::exec::replayable_policy<compute::cudnn_bf16<>>);
static_assert(tensorpar::exec::require_same_memory<compute::cudnn_bf16<>, comm::virtual_ranks<cuda_memory>>());
// attention in bf16 alone, convolutions of floats; what is a function of one of them is not that one
static_assert(tensorpar::exec::detail::does_whole<cudnn_teams, bfloat16, packed_attention_grad_from_lse>);
static_assert(tensorpar::exec::detail::does_whole<cudnn_teams, bfloat16, attention> &&
              !tensorpar::exec::detail::does_whole<cudnn_teams, float, attention>);
static_assert(tensorpar::exec::detail::does_whole<cudnn_teams, float, conv2d> &&
              !tensorpar::exec::detail::does_whole<cudnn_teams, double, conv2d>);
static_assert(!tensorpar::exec::detail::does_whole<cudnn_teams, float, tensorpar::op::activated<conv2d, relu>> &&
              !tensorpar::exec::detail::does_whole<cuda_teams, float, conv2d>);

namespace {

bool no_gpu() {
  if (cuda_devices()) return false;
  MESSAGE("skipped: there is no GPU");
  return true;
}

/// Runs a call on blocks in the GPU's memory, results poisoned first, with so many bytes of scratch.
template <class Run>
std::vector<std::vector<float>> on_gpu(cuda_memory const& m, tensorpar::op::any_op const& o,
                                       std::vector<std::vector<float>> const& operands, std::vector<tensorpar::op::tensor_block> const& in,
                                           std::vector<tensorpar::op::tensor_block> const& out, i64 scratch,
                                       Run const& run) {
  std::vector<std::byte*> taken;
  auto const take = [&](i64 bytes) { return taken.emplace_back(m.allocate(bytes)); };
  auto const bytes_of = [](tensorpar::op::tensor_block const& b) { return b.elements() * (is_narrow(b.type) ? 2 : 4); };
  std::vector<void const*> from;
  std::vector<void*> to;
  for (std::size_t k = 0; k < in.size(); ++k) {
    std::byte* const p = take(bytes_of(in[k]));
    tensorpar::exec::detail::write_reals(m, p, operands[k], in[k].type);
    from.push_back(p);
  }
  for (tensorpar::op::tensor_block const& b : out) {
    std::byte* const p = take(bytes_of(b));
    tensorpar::exec::detail::write_reals(m, p, std::vector<float>(static_cast<std::size_t>(b.elements()), 77.0f), b.type);
    to.push_back(p);
  }
  tensorpar::exec::kernel_call c;
  c.op = &o;
  c.inputs = static_cast<int>(in.size());
  c.outputs = static_cast<int>(out.size());
  c.in = from.data();
  c.in_block = in.data();
  c.out = to.data();
  c.out_block = out.data();
  c.workspace = take(scratch + 4);
  run(c);
  m.wait();
  std::vector<std::vector<float>> r;
  for (std::size_t k = 0; k < out.size(); ++k) {
    r.emplace_back(static_cast<std::size_t>(out[k].elements()));
    tensorpar::exec::detail::read_reals(m, r.back(), static_cast<std::byte const*>(to[k]), out[k].type);
  }
  for (std::byte* p : taken) m.release(p, 0);
  return r;
}
std::vector<shape> local_shapes(std::vector<tensorpar::op::tensor_block> const& all) {
  std::vector<shape> r;
  for (tensorpar::op::tensor_block const& b : all) r.push_back(b.local_shape());
  return r;
}
shapes list(std::vector<shape> const& all) { return {all.data(), static_cast<int>(all.size())}; }

/// An operator on blocks of bf16. Where the policy's device has cuDNN, by nothing else.
template <class Policy> class narrow_call {
  Policy const policy_{tensorpar::exec::device_place{}};

 public:
  bool by_library = true;
  template <class Op> std::vector<std::vector<float>> operator()(Op const& op, std::vector<std::vector<float>> const& operands,
                                                                 std::vector<tensorpar::op::tensor_block> const& in,
                                                                 std::vector<tensorpar::op::tensor_block> const& out) const {
    tensorpar::op::any_op const o(op);
    std::vector<shape> const from = local_shapes(in), to = local_shapes(out);
    return on_gpu(policy_.device_memory(), o, operands, in, out, 4 * Policy::workspace(o, list(from), list(to)),
                  [&](tensorpar::exec::kernel_call const& c) {
      if constexpr (tensorpar::exec::detail::does_whole<std::remove_cvref_t<decltype(policy_.device())>, bfloat16, Op>)
        CHECK(policy_.device().template whole<bfloat16>(op, c) == by_library);
      else
        policy_.run(c);
      if (!by_library) policy_.run(c);
    });
  }
};
/// By this device's library alone.
template <class Device, class Op>
std::vector<std::vector<float>> by_library(Op const& op, std::vector<std::vector<float>> const& operands,
                                           std::vector<tensorpar::op::tensor_block> const& in,
                                               std::vector<tensorpar::op::tensor_block> const& out) {
  Device const d{tensorpar::exec::device_place{}};
  std::vector<shape> const from = local_shapes(in), to = local_shapes(out);
  i64 const scratch = Device::template whole_scratch<bfloat16>(op, list(from), list(to));
  return on_gpu(d.device_memory(), tensorpar::op::any_op(op), operands, in, out, scratch,
                [&](tensorpar::exec::kernel_call const& c) { CHECK(d.template whole<bfloat16>(op, c)); });
}
tensorpar::op::tensor_block narrow(shape s) {
  s.type = dtype::bf16;
  return whole(s);
}
std::vector<float> draw_narrow(i64 n, std::mt19937& r) {
  std::vector<float> x(static_cast<std::size_t>(n));
  for (float& e : x) e = bfloat16(std::uniform_real_distribution<float>(-1, 1)(r));
  return x;
}
double furthest(std::vector<float> const& a, std::vector<float> const& b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    double const off = std::fabs(static_cast<double>(a[i]) - b[i]);
    worst = off <= worst ? worst : off;
  }
  return worst;
}

}  // namespace

TEST_CASE("without a GPU there is one clear error") {
  if (cuda_devices()) return;
  CHECK_THROWS_WITH_AS(cudnn_teams(tensorpar::exec::device_place{}), doctest::Contains("there is no GPU"), error);
}

TEST_CASE("attention by cuDNN is that of the kernels, forwards and backwards, whatever the sizes") {
  for (tensorpar::op::any_op const& o : {tensorpar::op::any_op(tensorpar::op::attention_grad_from_lse{2}),
                                         tensorpar::op::any_op(packed_attention_grad_from_lse{{2}})})
    CHECK((compute::cudnn_bf16<>::keeps_lse(o, true) && !compute::cudnn_bf16<>::keeps_lse(o, false) &&
           !compute::cuda_bf16<>::keeps_lse(o, true)));
  if (no_gpu()) return;
  std::mt19937 r(1);
  narrow_call<compute::cudnn_bf16<true>> ordered;
  narrow_call<compute::cudnn_bf16<false>> fast;
  narrow_call<compute::cuda_bf16<>> const kernels;
  struct {
    i64 batches, queries, keys, heads, head;
    bool causal;
  } const all[] = {{2, 64, 64, 4, 64, true}, {3, 40, 56, 2, 32, false}, {1, 7, 5, 3, 8, false}, {2, 9, 9, 2, 6, true},
                   {16, 1024, 1024, 2, 64, true}};
  for (auto const& s : all) {
#ifdef CUDNN_STAND_IN
    if (s.queries > 100) continue;             // a minute
#endif
    i64 const width = s.heads * s.head;
    tensorpar::op::tensor_block const q = narrow({s.batches, s.queries, width}), k = narrow({s.batches, s.keys, width});
    std::vector<std::vector<float>> x;
    for (tensorpar::op::tensor_block const* b : {&q, &q, &k, &k}) x.push_back(draw_narrow(b->elements(), r));
    attention const forward{s.heads, s.causal};
    attention_grad const back{s.heads, s.causal};
    ordered.by_library = fast.by_library = s.head % 8 == 0;
    std::vector<std::vector<float>> const three(x.begin() + 1, x.end());
    auto const want = kernels(forward, three, {q, k, k}, {q});
    CHECK(furthest(ordered(forward, three, {q, k, k}, {q})[0], want[0]) < 0.02);
    // what is left for the gradient, and the gradient from it
    tensorpar::op::tensor_block const lse = whole({dim(s.batches), dim(s.heads), dim(s.queries)});
    tensorpar::op::attention_with_lse const keeping{s.heads, s.causal};
    tensorpar::op::attention_grad_from_lse const from_lse{s.heads, s.causal};
    auto const left = ordered(keeping, three, {q, k, k}, {q, lse}), wanted = kernels(keeping, three, {q, k, k}, {q, lse});
    CHECK(furthest(left[0], want[0]) < 0.02);
    CHECK(furthest(left[1], wanted[1]) < 0.02);
    std::vector<std::vector<float>> six = x;
    six.insert(six.end(), left.begin(), left.end());
    auto const from = ordered(from_lse, six, {q, q, k, k, q, lse}, {q, k, k}),
               quick_from = fast(from_lse, six, {q, q, k, k, q, lse}, {q, k, k});
    auto const gradients = kernels(back, x, {q, q, k, k}, {q, k, k});
    auto const got = ordered(back, x, {q, q, k, k}, {q, k, k}), quick = fast(back, x, {q, q, k, k}, {q, k, k});
    for (int i = 0; i < 3; ++i) {
      CHECK(furthest(got[i], gradients[i]) < 0.04);
      CHECK(furthest(quick[i], gradients[i]) < 0.04);
      CHECK(furthest(from[i], gradients[i]) < 0.04);
      CHECK(furthest(quick_from[i], gradients[i]) < 0.04);
    }
    CHECK(ordered(back, x, {q, q, k, k}, {q, k, k}) == got);  // in one order
    if (s.queries != s.keys) continue;
    // as one tensor, with log-sum-exps between the two and without
    tensorpar::op::tensor_block const one = narrow({s.batches, s.queries, 3 * width});
    std::vector<float> const x3 = packed_heads(x[1], x[2], x[3], s.head),
                             dx3 = packed_heads(gradients[0], gradients[1], gradients[2], s.head);
    packed_attention_grad const packed_back{s.heads, s.causal};
    auto const packed_left = ordered(packed_attention_with_lse{s.heads, s.causal}, {x3}, {one}, {q, lse});
    CHECK(furthest(ordered(packed_attention{s.heads, s.causal}, {x3}, {one}, {q})[0], want[0]) < 0.02);
    CHECK(furthest(packed_left[0], want[0]) < 0.02);
    CHECK(furthest(packed_left[1], wanted[1]) < 0.02);
    std::vector<std::vector<float>> const four{x[0], x3, packed_left[0], packed_left[1]};
    packed_attention_grad_from_lse const packed_from{{s.heads, s.causal}};
    CHECK(furthest(ordered(packed_back, {x[0], x3}, {q, one}, {one})[0], dx3) < 0.04);
    CHECK(furthest(fast(packed_back, {x[0], x3}, {q, one}, {one})[0], dx3) < 0.04);
    CHECK(furthest(ordered(packed_from, four, {q, one, q, lse}, {one})[0], dx3) < 0.04);
    CHECK(furthest(fast(packed_from, four, {q, one, q, lse}, {one})[0], dx3) < 0.04);
  }
}

namespace {
/// The same bits, or, by a library that may choose another kernel for another number of batch elements, the same numbers but for rounding.
bool alike(std::vector<std::vector<float>> const& a, std::vector<std::vector<float>> const& b) {
#ifdef CUDNN_STAND_IN
  return a == b;
#else
  double worst = 0;
  for (std::size_t k = 0; k < a.size(); ++k)
    for (std::size_t e = 0; e < a[k].size(); ++e) worst = std::max(worst, tests::distance(a[k][e], b[k][e]));
  return worst < 0.02;
#endif
}
}  // namespace

TEST_CASE("the gradient of attention goes over some batch elements at a time where scratch is short, and comes out the same") {
  if (no_gpu()) return;
  using large = basic_cudnn_teams<>;
  using small = basic_cudnn_teams<float_products::full, true, 1 << 17>;
  std::mt19937 r(7);
  i64 const batches = 6, length = 20, heads = 3, width = heads * 16;
  tensorpar::op::tensor_block const q = narrow({dim(batches), dim(length), dim(width)}),
      lse = whole({dim(batches), dim(heads), dim(length)});
  shape const local = q.local_shape();
  std::vector<shape> const in{local, local, local, local};
  REQUIRE(small::whole_scratch<bfloat16>(attention_grad{heads, true}, list(in), list(in)) < 1 << 18);
  REQUIRE(large::whole_scratch<bfloat16>(attention_grad{heads, true}, list(in), list(in)) > 1 << 18);
  std::vector<std::vector<float>> x;
  for (int i = 0; i < 4; ++i) x.push_back(draw_narrow(q.elements(), r));
  for (bool causal : {false, true}) {
    auto const all = by_library<large>(attention_grad{heads, causal}, x, {q, q, q, q}, {q, q, q});
    CHECK(alike(by_library<small>(attention_grad{heads, causal}, x, {q, q, q, q}, {q, q, q}), all));
    auto const left = by_library<large>(tensorpar::op::attention_with_lse{heads, causal}, {x[1], x[2], x[3]}, {q, q, q}, {q, lse});
    std::vector<std::vector<float>> six = x;
    six.insert(six.end(), left.begin(), left.end());
    CHECK(alike(by_library<small>(tensorpar::op::attention_grad_from_lse{heads, causal}, six, {q, q, q, q, q, lse}, {q, q, q}), all));
    // as one tensor
    tensorpar::op::tensor_block const one = narrow({dim(batches), dim(length), dim(3 * width)});
    std::vector<std::vector<float>> const two{x[0], draw_narrow(one.elements(), r)};
    auto const packed_all = by_library<large>(packed_attention_grad{heads, causal}, two, {q, one}, {one});
    CHECK(alike(by_library<small>(packed_attention_grad{heads, causal}, two, {q, one}, {one}), packed_all));
    auto const packed_left = by_library<large>(packed_attention_with_lse{heads, causal}, {two[1]}, {one}, {q, lse});
    CHECK(alike(by_library<small>(packed_attention_grad_from_lse{heads, causal}, {two[0], two[1], packed_left[0], packed_left[1]},
                                  {q, one, q, lse}, {one}), packed_all));
  }
  // parts of log-sum-exps that would not begin at a multiple of 16 bytes are computed again
  tensorpar::op::tensor_block const odd = narrow({3, 5, dim(width)}), lines = whole({3, dim(heads), 5});
  using least = basic_cudnn_teams<float_products::full, true, 1>;
  for (auto& o : x) o.resize(static_cast<std::size_t>(odd.elements()));
  auto const left = by_library<large>(tensorpar::op::attention_with_lse{heads, true}, {x[1], x[2], x[3]}, {odd, odd, odd}, {odd, lines});
  std::vector<std::vector<float>> six = x;
  six.insert(six.end(), left.begin(), left.end());
  CHECK(alike(by_library<least>(tensorpar::op::attention_grad_from_lse{heads, true}, six, {odd, odd, odd, odd, odd, lines},
                                {odd, odd, odd}),
              by_library<large>(attention_grad{heads, true}, x, {odd, odd, odd, odd}, {odd, odd, odd})));
  tensorpar::op::tensor_block const one = narrow({3, 5, dim(3 * width)});
  std::vector<std::vector<float>> const two{x[0], draw_narrow(one.elements(), r)};
  auto const packed_left = by_library<large>(packed_attention_with_lse{heads, true}, {two[1]}, {one}, {odd, lines});
  CHECK(alike(by_library<least>(packed_attention_grad_from_lse{{heads, true}}, {two[0], two[1], packed_left[0], packed_left[1]},
                                {odd, one, odd, lines}, {one}),
              by_library<large>(packed_attention_grad{heads, true}, two, {odd, one}, {one})));
}

#ifdef CUDNN_STAND_IN
TEST_CASE("gradients of attention go to the kernels where cuDNN is older than 9.15.1 and keys are no whole tiles, or there is one key; "
          "in one order where GPUs are newer than 9.x") {
  std::mt19937 r(8);
  for (i64 keys : {1, 16, 128}) {
    tensorpar::op::tensor_block const q = narrow({2, keys, 32});
    std::vector<std::vector<float>> x;
    for (int i = 0; i < 4; ++i) x.push_back(draw_narrow(q.elements(), r));
    std::vector<std::vector<float>> const three(x.begin() + 1, x.end());
    attention const forward{2, true};
    attention_grad const back{2, true};
    narrow_call<compute::cudnn_bf16<true>> ordered;
    narrow_call<compute::cudnn_bf16<false>> fast;
    auto const tried = [&](bool y, bool in_order, bool in_none) {
      ordered.by_library = y;
      ordered(forward, three, {q, q, q}, {q});
      ordered.by_library = in_order;
      ordered(back, x, {q, q, q, q}, {q, q, q});
      fast.by_library = in_none;
      fast(back, x, {q, q, q, q}, {q, q, q});
    };
    bool const some = keys > 1, tiles = keys % 128 == 0;
    tried(true, some, some);
    cuda_stand_in::the_machine::get().capability = 10;
    tried(true, false, some);
    cuda_stand_in::the_machine::get().capability = 9;
    for (std::size_t old : {91500, 91300, 91000, 91001}) {
      cuda_stand_in::cudnn_version() = old;
      bool const good = tiles && old > 91001;
      tried(true, good, good);
    }
    cuda_stand_in::cudnn_version() = CUDNN_VERSION;
  }
}
#endif

TEST_CASE("later queries alone, and some heads, have the numbers that they have among the others") {
  if (no_gpu()) return;
  std::mt19937 r(2);
  narrow_call<compute::cudnn_bf16<>> cudnn;
  tensorpar::op::tensor_block const q = narrow({2, 64, 128}), k = narrow({2, 64, 128});
  std::vector<std::vector<float>> x;
  for (int i = 0; i < 3; ++i) x.push_back(draw_narrow(q.elements(), r));
  attention const op{4, true};
  auto const all = cudnn(op, x, {q, k, k}, {q})[0];
  auto const part = [](std::vector<float> const& from, tensorpar::op::tensor_block const& outer, tensorpar::op::tensor_block const& inner) {
    std::vector<float> to(static_cast<std::size_t>(inner.elements()));
    each_element(outer, inner, [&](std::size_t a, std::size_t b) { to[b] = from[a]; });
    return to;
  };
  tensorpar::op::tensor_block const late = piece_of(q, 1, 1, 2), heads = piece_of(q, 2, 1, 2);
  CHECK(furthest(cudnn(op, {part(x[0], q, heads), part(x[1], q, heads), part(x[2], q, heads)}, {heads, heads, heads}, {heads})[0],
                 part(all, q, heads)) < 0.02);
  cudnn.by_library = false;  // its mask begins with the first query
  CHECK(furthest(cudnn(op, {part(x[0], q, late), x[1], x[2]}, {late, k, k}, {late})[0], part(all, q, late)) < 0.02);
}

TEST_CASE("convolutions of bf16 by cuDNN, and their gradients, are those of the kernels") {
  if (no_gpu()) return;
  std::mt19937 r(3);
  narrow_call<compute::cudnn_bf16<>> const cudnn;
  narrow_call<compute::cuda_bf16<>> const kernels;
  for (conv2d const& op : {conv2d{16, 3}, conv2d{16, 3, 2, 1, 2}, conv2d{8, 1, 1, 0}}) {
    i64 const out = op.window().out_h(14);
    tensorpar::op::tensor_block const x = narrow({4, 8, 14, 14}), w = narrow({op.out, 8 / op.groups, op.kernel, op.kernel}),
                       y = narrow({4, op.out, out, out});
    tensorpar::op::tensor_block sums = w;
    sums.type = dtype::f32;
    auto const images = draw_narrow(x.elements(), r), filters = draw_narrow(w.elements(), r), results = draw_narrow(y.elements(), r);
    conv2d_grad_x const back{op.kernel, op.stride, op.pad, op.groups, op.kernel_w, op.pad_w, 14, 14};
    conv2d_grad_w const add_up{op.kernel, op.stride, op.pad, op.groups, op.kernel_w, op.pad_w};
    CHECK(furthest(cudnn(op, {images, filters}, {x, w}, {y})[0], kernels(op, {images, filters}, {x, w}, {y})[0]) < 0.1);
    CHECK(furthest(cudnn(back, {results, filters}, {y, w}, {x})[0], kernels(back, {results, filters}, {y, w}, {x})[0]) < 0.1);
    CHECK(furthest(cudnn(add_up, {results, images}, {y, x}, {sums})[0], kernels(add_up, {results, images}, {y, x}, {sums})[0]) < 1e-3);
  }
}

#ifndef CUDNN_STAND_IN                         // tests/exec/cuda.test.cu has these operators there
TEST_CASE("every operator with cuDNN: floats in full, and rounded to 11 bits") {
  if (no_gpu()) return;
  check_agreement<staged<compute::cudnn<prime_field>>, compute::teams<prime_field>>(0);
  check_agreement<staged<compute::cudnn<float>>, compute::teams<float>>(1e-4);
  check_agreement<staged<compute::cudnn_tf32<>>, compute::teams<float>>(5e-3);
}
#endif

TEST_CASE("training in bf16 with cuDNN is that of the processor's kernels, but for rounding, and steps are replayed") {
  if (no_gpu()) return;
  struct first_gpu : compute::cudnn_bf16<> {
    first_gpu() : compute::cudnn_bf16<>(tensorpar::exec::device_place{}) {}
  };
  std::mt19937 draw(32);
  model_builder gpt;
  zoo::gpt<>::define(gpt, {.layers = 1, .hidden = 16, .heads = 2, .seq = 12, .vocab = 24, .wide = 32, .packed = true});
  std::size_t const without = small_cnn().nodes.size();
  for (computation_graph const& g : {small_cnn(), small_transformer(), lower(gpt, {zoo::batch = 4})})
    for (int ranks : {1, 2}) {
      plan const p = random_plan(mixed_precision(g), ranks, draw);
      training_graph const t = differentiate(mixed_precision(g));
      program const q = tensorpar::exec::fused<first_gpu>(unroll(t, p, {&first_gpu::workspace}), p.cluster);
      bool kept = false;
      for (task const& k : q.tasks) kept = kept || has_lse(k.op);
      CHECK(kept == (g.nodes.size() != without));
      executor<first_gpu, comm::virtual_ranks<cuda_memory>> gpu(planned_step{t, p, q});
      executor<compute::teams<float, tensorpar::exec::host_teams<>, tensorpar::op::op_set<>, bfloat16>,
               comm::threads> host(differentiate(mixed_precision(g)), p);
      auto const a = train(gpu, 4, 0.05), b = train(host, 4, 0.05);
      std::vector<std::vector<double>> c, d;
      for (auto const& x : a) c.emplace_back(x.begin(), x.end());
      for (auto const& x : b) d.emplace_back(x.begin(), x.end());
      CHECK(tests::distance(c, d) < 0.02);
    }
}
