// tests/exec/cudnn/plans.cpp - cuDNN takes the graphs that it is handed and compiles them for GPUs that are not here, within the scratch
// that plans set aside. Its driver is driver.cpp.
#include "gpus.hpp"
#include <cmath>
#include <doctest/doctest.h>
#include <random>
#include <tensorpar/exec/cudnn/attention_rooms.hpp>
#include <tensorpar/exec/cudnn/convolution_graphs.hpp>
#include <tensorpar/exec/cudnn/plan.cuh>

using namespace tensorpar;
using detail::attention_rooms;
using detail::attention_sizes;
using detail::cudnn_limits;
using detail::cudnn_plan;
using detail::fused_op;
using detail::fused_type;

namespace {

attention_sizes sizes(i64 b, i64 h, i64 q, i64 k, i64 d, bool causal, bool packed = false) {
  return {b, h, q, k, d, static_cast<float>(1 / std::sqrt(static_cast<double>(d))), causal, packed};
}
/// Both directions of attention, as cudnn_teams asks for them.
void check_attention(detail::cudnn_target const& gpu, attention_sizes const& s) {
  CAPTURE(s.batches);
  CAPTURE(s.heads);
  CAPTURE(s.queries);
  CAPTURE(s.keys);
  CAPTURE(s.head);
  CAPTURE(s.causal);
  CAPTURE(s.packed);
  i64 const width = s.heads * s.head;
  CHECK(
      cudnn_plan::choose(detail::attention_forward(s), gpu, {attention_rooms::forward(s.batches, s.heads, s.queries).library, true, true}));
  for (bool in_order : {true, false}) {
    attention_sizes some = s;
    some.batches = attention_rooms::batches_at_once(s.batches, s.heads, s.queries, s.keys, width, in_order);
    i64 const room = attention_rooms::backward(some.batches, s.heads, s.queries, s.keys, width, in_order).library;
    CHECK_MESSAGE(cudnn_plan::choose(detail::attention_backward(some, in_order), gpu, {room, in_order, true}), in_order);
  }
}
exec::detail::convolution_sizes convolution_of(conv2d const& op, i64 n, i64 c, i64 side) {
  auto const w = op.window();
  op::tensor_block x, y;
  x.rank = y.rank = 4;
  i64 const images[] = {n, c, side, side}, results[] = {n, op.out, w.out_h(side), w.out_w(side)};
  for (int d = 0; d < 4; ++d) {
    x.local[d] = images[d];
    y.local[d] = results[d];
  }
  return {w, x, y, c / op.groups};
}

}  // namespace

TEST_CASE("cuDNN compiles attention of GPT-2's sizes, and of others, for GPUs of two generations") {
  std::mt19937 r(1);
  auto const of = [&](std::initializer_list<i64> l) { return l.begin()[r() % l.size()]; };
  for (char const* json : {tests::h100, tests::a100}) {
    detail::cudnn_target const gpu{std::string(json)};
    for (i64 heads : {12, 20, 25})
      for (bool packed : {false, true}) check_attention(gpu, sizes(8, heads, 1024, 1024, 64, true, packed));
    for (int i = 0; i < 3; ++i) {
      i64 const length = of({7, 64, 200});
      check_attention(gpu, sizes(of({1, 3, 4}), of({1, 2, 5}), length, length, of({8, 16, 32, 64, 128}), of({0, 1}), true));
    }
    for (int i = 0; i < 6; ++i)
      check_attention(gpu,
                      sizes(of({1, 3, 4}), of({1, 2, 5}), of({1, 7, 64, 200}), of({1, 5, 64, 130}), of({8, 16, 32, 64, 128}), of({0, 1})));
  }
}

TEST_CASE("what cuDNN has no way for is no error, nor is what asks for more scratch than there is") {
  detail::cudnn_target const gpu{std::string(tests::h100)};
  CHECK(!cudnn_plan::choose(detail::attention_forward(sizes(1, 3, 7, 5, 6, true)), gpu, {i64{1} << 30, true, true}));
  attention_sizes const s = sizes(2, 4, 256, 256, 64, true);
  i64 const room = attention_rooms::backward(2, 4, 256, 256, 256, true).library;
  auto const plan = cudnn_plan::choose(detail::attention_backward(s, true), gpu, {room, true, true});
  REQUIRE(plan);
  CHECK(plan->workspace() > 0);
  CHECK(plan->workspace() <= room);
  CHECK(!cudnn_plan::choose(detail::attention_backward(s, true), gpu, {100, true, true}));
  CHECK(!cudnn_plan::choose(detail::attention_forward(s), gpu, {i64{1} << 30, true, false}));  // it is tensor cores' or nobody's
}

TEST_CASE("cuDNN has a way for convolutions and their gradients, in full, by tensor cores and in bf16") {
  for (char const* json : {tests::h100, tests::a100}) {
    detail::cudnn_target const gpu{std::string(json)};
    for (auto const& s :
         {convolution_of({64, 7, 2, 3}, 8, 3, 224), convolution_of({64, 3, 1, 1}, 8, 64, 56), convolution_of({256, 1, 1, 0}, 8, 64, 56),
          convolution_of({128, 3, 2, 1, 32}, 8, 128, 56), convolution_of({4, 3, 1, 1}, 2, 6, 9)})
      for (fused_op op : {fused_op::convolve, fused_op::convolve_grad_x, fused_op::convolve_grad_w}) {
        CAPTURE(static_cast<int>(op));
        CAPTURE(s.channels);
        CAPTURE(s.filters);
        i64 const floats = detail::convolution_room(4 * detail::convolution_elements(s)),
                  halves = detail::convolution_room(2 * detail::convolution_elements(s));
        for (bool rounds : {false, true})
          CHECK(cudnn_plan::choose(detail::convolution(op, s, fused_type::f32), gpu, {floats, true, rounds}));
        if (op != fused_op::convolve_grad_w)
          CHECK(cudnn_plan::choose(detail::convolution(op, s, fused_type::bf16), gpu, {halves, true, true}));
      }
  }
}

TEST_CASE("errors of cuDNN are its own words") {
  CHECK_THROWS_WITH_AS(detail::cudnn_target(std::string("{}")), doctest::Contains("CUDNN_STATUS_BAD_PARAM"), error);
}
