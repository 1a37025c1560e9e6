// tests/op/shape_rules.test.cpp - what operators refuse, and in which words
#include <support/laws/operator.hpp>

using namespace tensorpar;

namespace {
std::string refusal(op::any_op const& o, std::vector<shape> const& in) {
  op::inference const r = o.op->infer(o.attr, {in.data(), static_cast<int>(in.size())});
  return r.ok() ? "" : r.rule;
}
constexpr axis batch_axis{"batch"}, a_axis{"a"}, b_axis{"b"};
}  // namespace

TEST_CASE("refusals") {
  shape const x{batch_axis, a_axis(8)}, tokens = x.of(dtype::i32), image{batch_axis, 6, 8, 8};
  CHECK(refusal(linear{.out = 4}, {x}) == "");
  CHECK(refusal(linear{.out = 0}, {x}) == "linear: out must be positive");
  CHECK(refusal(linear{.out = 4}, {tokens}) == "linear takes real numbers");
  CHECK(refusal(linear{.out = 4}, {scalar}) == "linear takes at least one axis");
  CHECK(refusal(linear{.out = 4}, {{8, batch_axis}}) == "linear: last axis must be static");
  CHECK(refusal(matmul{}, {{4, 5}, {6, 7}}) == "inner dimensions differ");
  CHECK(refusal(matmul{}, {{4, a_axis(5)}, {b_axis(5), 7}}) == "inner dimensions differ");
  CHECK(refusal(matmul{}, {{4, 5}, {1, 5, 7}}) == "ranks differ");
  CHECK(refusal(matmul{}, {{2, 4, 5}, {3, 5, 7}}) == "batch dimensions differ");
  CHECK(refusal(contraction("mk,kn->mn"), {{4, 5}, {6, 7}}) == "contraction: one letter, two extents");
  CHECK(refusal(contraction("mk,kn->mn"), {{4, 5}}) == "contraction: wrong number of operands");
  CHECK(refusal(contraction("->"), {}) == "contraction: wrong number of operands");
  for (auto const& in : {std::vector<shape>{{4, 5, 2}, {5, 7}}, {{4, 5}, {5}}, {{4}, {5, 7}}})
    CHECK(refusal(contraction("mk,kn->mn"), in) == "contraction: every axis of an operand has one letter of its own");
  CHECK(refusal(contraction("ii->i"), {{3, 3}}) == "contraction: every axis of an operand has one letter of its own");
  CHECK(refusal(contraction("i->ii"), {{3}}) == "contraction: every axis of the result has one letter of its own");
  CHECK(refusal(contraction("i->i,i"), {{3}}) == "contraction: its notation has one result");
  CHECK(refusal(contraction("ij->"), {{3, 4}}) == "");
  CHECK_THROWS_WITH_AS(contraction("abcdefghijklmnopq,abcdefghijklm->n"),
                       "a notation of more than 32 characters (at contraction); valid: at most 32 characters", error);
  CHECK(refusal(conv2d{.out = 4}, {x}) == "conv2d takes [n,c,h,w]");
  for (i64 none : {0, -6}) CHECK(refusal(conv2d{.out = none}, {image}) == "conv2d: out must be positive");
  CHECK(refusal(conv2d{.out = 4, .groups = 4}, {image}) == "channels not divisible by groups");
  CHECK(refusal(conv2d{.out = 4, .kernel = 11, .pad = 0}, {image}) == "the window is larger than the image");
  CHECK(refusal(max_pool(2, 2, 2), {image}) == "pool2d: padding over half the kernel");
  CHECK(refusal(add{}, {x, {batch_axis, b_axis(8)}}) == "operands must have one shape");
  CHECK(refusal(add{}, {x, {batch_axis, 8}}) == "");
  CHECK(refusal(relu{}, {tokens}) == "takes real numbers");
  CHECK(refusal(dropout{.rate = 1}, {x}) == "dropout: rate must be in [0, 1)");
  CHECK(refusal(concat{}, {}) == "concat: no operands");
  for (i64 axes : {-1, 7}) CHECK(refusal(constant{.value = 1, .rank = axes}, {}) == "constant: between 0 and 6 axes");
  CHECK(refusal(concat{}, {{2, 3}, {3, 3}}) == "dimensions off the concat axis differ");
  CHECK(refusal(concat{.axis_no = 2}, {{2, 3}, {2, 3}}) == "concat: no such axis");
  CHECK(refusal(split_axes{.parts = 3}, {{2, 8}}) == "dimension not divisible by the number of parts");
  CHECK(refusal(split_axes{.parts = 9}, {{2, 9}}) == "split: between 1 and 8 parts");
  CHECK(refusal(slice_axis{0, 2, 4}, {{5}}) == "slice: window outside the axis");
  CHECK(refusal(reshape{.keep = 1, .rank = 1, .d = {9}}, {{2, 8}}) == "reshape: element counts differ");
  CHECK(refusal(flatten{}, {{8}}) == "flatten: nothing to flatten");
  CHECK(refusal(merge_axes{.first = 1}, {{8, 8}}) == "no such pair of axes");
  CHECK(refusal(split_axis{.which = 0, .inner = 3}, {{8}}) == "extent not divisible by the inner extent");
  CHECK(refusal(op::sum_axis{.axis_no = 2}, {{8, 8}}) == "sum: no such axis");
  CHECK(refusal(op::sum_axis{.axis_no = 0}, {x}) == "sum: the axis must be static");
  CHECK(refusal(op::repeat_axis{.axis_no = 3, .count = 2}, {{8, 8}}) == "repeat: no such axis");
  CHECK(refusal(op::repeat_axis{.axis_no = 0, .count = 0}, {{8, 8}}) == "repeat: a count below 1");
  CHECK(refusal(embedding{.rows = 8, .width = 4}, {x}) == "embedding takes integer indices");
  CHECK(refusal(attention{.heads = 3}, {{2, 4, 8}, {2, 4, 8}, {2, 4, 8}}) == "width not divisible by heads");
  CHECK(refusal(attention{.heads = 2}, {{2, 4, 8}, {2, 4, 8}, {2, 5, 8}}) == "key and value differ");
  CHECK(refusal(op::attention_parts{.heads = 2}, {{2, 4, 8}, {2, 4, 8}, {2, 4, 8}}) == "keys and values are [batch,part,seq,hidden]");
  CHECK(refusal(op::attention_parts{.heads = 2}, {{2, 4, 8}, {2, 3, 4, 8}, {2, 2, 4, 8}}) == "key and value differ");
  CHECK(refusal(op::softmax_merge{.heads = 2, .parts = 2}, {{2, 3, 4, 12}}) == "parts left do not divide the parts");
  CHECK(refusal(op::attention_finish{.heads = 5}, {{2, 3, 4, 12}}) == "not a state of that many heads");
  CHECK(refusal(op::attention_finish{.heads = 1}, {{2, 3, 4}}) == "attention_finish takes [batch,part,seq,state]");
  CHECK(refusal(cross_entropy{}, {x, x}) == "labels must be integers");
  CHECK(refusal(cross_entropy{}, {x, tokens}) == "labels have one axis less than logits");
  CHECK(refusal(op::normalize{}, {image, {2, 5}}) == "moments do not fit the channels");
}

