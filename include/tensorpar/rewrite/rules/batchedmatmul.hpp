// tensorpar/rewrite/rules/batchedmatmul.hpp - proved rules about batched-matmul; made by scripts/make-rules, do not edit
#pragma once
#include <tensorpar/rewrite/shipped_rule.hpp>

namespace tensorpar::rules {

inline constexpr shipped_rule batched_matmul[] = {
    {"batched matmul 15", rule_kind::parallel, 9,
     "matmul{transpose_a=0,transpose_b=0}(partition{dim=d,degree=k}(x), partition{dim=d,degree=k}(y)) => "
     "partition{dim=d,degree=k}(matmul{transpose_a=0,transpose_b=0}(x, y))",
     "partition"},
    {"batched matmul 16", rule_kind::parallel, 9,
     "matmul{transpose_a=0,transpose_b=0}(combine{dim=d,degree=k}(x), combine{dim=d,degree=k}(y)) => "
     "combine{dim=d,degree=k}(matmul{transpose_a=0,transpose_b=0}(x, y))",
     "combine"},
    {"batched matmul of transposed 5", rule_kind::parallel, 3,
     "partition{dim=d,degree=k}(matmul{transpose_a=0,transpose_b=1}(x, x)) => t0 = partition{dim=d,degree=k}(x); "
     "matmul{transpose_a=0,transpose_b=1}(t0, t0) where d inside x by 2",
     "partition"},
    {"batched matmul of transposed 6", rule_kind::parallel, 3,
     "partition{dim=d,degree=k}(matmul{transpose_a=1,transpose_b=0}(x, x)) => t0 = partition{dim=d,degree=k}(x); "
     "matmul{transpose_a=1,transpose_b=0}(t0, t0) where d inside x by 2",
     "partition"},
    {"batched matmul of transposed 7", rule_kind::parallel, 3,
     "combine{dim=d,degree=k}(matmul{transpose_a=0,transpose_b=1}(x, x)) => t0 = combine{dim=d,degree=k}(x); "
     "matmul{transpose_a=0,transpose_b=1}(t0, t0) where d inside x by 2",
     "combine"},
    {"batched matmul of transposed 8", rule_kind::parallel, 3,
     "combine{dim=d,degree=k}(matmul{transpose_a=1,transpose_b=0}(x, x)) => t0 = combine{dim=d,degree=k}(x); "
     "matmul{transpose_a=1,transpose_b=0}(t0, t0) where d inside x by 2",
     "combine"},
    {"batched matmul of transposed 13", rule_kind::algebra, 3,
     "matmul{transpose_a=1,transpose_b=0}(x, matmul{transpose_a=0,transpose_b=1}(x, x)) => "
     "matmul{transpose_a=0,transpose_b=1}(matmul{transpose_a=1,transpose_b=0}(x, x), x)",
     "matmul associates; matmul of transposed, left; matmul of transposed, right"},
    {"batched matmul of transposed 14", rule_kind::algebra, 3,
     "matmul{transpose_a=1,transpose_b=0}(matmul{transpose_a=0,transpose_b=1}(x, x), x) => "
     "matmul{transpose_a=0,transpose_b=1}(x, matmul{transpose_a=1,transpose_b=0}(x, x))",
     "transpose of transpose; matmul associates; matmul of transposed, left; matmul of transposed, right; transpose of matmul"},
    {"batched matmul of transposed 15", rule_kind::parallel, 9,
     "matmul{transpose_a=0,transpose_b=1}(partition{dim=d,degree=k}(x), partition{dim=d,degree=k}(y)) => "
     "partition{dim=d,degree=k}(matmul{transpose_a=0,transpose_b=1}(x, y)) where d inside x by 2",
     "partition"},
    {"batched matmul of transposed 16", rule_kind::parallel, 9,
     "matmul{transpose_a=0,transpose_b=1}(combine{dim=d,degree=k}(x), combine{dim=d,degree=k}(y)) => "
     "combine{dim=d,degree=k}(matmul{transpose_a=0,transpose_b=1}(x, y)) where d inside x by 2",
     "combine"},
    {"batched matmul of transposed 17", rule_kind::parallel, 9,
     "matmul{transpose_a=1,transpose_b=0}(partition{dim=d,degree=k}(x), partition{dim=d,degree=k}(y)) => "
     "partition{dim=d,degree=k}(matmul{transpose_a=1,transpose_b=0}(x, y)) where d inside x by 2",
     "partition"},
    {"batched matmul of transposed 18", rule_kind::parallel, 9,
     "matmul{transpose_a=1,transpose_b=0}(combine{dim=d,degree=k}(x), combine{dim=d,degree=k}(y)) => "
     "combine{dim=d,degree=k}(matmul{transpose_a=1,transpose_b=0}(x, y)) where d inside x by 2",
     "combine"},
    {"batched matmul 15, spread", rule_kind::parallel, 9,
     "matmul{transpose_a=0,transpose_b=0}(x, y) => combine{dim=d,d"
     "egree=k}(matmul{transpose_a=0,transpose_b=0}(partition{dim=d,degree=k}(x), partition{dim=d,degree=k}(y)))",
     "partition; combine"},
    {"batched matmul of transposed 5, spread", rule_kind::parallel, 3,
     "matmul{transpose_a=0,transpose_b=1}(x, x) => t0 = partition{dim=d,degree=k}(x); "
     "combine{dim=d,degree=k}(matmul{transpose_a=0,transpose_b=1}(t0, t0)) where d inside x by 2",
     "partition; combine"},
    {"batched matmul of transposed 6, spread", rule_kind::parallel, 3,
     "matmul{transpose_a=1,transpose_b=0}(x, x) => t0 = partition{dim=d,degree=k}(x); "
     "combine{dim=d,degree=k}(matmul{transpose_a=1,transpose_b=0}(t0, t0)) where d inside x by 2",
     "partition; combine"},
    {"batched matmul of transposed 15, spread", rule_kind::parallel, 9,
     "matmul{transpose_a=0,transpose_b=1}(x, y) => combine{dim=d,d"
     "egree=k}(matmul{transpose_a=0,transpose_b=1}(partition{dim=d,degree=k}(x), partition{dim=d,degree=k}(y))) where d "
     "inside x by 2",
     "partition; combine"},
    {"batched matmul of transposed 17, spread", rule_kind::parallel, 9,
     "matmul{transpose_a=1,transpose_b=0}(x, y) => combine{dim=d,d"
     "egree=k}(matmul{transpose_a=1,transpose_b=0}(partition{dim=d,degree=k}(x), partition{dim=d,degree=k}(y))) where d "
     "inside x by 2",
     "partition; combine"},
};

}  // namespace tensorpar::rules
