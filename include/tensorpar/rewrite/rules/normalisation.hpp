// tensorpar/rewrite/rules/normalisation.hpp - proved rules about normalisation; made by scripts/make-rules, do not edit
#pragma once
#include <tensorpar/rewrite/shipped_rule.hpp>

namespace tensorpar::rules {

inline constexpr shipped_rule normalisation[] = {
    {"softmax 1", rule_kind::parallel, 6,
     "partition{dim=d,degree=k}(softmax(x)) => softmax(partition{dim=d,degree=k}(x))",
     "partition"},
    {"softmax 2", rule_kind::parallel, 6,
     "combine{dim=d,degree=k}(softmax(x)) => softmax(combine{dim=d,degree=k}(x))",
     "combine"},
    {"softmax 5", rule_kind::parallel, 4,
     "replicate{degree=k}(softmax(x)) => softmax(replicate{degree=k}(x))",
     "replicate"},
    {"layer norm 5", rule_kind::parallel, 1,
     "replicate{degree=k}(layernorm(x, x, x)) => t0 = replicate{degree=k}(x); layernorm(t0, t0, t0)",
     "replicate"},
    {"layer norm 6", rule_kind::parallel, 6,
     "t0 = replicate{degree=k}(y); layernorm(partition{dim=d,degree=k}(x), t0, t0) => partition{dim=d,degree=k}(layernorm(x, "
     "y, y))",
     "partition; replicate"},
    {"layer norm 7", rule_kind::parallel, 4,
     "t0 = replicate{degree=k}(y); layernorm(replicate{degree=k}(x), t0, t0) => replicate{degree=k}(layernorm(x, y, y))",
     "replicate"},
    {"layer norm 8", rule_kind::parallel, 1,
     "t0 = replicate{degree=k}(x); layernorm(t0, t0, replicate{degree=k}(y)) => replicate{degree=k}(layernorm(x, x, y))",
     "replicate"},
    {"layer norm 9", rule_kind::parallel, 1,
     "t0 = replicate{degree=k}(x); layernorm(t0, replicate{degree=k}(y), t0) => replicate{degree=k}(layernorm(x, y, x))",
     "replicate"},
    {"layer norm 10", rule_kind::parallel, 6,
     "layernorm(partition{dim=d,degree=k}(x), replicate{degree=k}(y), replicate{degree=k}(z)) => "
     "partition{dim=d,degree=k}(layernorm(x, y, z))",
     "partition; replicate"},
    {"layer norm 11", rule_kind::parallel, 6,
     "partition{dim=d,degree=k}(layernorm(replicate{degree=k}(combine{dim=d,degree=k}(x)), y, z)) => "
     "replicate{degree=k}(layernorm(x, y, z))",
     "partition; combine; replicate"},
    {"layer norm 15", rule_kind::parallel, 4,
     "layernorm(replicate{degree=k}(x), replicate{degree=k}(y), replicate{degree=k}(z)) => replicate{degree=k}(layernorm(x, "
     "y, z))",
     "replicate"},
    {"softmax 1, spread", rule_kind::parallel, 6,
     "softmax(x) => combine{dim=d,degree=k}(softmax(partition{dim=d,degree=k}(x)))",
     "partition; combine"},
    {"layer norm 6, spread", rule_kind::parallel, 6,
     "layernorm(x, y, y) => t0 = replicate{degree=k}(y); combine{dim=d,degree=k}(layernorm(partition{dim=d,degree=k}(x), t0, "
     "t0))",
     "partition; combine; replicate"},
    {"layer norm 10, spread", rule_kind::parallel, 6,
     "layernorm(x, y, z) => combine{dim=d,degree=k}(layernorm(partition{dim=d,degree=k}(x), replicate{degree=k}(y), "
     "replicate{degree=k}(z)))",
     "partition; combine; replicate"},
};

}  // namespace tensorpar::rules
