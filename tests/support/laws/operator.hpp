// tests/support/laws/operator.hpp - the laws of `operator_`, on one operator with operands it takes
#pragma once
#include <doctest/doctest.h>

#include <string>
#include <tensorpar/ir/iteration_space.hpp>
#include <tensorpar/op/operators.hpp>
#include <vector>

namespace tests {

using namespace tensorpar;

/// Attributes that carry the extent of a loop: a part of the operator has them divided.
struct loop_attribute {
  char const *op, *attr;
  char letter;
};
inline constexpr loop_attribute loop_attributes[] = {
    {"linear", "out", 'o'},           {"conv2d", "out", 'o'},
    {"conv2d", "out", 'g'},           {"conv2d", "groups", 'g'},
    {"conv2d_grad_x", "groups", 'g'}, {"conv2d_grad_w", "groups", 'g'},
    {"attention", "heads", 'e'},      {"attention_grad", "heads", 'e'},
    {"embedding", "rows", 'v'},       {"embedding", "width", 'e'},
    {"embedding_bag", "rows", 'v'},   {"embedding_bag", "width", 'e'},
    {"embedding_grad", "rows", 'v'},  {"embedding_bag_grad", "rows", 'v'},
    {"reshape", "d0", 'a'},           {"constant", "d0", '0'},
    {"constant", "d1", '1'},          {"repeat", "count", 's'},
    {"attention_parts", "heads", 'e'},       {"attention_parts_grad", "heads", 'e'},
    {"softmax_merge", "heads", 'e'},         {"softmax_merge", "parts", 'p'},
    {"softmax_merge_grad", "heads", 'e'},    {"softmax_merge_grad", "parts", 'p'},
    {"attention_finish", "heads", 'e'},      {"attention_finish_grad", "heads", 'e'},
    {"attention_with_lse", "heads", 'e'},    {"attention_grad_from_lse", "heads", 'e'},
    {"packed_attention", "heads", 'e'},      {"packed_attention_grad", "heads", 'e'},
    {"packed_attention_with_lse", "heads", 'e'}, {"packed_attention_grad_from_lse", "heads", 'e'},
};
inline op::any_op part_of(op::any_op o, char letter, i64 parts) {
  if (o.op->first) {
    op::any_op within = o;
    within.op = o.op->first;
    within = part_of(within, letter, parts);
    within.op = o.op;
    return within;
  }
  for (loop_attribute const& a : loop_attributes)
    if (o.op->name == a.op && letter == a.letter)
      for (int i = 0; i < o.op->attrs; ++i) if (o.op->attr_name(i) == a.attr) o.attr[i] /= parts;
  return o;
}

inline std::vector<shape> results_of(op::any_op const& o, std::vector<shape> const& in) {
  op::inference const r = o.op->infer(o.attr, {in.data(), static_cast<int>(in.size())});
  INFO(op::spell(o), ": ", std::string(r.rule ? r.rule : "fine"));
  REQUIRE(r.ok());
  return std::vector<shape>(r.out, r.out + r.n);
}
inline std::vector<shape> weights_of(op::any_op const& o, std::vector<shape> const& in) {
  op::weight_list const w = o.op->weights(o.attr, {in.data(), static_cast<int>(in.size())});
  std::vector<shape> r;
  for (int i = 0; i < w.n; ++i) r.push_back(w.w[i].type);
  return r;
}
inline std::string text_of(std::vector<shape> const& v) {
  std::string s;
  for (shape const& x : v) s += op::spell(x) + " ";
  return s;
}
inline bool same_extents(std::vector<shape> const& a, std::vector<shape> const& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].rank != b[i].rank || a[i].type != b[i].type) return false;
    for (int k = 0; k < a[i].rank; ++k) if (!same_extent(a[i].d[k], b[i].d[k])) return false;
  }
  return true;
}