TEST_CASE("results") {
  auto one = [](op::any_op const& o, std::vector<shape> const& in) { return op::spell(tests::results_of(o, in)[0]); };
  CHECK(one(linear{.out = 10, .to = axis("classes")}, {{batch_axis, a_axis(8)}}) == "[batch,classes=10]");
  CHECK(one(linear{.out = 10}, {{batch_axis, a_axis(8)}}) == "[batch,a=10]");
  CHECK(one(conv2d{.out = 16, .stride = 2}, {{batch_axis, 3, 9, 8}}) == "[batch,16,5,4]");
  CHECK(one(conv2d{.out = 16, .kernel = 1, .kernel_w = 7, .pad_w = 3}, {{batch_axis, 3, 9, 8}}) == "[batch,16,9,8]");
  CHECK(one(max_pool(3, 2), {{batch_axis, 3, 9, 9}}) == "[batch,3,4,4]");
  CHECK(one(global_average{}, {{batch_axis, 3, 9, 9}}) == "[batch,3]");
  CHECK(one(flatten{}, {{batch_axis, 3, 9, 9}}) == "[batch,243]");
  CHECK(one(embedding{.rows = 9, .width = 4, .to = a_axis}, {shape{batch_axis, 7}.of(dtype::i32)}) == "[batch,7,a=4]");
  CHECK(one(embedding_bag{.rows = 9, .width = 4}, {shape{batch_axis, 7}.of(dtype::i32)}) == "[batch,4]");
  CHECK(one(split_axis{.which = 0, .inner = 2}, {{8, 3}}) == "[4,2,3]");
  CHECK(one(op::attention_parts{.heads = 2}, {{2, 4, 8}, {2, 3, 5, 8}, {2, 3, 5, 8}}) == "[2,3,4,12]");
  CHECK(one(op::softmax_merge{.heads = 2, .parts = 3}, {{2, 6, 4, 12}}) == "[2,3,4,12]");
  CHECK(one(op::attention_finish{.heads = 2}, {{2, 6, 4, 12}}) == "[2,4,8]");
  CHECK(one(op::sum_axis{.axis_no = -2}, {{batch_axis, 4, 3}}) == "[batch,3]");
  CHECK(one(op::repeat_axis{.axis_no = 1, .count = 4}, {{batch_axis, 3}}) == "[batch,4,3]");
  CHECK(one(merge_axes{.first = 0}, {{batch_axis, 4, 3}}) == "[4*batch,3]");
  CHECK(one(transpose{.a = 0}, {{2, 3, 4}}) == "[4,3,2]");
  CHECK(one(cross_entropy{}, {{batch_axis, 10}, shape{batch_axis}.of(dtype::i32)}) == "[]");
}
