// tensorpar/rewrite/rules/matmul.hpp - proved rules about matmul; made by scripts/make-rules, do not edit
#pragma once
#include <tensorpar/rewrite/shipped_rule.hpp>

namespace tensorpar::rules {

inline constexpr shipped_rule matmul[] = {
    {"matmul 2", rule_kind::algebra, 9,
     "matmul{transpose_a=0,transpose_b=0}(scale{factor=s}(x), y) => matmul{transpose_a=0,transpose_b=0}(x, scale{factor=s}(y))",
     "matmul of scale, left; matmul of scale, right"},
    {"matmul 3", rule_kind::algebra, 9,
     "scale{factor=s}(matmul{transpose_a=0,transpose_b=0}(x, y)) => matmul{transpose_a=0,transpose_b=0}(x, scale{factor=s}(y))",
     "matmul of scale, right"},
    {"matmul 4", rule_kind::algebra, 9,
     "matmul{transpose_a=0,transpose_b=0}(add(x, x), y) => matmul{transpose_a=0,transpose_b=0}(x, add(y, y))",
     "matmul of add, left; matmul of add, right"},
    {"matmul 5", rule_kind::algebra, 9,
     "t0 = matmul{transpose_a=0,transpose_b=0}(x, y); add(t0, t0) => matmul{transpose_a=0,transpose_b=0}(x, add(y, y))",
     "matmul of add, right"},
    {"matmul 34", rule_kind::algebra, 9,
     "add(matmul{transpose_a=0,transpose_b=0}(x, y), matmul{transpose_a=0,transpose_b=0}(x, z)) => "
     "matmul{transpose_a=0,transpose_b=0}(x, add(y, z))",
     "matmul of add, right"},
    {"matmul 35", rule_kind::algebra, 9,
     "matmul{transpose_a=0,transpose_b=0}(transpose{a=-2,b=-1}(x), transpose{a=-2,b=-1}(y)) => "
     "transpose{a=-2,b=-1}(matmul{transpose_a=0,transpose_b=0}(y, x))",
     "transpose of matmul"},
    {"matmul 37", rule_kind::algebra, 3,
     "transpose{a=-2,b=-1}(matmul{transpose_a=0,transpose_b=0}(x, transpose{a=-2,b=-1}(x))) => "
     "matmul{transpose_a=0,transpose_b=0}(x, transpose{a=-2,b=-1}(x))",
     "transpose of transpose; transpose of matmul"},
    {"matmul 56", rule_kind::algebra, 9,
     "matmul{transpose_a=0,transpose_b=0}(add(x, scale{factor=s}(x)), y) => matmul{transpose_a=0,transpose_b=0}(x, add(y, "
     "scale{factor=s}(y)))",
     "matmul of add, left; matmul of add, right; matmul of scale, left; matmul of scale, right"},
    {"matmul 88", rule_kind::parallel, 9,
     "reduce{degree=k}(transpose{a=-2,b=-1}(matmul{transpose_a=0,transpose_b=0}(x, y))) => "
     "transpose{a=-2,b=-1}(reduce{degree=k}(matmul{transpose_a=0,transpose_b=0}(x, y)))",
     "reduce"},
    {"matmul 90", rule_kind::algebra, 9,
     "matmul{transpose_a=0,transpose_b=0}(add(x, add(x, x)), y) => matmul{transpose_a=0,transpose_b=0}(x, add(y, add(y, y)))",
     "matmul of add, left; matmul of add, right"},
    {"matmul of transposed 1", rule_kind::algebra, 9,
     "matmul{transpose_a=0,transpose_b=0}(x, transpose{a=-2,b=-1}(y)) => matmul{transpose_a=0,transpose_b=1}(x, y)",
     "matmul of transposed, right"},
    {"matmul of transposed 2", rule_kind::algebra, 9,
     "matmul{transpose_a=0,transpose_b=1}(x, transpose{a=-2,b=-1}(y)) => matmul{transpose_a=0,transpose_b=0}(x, y)",
     "transpose of transpose; matmul of transposed, right"},
    {"matmul of transposed 3", rule_kind::algebra, 9,
     "matmul{transpose_a=1,transpose_b=0}(transpose{a=-2,b=-1}(x), y) => matmul{transpose_a=0,transpose_b=0}(x, y)",
     "transpose of transpose; matmul of transposed, left"},
    {"matmul of transposed 4", rule_kind::algebra, 9,
     "transpose{a=-2,b=-1}(matmul{transpose_a=0,transpose_b=1}(x, y)) => matmul{transpose_a=0,transpose_b=1}(y, x)",
     "transpose of transpose; matmul of transposed, right; transpose of matmul"},
    {"matmul of transposed 6", rule_kind::algebra, 3,
     "matmul{transpose_a=0,transpose_b=0}(transpose{a=-2,b=-1}(x), x) => matmul{transpose_a=1,transpose_b=0}(x, x)",
     "matmul of transposed, left"},
    {"matmul of transposed 10", rule_kind::algebra, 3,
     "transpose{a=-2,b=-1}(matmul{transpose_a=1,transpose_b=0}(x, x)) => matmul{transpose_a=1,transpose_b=0}(x, x)",
     "transpose of transpose; matmul of transposed, left; transpose of matmul"},
    {"matmul of transposed 15", rule_kind::algebra, 9,
     "matmul{transpose_a=1,transpose_b=0}(x, transpose{a=-2,b=-1}(y)) => "
     "matmul{transpose_a=0,transpose_b=1}(transpose{a=-2,b=-1}(x), y)",
     "matmul of transposed, left; matmul of transposed, right"},
    {"matmul of transposed 16", rule_kind::algebra, 9,
     "transpose{a=-2,b=-1}(matmul{transpose_a=0,transpose_b=0}(x, y)) => "
     "matmul{transpose_a=0,transpose_b=1}(transpose{a=-2,b=-1}(y), x)",
     "matmul of transposed, right; transpose of matmul"},
    {"matmul of transposed 19", rule_kind::parallel, 3,
     "replicate{degree=k}(matmul{transpose_a=0,transpose_b=1}(x, x)) => t0 = replicate{degree=k}(x); "
     "matmul{transpose_a=0,transpose_b=1}(t0, t0)",
     "replicate"},
    {"matmul of transposed 20", rule_kind::parallel, 3,
     "replicate{degree=k}(matmul{transpose_a=1,transpose_b=0}(x, x)) => t0 = replicate{degree=k}(x); "
     "matmul{transpose_a=1,transpose_b=0}(t0, t0)",
     "replicate"},
    {"matmul of transposed 21", rule_kind::parallel, 3,
     "reduce{degree=k}(matmul{transpose_a=0,transpose_b=1}(x, x)) => t0 = combine{dim=-1,degree=k}(x); "
     "matmul{transpose_a=0,transpose_b=1}(t0, t0)",
     "combine; reduce"},
    {"matmul of transposed 22", rule_kind::parallel, 3,
     "reduce{degree=k}(matmul{transpose_a=1,transpose_b=0}(x, x)) => t0 = combine{dim=-2,degree=k}(x); "
     "matmul{transpose_a=1,transpose_b=0}(t0, t0)",
     "combine; reduce"},
    {"matmul of transposed 33", rule_kind::parallel, 9,
     "matmul{transpose_a=0,transpose_b=1}(partition{dim=-2,degree=k}(x), replicate{degree=k}(y)) => "
     "partition{dim=-2,degree=k}(matmul{transpose_a=0,transpose_b=1}(x, y))",
     "partition; replicate"},
    {"matmul of transposed 34", rule_kind::parallel, 9,
     "matmul{transpose_a=0,transpose_b=1}(combine{dim=-1,degree=k}(x), combine{dim=-1,degree=k}(y)) => "
     "reduce{degree=k}(matmul{transpose_a=0,transpose_b=1}(x, y))",
     "combine; reduce"},
    {"matmul of transposed 35", rule_kind::parallel, 9,
     "matmul{transpose_a=0,transpose_b=1}(replicate{degree=k}(x), partition{dim=-2,degree=k}(y)) => "
     "partition{dim=-1,degree=k}(matmul{transpose_a=0,transpose_b=1}(x, y))",
     "partition; replicate"},
    {"matmul of transposed 36", rule_kind::parallel, 9,
     "matmul{transpose_a=0,transpose_b=1}(replicate{degree=k}(x), replicate{degree=k}(y)) => "
     "replicate{degree=k}(matmul{transpose_a=0,transpose_b=1}(x, y))",
     "replicate"},
    {"matmul of transposed 37", rule_kind::hybrid, 9,
     "transpose{a=-2,b=-1}(partition{dim=-2,degree=k}(matmul{transpose_a=0,transpose_b=1}(x, y))) => "
     "partition{dim=-1,degree=k}(matmul{transpose_a=0,transpose_b=1}(y, x))",
     "partition; transpose of transpose; matmul of transposed, right; transpose of matmul"},
    {"matmul of transposed 38", rule_kind::hybrid, 9,
     "transpose{a=-2,b=-1}(partition{dim=-1,degree=k}(matmul{transpose_a=0,transpose_b=1}(x, y))) => "
     "partition{dim=-2,degree=k}(matmul{transpose_a=0,transpose_b=1}(y, x))",
     "partition; transpose of transpose; matmul of transposed, right; transpose of matmul"},
    {"matmul of transposed 39", rule_kind::hybrid, 9,
     "transpose{a=-2,b=-1}(combine{dim=-2,degree=k}(matmul{transpose_a=0,transpose_b=1}(x, y))) => "
     "combine{dim=-1,degree=k}(matmul{transpose_a=0,transpose_b=1}(y, x))",
     "combine; transpose of transpose; matmul of transposed, right; transpose of matmul"},
    {"matmul of transposed 40", rule_kind::hybrid, 9,
     "transpose{a=-2,b=-1}(combine{dim=-1,degree=k}(matmul{transpose_a=0,transpose_b=1}(x, y))) => "
     "combine{dim=-2,degree=k}(matmul{transpose_a=0,transpose_b=1}(y, x))",
     "combine; transpose of transpose; matmul of transposed, right; transpose of matmul"},
    {"matmul of transposed 41", rule_kind::hybrid, 9,
     "transpose{a=-2,b=-1}(replicate{degree=k}(matmul{transpose_a=0,transpose_b=1}(x, y))) => "
     "replicate{degree=k}(matmul{transpose_a=0,transpose_b=1}(y, x))",
     "replicate; transpose of transpose; matmul of transposed, right; transpose of matmul"},
    {"matmul of transposed 42", rule_kind::hybrid, 9,
     "transpose{a=-2,b=-1}(reduce{degree=k}(matmul{transpose_a=0,transpose_b=1}(x, y))) => "
     "reduce{degree=k}(matmul{transpose_a=0,transpose_b=1}(y, x))",
     "reduce; transpose of transpose; matmul of transposed, right; transpose of matmul"},
    {"matmul of transposed 61", rule_kind::parallel, 3,
     "matmul{transpose_a=1,transpose_b=0}(partition{dim=-1,degree=k}(x), replicate{degree=k}(x)) => "
     "partition{dim=-2,degree=k}(matmul{transpose_a=1,transpose_b=0}(x, x))",
     "partition; replicate"},
    {"matmul of transposed 62", rule_kind::parallel, 3,
     "matmul{transpose_a=1,transpose_b=0}(replicate{degree=k}(x), partition{dim=-1,degree=k}(x)) => "
     "partition{dim=-1,degree=k}(matmul{transpose_a=1,transpose_b=0}(x, x))",
     "partition; replicate"},
    {"matmul of transposed 79", rule_kind::hybrid, 3,
     "transpose{a=-2,b=-1}(partition{dim=-2,degree=k}(matmul{transpose_a=1,transpose_b=0}(x, x))) => "
     "partition{dim=-1,degree=k}(matmul{transpose_a=1,transpose_b=0}(x, x))",
     "partition; transpose of transpose; matmul of transposed, left; transpose of matmul"},
    {"matmul of transposed 81", rule_kind::hybrid, 3,
     "transpose{a=-2,b=-1}(partition{dim=-1,degree=k}(matmul{transpose_a=1,transpose_b=0}(x, x))) => "
     "partition{dim=-2,degree=k}(matmul{transpose_a=1,transpose_b=0}(x, x))",
     "partition; transpose of transpose; matmul of transposed, left; transpose of matmul"},
    {"matmul of transposed 83", rule_kind::hybrid, 3,
     "transpose{a=-2,b=-1}(combine{dim=-2,degree=k}(matmul{transpose_a=1,transpose_b=0}(x, x))) => "
     "combine{dim=-1,degree=k}(matmul{transpose_a=1,transpose_b=0}(x, x))",
     "combine; transpose of transpose; matmul of transposed, left; transpose of matmul"},
    {"matmul of transposed 85", rule_kind::hybrid, 3,
     "transpose{a=-2,b=-1}(combine{dim=-1,degree=k}(matmul{transpose_a=1,transpose_b=0}(x, x))) => "
     "combine{dim=-2,degree=k}(matmul{transpose_a=1,transpose_b=0}(x, x))",
     "combine; transpose of transpose; matmul of transposed, left; transpose of matmul"},
    {"matmul of transposed 91", rule_kind::parallel, 9,
     "combine{dim=-2,degree=k}(replicate{degree=k}(matmul{transpose_a=0,transpose_b=1}(x, y))) => "
     "matmul{transpose_a=0,transpose_b=1}(combine{dim=-2,degree=k}(replicate{degree=k}(x)), y)",
     "combine; replicate"},
    {"matmul of transposed 95", rule_kind::parallel, 9,
     "combine{dim=-1,degree=k}(replicate{degree=k}(matmul{transpose_a=0,transpose_b=1}(x, y))) => "
     "matmul{transpose_a=0,transpose_b=1}(x, combine{dim=-2,degree=k}(replicate{degree=k}(y)))",
     "combine; replicate"},
    {"matmul of transposed 107", rule_kind::parallel, 3,
     "t0 = combine{dim=-2,degree=k}(x); partition{dim=-2,degree=k}(matmul{transpose_a=0,transpose_b=1}(t0, t0)) => "
     "matmul{transpose_a=0,transpose_b=1}(x, combine{dim=-2,degree=k}(replicate{degree=k}(x)))",
     "partition; combine; replicate"},
    {"matmul of transposed 108", rule_kind::parallel, 3,
     "t0 = combine{dim=-1,degree=k}(x); partition{dim=-2,degree=k}(matmul{transpose_a=1,transpose_b=0}(t0, t0)) => "
     "matmul{transpose_a=1,transpose_b=0}(x, combine{dim=-1,degree=k}(replicate{degree=k}(x)))",
     "partition; combine; replicate"},
    {"matmul of transposed 110", rule_kind::parallel, 3,
     "partition{dim=-2,degree=k}(partition{dim=-1,degree=k}(matmul{transpose_a=1,transpose_b=0}(x, x))) => t0 = "
     "partition{dim=-1,degree=k}(replicate{degree=k}(x)); matmul{transpose_a=1,transpose_b=0}(t0, t0)",
     "partition; replicate"},
    {"matmul of transposed 111", rule_kind::parallel, 3,
     "t0 = combine{dim=-2,degree=k}(x); partition{dim=-1,degree=k}(matmul{transpose_a=0,transpose_b=1}(t0, t0)) => "
     "matmul{transpose_a=0,transpose_b=1}(combine{dim=-2,degree=k}(replicate{degree=k}(x)), x)",
     "partition; combine; replicate"},
    {"matmul of transposed 112", rule_kind::parallel, 3,
     "t0 = combine{dim=-1,degree=k}(x); partition{dim=-1,degree=k}(matmul{transpose_a=1,transpose_b=0}(t0, t0)) => "
     "matmul{transpose_a=1,transpose_b=0}(combine{dim=-1,degree=k}(replicate{degree=k}(x)), x)",
     "partition; combine; replicate"},
    {"matmul of transposed 116", rule_kind::parallel, 3,
     "t0 = replicate{degree=k}(x); combine{dim=-2,degree=k}(matmul{transpose_a=1,transpose_b=0}(t0, t0)) => "
     "matmul{transpose_a=1,transpose_b=0}(combine{dim=-1,degree=k}(replicate{degree=k}(x)), x)",
     "combine; replicate"},
    {"matmul of transposed 120", rule_kind::parallel, 3,
     "t0 = replicate{degree=k}(x); combine{dim=-1,degree=k}(matmul{transpose_a=1,transpose_b=0}(t0, t0)) => "
     "matmul{transpose_a=1,transpose_b=0}(x, combine{dim=-1,degree=k}(replicate{degree=k}(x)))",
     "combine; replicate"},
    {"matmul, transposed 5", rule_kind::parallel, 9,
     "matmul{transpose_a=1,transpose_b=0}(partition{dim=-1,degree=k}(x), replicate{degree=k}(y)) => "
     "partition{dim=-2,degree=k}(matmul{transpose_a=1,transpose_b=0}(x, y))",
     "partition; replicate"},
    {"matmul, transposed 6", rule_kind::parallel, 9,
     "matmul{transpose_a=1,transpose_b=0}(combine{dim=-2,degree=k}(x), combine{dim=-2,degree=k}(y)) => "
     "reduce{degree=k}(matmul{transpose_a=1,transpose_b=0}(x, y))",
     "combine; reduce"},
    {"matmul, transposed 7", rule_kind::parallel, 9,
     "matmul{transpose_a=1,transpose_b=0}(replicate{degree=k}(x), partition{dim=-1,degree=k}(y)) => "
     "partition{dim=-1,degree=k}(matmul{transpose_a=1,transpose_b=0}(x, y))",
     "partition; replicate"},
    {"matmul, transposed 8", rule_kind::parallel, 9,
     "matmul{transpose_a=1,transpose_b=0}(replicate{degree=k}(x), replicate{degree=k}(y)) => "
     "replicate{degree=k}(matmul{transpose_a=1,transpose_b=0}(x, y))",
     "replicate"},
    {"matmul, transposed 11", rule_kind::parallel, 9,
     "combine{dim=-2,degree=k}(replicate{degree=k}(matmul{transpose_a=1,transpose_b=0}(x, y))) => "
     "matmul{transpose_a=1,transpose_b=0}(combine{dim=-1,degree=k}(replicate{degree=k}(x)), y)",
     "combine; replicate"},
    {"matmul, transposed 14", rule_kind::parallel, 9,
     "combine{dim=-1,degree=k}(replicate{degree=k}(matmul{transpose_a=1,transpose_b=0}(x, y))) => "
     "matmul{transpose_a=1,transpose_b=0}(x, combine{dim=-1,degree=k}(replicate{degree=k}(y)))",
     "combine; replicate"},
    {"matmul chain 1", rule_kind::algebra, 9,
     "matmul{transpose_a=0,transpose_b=0}(matmul{transpose_a=0,transpose_b=0}(x, y), z) => "
     "matmul{transpose_a=0,transpose_b=0}(x, matmul{transpose_a=0,transpose_b=0}(y, z))",
     "matmul associates"},
    {"matmul of concat 2", rule_kind::algebra, 9,
     "t0 = matmul{transpose_a=0,transpose_b=0}(x, y); concat{axis=-2}(t0, t0) => "
     "matmul{transpose_a=0,transpose_b=0}(concat{axis=-2}(x, x), y)",
     "matmul of concat, rows"},
    {"matmul of concat 3", rule_kind::algebra, 9,
     "t0 = matmul{transpose_a=0,transpose_b=0}(x, y); concat{axis=-1}(t0, t0) => matmul{transpose_a=0,transpose_b=0}(x, "
     "concat{axis=-1}(y, y))",
     "matmul of concat, columns"},
    {"matmul of concat 11", rule_kind::algebra, 9,
     "matmul{transpose_a=0,transpose_b=0}(concat{axis=-1}(x, x), concat{axis=-2}(y, z)) => "
     "matmul{transpose_a=0,transpose_b=0}(x, add(y, z))",
     "matmul of add, right; sum of matmuls"},
    {"matmul of concat 13", rule_kind::algebra, 9,
     "matmul{transpose_a=0,transpose_b=0}(concat{axis=-1}(x, y), concat{axis=-2}(z, z)) => "
     "matmul{transpose_a=0,transpose_b=0}(add(x, y), z)",
     "matmul of add, left; sum of matmuls"},
    {"matmul of concat 15", rule_kind::algebra, 9,
     "add(matmul{transpose_a=0,transpose_b=0}(x, y), matmul{transpose_a=0,transpose_b=0}(z, y)) => "
     "matmul{transpose_a=0,transpose_b=0}(add(x, z), y)",
     "matmul of add, left"},
    {"matmul of concat 16", rule_kind::algebra, 9,
     "concat{axis=-2}(matmul{transpose_a=0,transpose_b=0}(x, y), matmul{transpose_a=0,transpose_b=0}(z, y)) => "
     "matmul{transpose_a=0,transpose_b=0}(concat{axis=-2}(x, z), y)",
     "matmul of concat, rows"},
    {"matmul of concat 17", rule_kind::algebra, 9,
     "concat{axis=-1}(matmul{transpose_a=0,transpose_b=0}(x, y), matmul{transpose_a=0,transpose_b=0}(x, z)) => "
     "matmul{transpose_a=0,transpose_b=0}(x, concat{axis=-1}(y, z))",
     "matmul of concat, columns"},
    {"matmul of concat 21", rule_kind::algebra, 9,
     "transpose{a=-2,b=-1}(matmul{transpose_a=0,transpose_b=0}(x, transpose{a=-2,b=-1}(y))) => "
     "matmul{transpose_a=0,transpose_b=0}(y, transpose{a=-2,b=-1}(x))",
     "transpose of transpose; transpose of matmul"},
    {"matmul of concat 22", rule_kind::algebra, 9,
     "transpose{a=-2,b=-1}(matmul{transpose_a=0,transpose_b=0}(transpose{a=-2,b=-1}(x), y)) => "
     "matmul{transpose_a=0,transpose_b=0}(transpose{a=-2,b=-1}(y), x)",
     "transpose of transpose; transpose of matmul"},
    {"matmul of concat 23", rule_kind::algebra, 6,
     "transpose{a=-2,b=-1}(add(x, transpose{a=-2,b=-1}(y))) => add(y, transpose{a=-2,b=-1}(x))",
     "add commutes; transpose of transpose; transpose of add"},
    {"matmul of concat 24", rule_kind::algebra, 6,
     "transpose{a=-2,b=-1}(concat{axis=-2}(x, transpose{a=-2,b=-1}(y))) => concat{axis=-1}(transpose{a=-2,b=-1}(x), y)",
     "transpose of transpose; transpose of concat"},
    {"matmul of concat 25", rule_kind::algebra, 6,
     "transpose{a=-2,b=-1}(concat{axis=-2}(transpose{a=-2,b=-1}(x), y)) => concat{axis=-1}(x, transpose{a=-2,b=-1}(y))",
     "transpose of transpose; transpose of concat"},
    {"matmul of concat 26", rule_kind::algebra, 6,
     "transpose{a=-2,b=-1}(concat{axis=-1}(x, transpose{a=-2,b=-1}(y))) => concat{axis=-2}(transpose{a=-2,b=-1}(x), y)",
     "transpose of transpose; transpose of concat, second axis"},
    {"matmul of concat 27", rule_kind::algebra, 6,
     "transpose{a=-2,b=-1}(concat{axis=-1}(transpose{a=-2,b=-1}(x), y)) => concat{axis=-2}(x, transpose{a=-2,b=-1}(y))",
     "transpose of transpose; transpose of concat, second axis"},
    {"matmul of concat 28", rule_kind::algebra, 6,
     "concat{axis=-2}(transpose{a=-2,b=-1}(x), transpose{a=-2,b=-1}(y)) => transpose{a=-2,b=-1}(concat{axis=-1}(x, y))",
     "transpose of concat, second axis"},
    {"matmul of concat 29", rule_kind::algebra, 6,
     "concat{axis=-1}(transpose{a=-2,b=-1}(x), transpose{a=-2,b=-1}(y)) => transpose{a=-2,b=-1}(concat{axis=-2}(x, y))",
     "transpose of concat"},
    {"matmul of concat 35", rule_kind::algebra, 9,
     "add(matmul{transpose_a=0,transpose_b=0}(x, y), matmul{transpose_a=0,transpose_b=0}(z, u)) => "
     "matmul{transpose_a=0,transpose_b=0}(concat{axis=-1}(x, z), concat{axis=-2}(y, u))",
     "sum of matmuls"},
    {"matmul of concat 137", rule_kind::algebra, 6,
     "t0 = matmul{transpose_a=0,transpose_b=0}(x, y); matmul{trans"
     "pose_a=0,transpose_b=0}(matmul{transpose_a=0,transpose_b=0}(t0, t0), x) => t0 = matmul{transpose_a=0,transpose_b=0}(y, "
     "x); matmul{transpose_a=0,transpose_b=0}(x, matmul{transpose_a=0,transpose_b=0}(t0, t0))",
     "matmul associates"},
    {"matmul of transposed 21, spread", rule_kind::parallel, 3,
     "matmul{transpose_a=0,transpose_b=1}(x, x) => t0 = partition{dim=-1,degree=k}(x); "
     "reduce{degree=k}(matmul{transpose_a=0,transpose_b=1}(t0, t0))",
     "partition; reduce"},
    {"matmul of transposed 22, spread", rule_kind::parallel, 3,
     "matmul{transpose_a=1,transpose_b=0}(x, x) => t0 = partition{dim=-2,degree=k}(x); "
     "reduce{degree=k}(matmul{transpose_a=1,transpose_b=0}(t0, t0))",
     "partition; reduce"},
    {"matmul of transposed 33, spread", rule_kind::parallel, 9,
     "matmul{transpose_a=0,transpose_b=1}(x, y) => combine{dim=-2,"
     "degree=k}(matmul{transpose_a=0,transpose_b=1}(partition{dim=-2,degree=k}(x), replicate{degree=k}(y)))",
     "partition; combine; replicate"},
    {"matmul of transposed 34, spread", rule_kind::parallel, 9,
     "matmul{transpose_a=0,transpose_b=1}(x, y) => reduce{degree=k"
     "}(matmul{transpose_a=0,transpose_b=1}(partition{dim=-1,degree=k}(x), partition{dim=-1,degree=k}(y)))",
     "partition; reduce"},
    {"matmul of transposed 35, spread", rule_kind::parallel, 9,
     "matmul{transpose_a=0,transpose_b=1}(x, y) => combine{dim=-1,"
     "degree=k}(matmul{transpose_a=0,transpose_b=1}(replicate{degree=k}(x), partition{dim=-2,degree=k}(y)))",
     "partition; combine; replicate"},
    {"matmul of transposed 37, spread", rule_kind::hybrid, 9,
     "matmul{transpose_a=0,transpose_b=1}(y, x) => combine{dim=-1,"
     "degree=k}(transpose{a=-2,b=-1}(partition{dim=-2,degree=k}(matmul{transpose_a=0,transpose_b=1}(x, y))))",
     "partition; combine; transpose of transpose; matmul of transposed, right; transpose of matmul"},
    {"matmul of transposed 38, spread", rule_kind::hybrid, 9,
     "matmul{transpose_a=0,transpose_b=1}(y, x) => combine{dim=-2,"
     "degree=k}(transpose{a=-2,b=-1}(partition{dim=-1,degree=k}(matmul{transpose_a=0,transpose_b=1}(x, y))))",
     "partition; combine; transpose of transpose; matmul of transposed, right; transpose of matmul"},
    {"matmul of transposed 61, spread", rule_kind::parallel, 3,
     "matmul{transpose_a=1,transpose_b=0}(x, x) => combine{dim=-2,"
     "degree=k}(matmul{transpose_a=1,transpose_b=0}(partition{dim=-1,degree=k}(x), replicate{degree=k}(x)))",
     "partition; combine; replicate"},
    {"matmul of transposed 62, spread", rule_kind::parallel, 3,
     "matmul{transpose_a=1,transpose_b=0}(x, x) => combine{dim=-1,"
     "degree=k}(matmul{transpose_a=1,transpose_b=0}(replicate{degree=k}(x), partition{dim=-1,degree=k}(x)))",
     "partition; combine; replicate"},
    {"matmul of transposed 79, spread", rule_kind::hybrid, 3,
     "matmul{transpose_a=1,transpose_b=0}(x, x) => combine{dim=-1,"
     "degree=k}(transpose{a=-2,b=-1}(partition{dim=-2,degree=k}(matmul{transpose_a=1,transpose_b=0}(x, x))))",
     "partition; combine; transpose of transpose; matmul of transposed, left; transpose of matmul"},
    {"matmul of transposed 81, spread", rule_kind::hybrid, 3,
     "matmul{transpose_a=1,transpose_b=0}(x, x) => combine{dim=-2,"
     "degree=k}(transpose{a=-2,b=-1}(partition{dim=-1,degree=k}(matmul{transpose_a=1,transpose_b=0}(x, x))))",
     "partition; combine; transpose of transpose; matmul of transposed, left; transpose of matmul"},
    {"matmul, transposed 5, spread", rule_kind::parallel, 9,
     "matmul{transpose_a=1,transpose_b=0}(x, y) => combine{dim=-2,"
     "degree=k}(matmul{transpose_a=1,transpose_b=0}(partition{dim=-1,degree=k}(x), replicate{degree=k}(y)))",
     "partition; combine; replicate"},
    {"matmul, transposed 6, spread", rule_kind::parallel, 9,
     "matmul{transpose_a=1,transpose_b=0}(x, y) => reduce{degree=k"
     "}(matmul{transpose_a=1,transpose_b=0}(partition{dim=-2,degree=k}(x), partition{dim=-2,degree=k}(y)))",
     "partition; reduce"},
    {"matmul, transposed 7, spread", rule_kind::parallel, 9,
     "matmul{transpose_a=1,transpose_b=0}(x, y) => combine{dim=-1,"
     "degree=k}(matmul{transpose_a=1,transpose_b=0}(replicate{degree=k}(x), partition{dim=-1,degree=k}(y)))",
     "partition; combine; replicate"},
};

}  // namespace tensorpar::rules