/// Every law; returns how many splits were tried.
inline int check_operator_laws(op::any_op const& o, std::vector<shape> const& in) {
  INFO(op::spell(o), " on ", text_of(in));
  auto const out = results_of(o, in), weights = weights_of(o, in);
  // deterministic, and as many activations as it says
  CHECK(same_extents(out, results_of(o, in)));
  CHECK((o.op->arity < 0 || o.op->arity == static_cast<int>(in.size())));
  // equality and hash follow the attributes
  op::any_op copy = o;
  CHECK(copy == o);
  CHECK(copy.hash() == o.hash());
  for (int i = 0; i < o.op->attrs; ++i) {
    CHECK(!o.op->attr_name(i).empty());
    ++copy.attr[i];
    CHECK(!(copy == o));
    CHECK(copy.hash() != o.hash());
    --copy.attr[i];
  }
  // work is never negative
  CHECK(o.op->flops(o.attr, {in.data(), static_cast<int>(in.size())}, {out.data(), static_cast<int>(out.size())}) >= 0);

  std::vector<shape> all = in;
  all.insert(all.end(), weights.begin(), weights.end());
  ir::iteration_space const space = ir::space_of(o, all, out);
  // every axis of every operand and result belongs to exactly one loop
  auto covered = [&](std::vector<shape> const& tensors, bool result) {
    for (std::size_t k = 0; k < tensors.size(); ++k)
      for (int a = 0; a < tensors[k].rank; ++a) {
        int loops_here = 0;
        for (ir::node_loop const& l : space.loops) loops_here += (result ? l.out[k] : l.in[k]) == a;
        INFO("axis ", a, " of ", result ? "result " : "operand ", k);
        CHECK(loops_here == 1);
      }
  };
  covered(all, false);
  covered(out, true);
  // splitting a loop into parts and inferring on parts gives the parts of the results
  int splits = 0;
  auto divided = [](std::vector<shape> tensors, ir::axis_list<int> const& axis_of, i64 parts) {
    for (std::size_t k = 0; k < tensors.size(); ++k)
      if (axis_of[k] >= 0) {
        REQUIRE(tensors[k].d[axis_of[k]].n % parts == 0);
        tensors[k].d[axis_of[k]].n /= parts;
      }
    return tensors;
  };
  for (ir::node_loop const& l : space.loops) {
    CHECK(l.units >= 1);
    bool stands_in_result = false;
    for (int a : l.out) stands_in_result = stands_in_result || a >= 0;
    CHECK(l.reduced == !stands_in_result);
    for (i64 parts = 2; parts <= l.units; ++parts) {
      if (l.units % parts) continue;
      INFO("loop ", std::string(1, l.letter), " in ", parts, " parts");
      op::any_op const part = part_of(o, l.letter, parts);
      std::vector<shape> const some = divided(all, l.in, parts),
                               activations(some.begin(), some.begin() + static_cast<std::ptrdiff_t>(in.size()));
      auto const got = results_of(part, activations), expected = divided(out, l.out, parts);
      INFO("got ", text_of(got), "expected ", text_of(expected));
      CHECK(same_extents(got, expected));
      CHECK(same_extents(weights_of(part, activations),
                         std::vector<shape>(some.begin() + static_cast<std::ptrdiff_t>(in.size()), some.end())));
      ++splits;
    }
  }
  return splits;
}

/// load(save(o)) == o, for every attribute, whatever its value.
template <op::operator_ Op> void check_attribute_laws(Op const& o) {
  op::any_op const e(o);
  Op const back = e.as<Op>();
  CHECK(op::any_op(back) == e);
  CHECK(e.is<Op>());
  CHECK(e.op->attrs == op::attr_count<Op>());
  CHECK(op::attr_count<Op>() <= op::max_attrs);
  op::any_op f = e;
  for (int i = 0; i < f.op->attrs; ++i) {
    f.attr[i] = f.op->attr_kind(i) == 'b' ? 1 - f.attr[i] : f.op->attr_kind(i) == 'f' ? std::bit_cast<i64>(0.125 + i) : 37 + i;
  }
  CHECK(op::any_op(f.as<Op>()) == f);
}

}  // namespace tests
