// tests/prover/import.test.cpp - other systems' operators as ours, and what has no counterpart
#include <tensorpar/prover/import.hpp>
#include <doctest/doctest.h>

#include <tensorpar/rewrite/rule_text.hpp>

using namespace tensorpar;
using namespace tensorpar::prover;

namespace {
using values = std::vector<foreign_value>;
foreign_operator op(std::string type, values in, std::map<std::string, i64> parameters = {}) { return {std::move(type), std::move(in),
    std::move(parameters)}; }
std::string text(foreign_rule const& f, bool replicas) {
  imported_rule const r = import_rule(f, replicas, "");
  return r.what ? rewrite::spell(*r.what) : r.reason;
}
foreign_value const x{-1, 0}, y{-2, 0}, v{-4, 0}, w{-5, 0};
}  // namespace

TEST_CASE("FlexFlow: a replica axis, degrees of two, fused activations") {
  foreign_rule f;
  f.source = {op("OP_PARTITION", {x}, {{"PM_PARALLEL_DIM", 2}, {"PM_PARALLEL_DEGREE", 2}}), op("OP_RELU", {{0, 0}})};
  f.target = {op("OP_RELU", {x}), op("OP_PARTITION", {{0, 0}}, {{"PM_PARALLEL_DIM", 2}, {"PM_PARALLEL_DEGREE", 2}})};
  f.outputs = {{{1, 0}, {1, 0}}};
  CHECK(counts_replicas({f}));
  CHECK(text(f, true) == "relu(partition{dim=-1,degree=k}(x1)) => partition{dim=-1,degree=k}(relu(x1))");
  f.source = {op("OP_LINEAR", {x, v}, {{"PM_ACTI", 2}})};
  f.target = {op("OP_REPLICATE", {x}, {{"PM_PARALLEL_DIM", 0}}), op("OP_PARTITION", {v}, {{"PM_PARALLEL_DIM", 1}}),
              op("OP_LINEAR", {{0, 0}, {1, 0}}, {{"PM_ACTI", 2}}), op("OP_COMBINE", {{2, 0}}, {{"PM_PARALLEL_DIM", 2}})};
  f.outputs = {{{0, 0}, {3, 0}}};
  CHECK(text(f, true) ==
        "relu(linear(x1, x4)) => combine{dim=-1,degree=k}(relu(linear(replicate{degree=k}(x1), partition{dim=0,degree=k}(x4))))");
  f.target[0].parameter["PM_PARALLEL_DIM"] = 1;
  CHECK(text(f, true).starts_with("replica semantics: OP_REPLICATE along an axis of the data"));
  f.target[0].parameter["PM_PARALLEL_DIM"] = 0;
  f.target[1].parameter["PM_PARALLEL_DIM"] = 0;
  CHECK(text(f, true).starts_with("replica semantics: OP_PARTITION of the axis that counts replicas"));
  f.target = {op("OP_LINEAR", {x, w})};
  f.outputs = {{{0, 0}, {0, 0}}};
  CHECK(text(f, true) == "unbound variable: -5 is in the target alone");
  f.target = {op("OP_DROPOUT", {x})};
  CHECK(text(f, true) == "unsupported: OP_DROPOUT");
}

TEST_CASE("TASO: joined and split products, several outputs, convolutions") {
  foreign_rule f;
  f.source = {op("OP_MATMUL", {x, v}), op("OP_MATMUL", {x, w})};
  f.target = {op("OP_CONCAT", {v, w}, {{"PM_AXIS", 1}, {"PM_NUMDIM", 2}}), op("OP_MATMUL", {x, {0, 0}}),
              op("OP_SPLIT", {{1, 0}}, {{"PM_AXIS", 1}, {"PM_NUM_OUTPUTS", 2}})};
  f.outputs = {{{0, 0}, {2, 0}}, {{1, 0}, {2, 1}}};
  CHECK(!counts_replicas({f}));
  CHECK(text(f, false) ==
        "matmul{transpose_a=0,transpose_b=0}(x1, x4), matmul{transpose_a=0,transpose_b=0}(x1, x5) => "
        "t0 = matmul{transpose_a=0,transpose_b=0}(x1, concat{axis=-1}(x4, x5)); "
        "slice{axis=-1,begin=0,length=extent(x4,-1)}(t0), slice{axis=-1,begin=extent(x4,-1),length=extent(x5,-1)}(t0)");
  foreign_rule doubled;                                                // each sum reads the one before it twice
  doubled.source = {op("OP_EW_ADD", {x, x})};
  for (int i = 0; i < 100; ++i) doubled.source.push_back(op("OP_EW_ADD", {{i, 0}, {i, 0}}));
  doubled.source.push_back(op("OP_SPLIT", {{100, 0}}, {{"PM_AXIS", 1}, {"PM_NUM_OUTPUTS", 2}}));
  doubled.target = {op("OP_RELU", {x})};
  doubled.outputs = {{{101, 0}, {0, 0}}};
  CHECK(text(doubled, false) == "unsupported: OP_SPLIT of what was not joined of two variables");
  f.target[2] = op("OP_SPLIT", {x}, {{"PM_AXIS", 1}, {"PM_NUM_OUTPUTS", 2}});
  CHECK(text(f, false) == "unsupported: OP_SPLIT of what was not joined of two variables");
  std::map<std::string, i64> const conv{{"PM_KERNEL_H", 3}, {"PM_KERNEL_W", 3}, {"PM_STRIDE_H", 1}, {"PM_STRIDE_W", 1}, {"PM_PAD", 0}};
  f.source = {op("OP_CONV2D", {x, v}, conv)};
  f.target = {op("OP_CONCAT", {x, y}, {{"PM_AXIS", 1}, {"PM_NUMDIM", 4}}), op("OP_CONCAT", {v, w}, {{"PM_AXIS", 0}, {"PM_NUMDIM", 4}}),
              op("OP_CONV2D", {{0, 0}, {1, 0}}, conv)};
  f.source.push_back(op("OP_CONV2D", {y, w}, conv));
  f.source.push_back(op("OP_CONCAT", {{0, 0}, {1, 0}}, {{"PM_AXIS", 1}, {"PM_NUMDIM", 4}}));
  f.outputs = {{{2, 0}, {2, 0}}};
  CHECK(text(f, false) ==
        "concat{axis=1}(conv2d{stride=1,pad=-1,groups=1,pad_w=-1}(x1, x4), conv2d{stride=1,pad=-1,groups=1,pad_w=-1}(x2, x5)) => "
        "conv2d{stride=1,pad=-1,groups=2,pad_w=-1}(concat{axis=1}(x1, x2), concat{axis=0}(x4, x5))");
}
