// tensorpar/rewrite/rules/attention.hpp - proved rules about attention; made by scripts/make-rules, do not edit
#pragma once
#include <tensorpar/rewrite/shipped_rule.hpp>

namespace tensorpar::rules {

inline constexpr shipped_rule attention[] = {
    {"attention 23", rule_kind::parallel, 4,
     "replicate{degree=k}(attention(x, x, x)) => t0 = replicate{degree=k}(x); attention(t0, t0, t0)",
     "replicate"},
    {"attention 24", rule_kind::parallel, 4,
     "partition{dim=0,degree=k}(attention(x, x, x)) => t0 = partition{dim=0,degree=k}(x); attention(t0, t0, t0)",
     "partition"},
    {"attention 25", rule_kind::parallel, 4,
     "combine{dim=0,degree=k}(attention(x, x, x)) => t0 = combine{dim=0,degree=k}(x); attention(t0, t0, t0)",
     "combine"},
    {"attention 26", rule_kind::parallel, 2,
     "partition{dim=-1,degree=k}(attention(x, x, x)) => t0 = partition{dim=-1,degree=k}(x); attention(t0, t0, t0)",
     "partition"},
    {"attention 27", rule_kind::parallel, 2,
     "combine{dim=-1,degree=k}(attention(x, x, x)) => t0 = combine{dim=-1,degree=k}(x); attention(t0, t0, t0)",
     "combine"},
    {"attention 65", rule_kind::parallel, 4,
     "t0 = replicate{degree=k}(y); attention(replicate{degree=k}(x), t0, t0) => replicate{degree=k}(attention(x, y, y))",
     "replicate"},
    {"attention 66", rule_kind::parallel, 4,
     "t0 = replicate{degree=k}(x); attention(t0, t0, replicate{degree=k}(y)) => replicate{degree=k}(attention(x, x, y))",
     "replicate"},
    {"attention 67", rule_kind::parallel, 4,
     "t0 = replicate{degree=k}(x); attention(t0, replicate{degree=k}(y), t0) => replicate{degree=k}(attention(x, y, x))",
     "replicate"},
    {"attention 68", rule_kind::parallel, 4,
     "t0 = replicate{degree=k}(y); attention(partition{dim=1,degree=k}(x), t0, t0) => partition{dim=1,degree=k}(attention(x, "
     "y, y))",
     "partition; replicate"},
    {"attention 69", rule_kind::parallel, 4,
     "t0 = partition{dim=0,degree=k}(y); attention(partition{dim=0,degree=k}(x), t0, t0) => "
     "partition{dim=0,degree=k}(attention(x, y, y))",
     "partition"},
    {"attention 70", rule_kind::parallel, 4,
     "t0 = partition{dim=0,degree=k}(x); attention(t0, t0, partition{dim=0,degree=k}(y)) => "
     "partition{dim=0,degree=k}(attention(x, x, y))",
     "partition"},
    {"attention 71", rule_kind::parallel, 4,
     "t0 = partition{dim=0,degree=k}(x); attention(t0, partition{dim=0,degree=k}(y), t0) => "
     "partition{dim=0,degree=k}(attention(x, y, x))",
     "partition"},
    {"attention 72", rule_kind::parallel, 4,
     "t0 = combine{dim=0,degree=k}(y); attention(combine{dim=0,degree=k}(x), t0, t0) => combine{dim=0,degree=k}(attention(x, "
     "y, y))",
     "combine"},
    {"attention 73", rule_kind::parallel, 4,
     "t0 = combine{dim=0,degree=k}(x); attention(t0, t0, combine{dim=0,degree=k}(y)) => combine{dim=0,degree=k}(attention(x, "
     "x, y))",
     "combine"},
    {"attention 74", rule_kind::parallel, 4,
     "t0 = combine{dim=0,degree=k}(x); attention(t0, combine{dim=0,degree=k}(y), t0) => combine{dim=0,degree=k}(attention(x, "
     "y, x))",
     "combine"},
    {"attention 75", rule_kind::parallel, 2,
     "t0 = partition{dim=-1,degree=k}(y); attention(partition{dim=-1,degree=k}(x), t0, t0) => "
     "partition{dim=-1,degree=k}(attention(x, y, y))",
     "partition"},
    {"attention 76", rule_kind::parallel, 2,
     "t0 = partition{dim=-1,degree=k}(x); attention(t0, t0, partition{dim=-1,degree=k}(y)) => "
     "partition{dim=-1,degree=k}(attention(x, x, y))",
     "partition"},
    {"attention 77", rule_kind::parallel, 2,
     "t0 = partition{dim=-1,degree=k}(x); attention(t0, partition{dim=-1,degree=k}(y), t0) => "
     "partition{dim=-1,degree=k}(attention(x, y, x))",
     "partition"},
    {"attention 78", rule_kind::parallel, 2,
     "t0 = combine{dim=-1,degree=k}(y); attention(combine{dim=-1,degree=k}(x), t0, t0) => "
     "combine{dim=-1,degree=k}(attention(x, y, y))",
     "combine"},
    {"attention 79", rule_kind::parallel, 2,
     "t0 = combine{dim=-1,degree=k}(x); attention(t0, t0, combine{dim=-1,degree=k}(y)) => "
     "combine{dim=-1,degree=k}(attention(x, x, y))",
     "combine"},
    {"attention 80", rule_kind::parallel, 2,
     "t0 = combine{dim=-1,degree=k}(x); attention(t0, combine{dim=-1,degree=k}(y), t0) => "
     "combine{dim=-1,degree=k}(attention(x, y, x))",
     "combine"},
    {"attention 82", rule_kind::parallel, 4,
     "attention(replicate{degree=k}(x), replicate{degree=k}(y), replicate{degree=k}(z)) => replicate{degree=k}(attention(x, "
     "y, z))",
     "replicate"},
    {"attention 83", rule_kind::parallel, 4,
     "attention(partition{dim=1,degree=k}(x), replicate{degree=k}(y), replicate{degree=k}(z)) => "
     "partition{dim=1,degree=k}(attention(x, y, z))",
     "partition; replicate"},
    {"attention 84", rule_kind::parallel, 4,
     "attention(partition{dim=0,degree=k}(x), partition{dim=0,degree=k}(y), partition{dim=0,degree=k}(z)) => "
     "partition{dim=0,degree=k}(attention(x, y, z))",
     "partition"},
    {"attention 85", rule_kind::parallel, 4,
     "attention(combine{dim=0,degree=k}(x), combine{dim=0,degree=k}(y), combine{dim=0,degree=k}(z)) => "
     "combine{dim=0,degree=k}(attention(x, y, z))",
     "combine"},
    {"attention 86", rule_kind::parallel, 2,
     "attention(partition{dim=-1,degree=k}(x), partition{dim=-1,degree=k}(y), partition{dim=-1,degree=k}(z)) => "
     "partition{dim=-1,degree=k}(attention(x, y, z))",
     "partition"},
    {"attention 87", rule_kind::parallel, 2,
     "attention(combine{dim=-1,degree=k}(x), combine{dim=-1,degree=k}(y), combine{dim=-1,degree=k}(z)) => "
     "combine{dim=-1,degree=k}(attention(x, y, z))",
     "combine"},
    {"attention 88", rule_kind::parallel, 4,
     "partition{dim=1,degree=k}(attention(replicate{degree=k}(combine{dim=1,degree=k}(x)), y, z)) => "
     "replicate{degree=k}(attention(x, y, z))",
     "partition; combine; replicate"},
    {"attention 24, spread", rule_kind::parallel, 4,
     "attention(x, x, x) => t0 = partition{dim=0,degree=k}(x); combine{dim=0,degree=k}(attention(t0, t0, t0))",
     "partition; combine"},
    {"attention 26, spread", rule_kind::parallel, 2,
     "attention(x, x, x) => t0 = partition{dim=-1,degree=k}(x); combine{dim=-1,degree=k}(attention(t0, t0, t0))",
     "partition; combine"},
    {"attention 68, spread", rule_kind::parallel, 4,
     "attention(x, y, y) => t0 = replicate{degree=k}(y); combine{dim=1,degree=k}(attention(partition{dim=1,degree=k}(x), t0, "
     "t0))",
     "partition; combine; replicate"},
    {"attention 69, spread", rule_kind::parallel, 4,
     "attention(x, y, y) => t0 = partition{dim=0,degree=k}(y); com"
     "bine{dim=0,degree=k}(attention(partition{dim=0,degree=k}(x), t0, t0))",
     "partition; combine"},
    {"attention 70, spread", rule_kind::parallel, 4,
     "attention(x, x, y) => t0 = partition{dim=0,degree=k}(x); combine{dim=0,degree=k}(attention(t0, t0, "
     "partition{dim=0,degree=k}(y)))",
     "partition; combine"},
    {"attention 71, spread", rule_kind::parallel, 4,
     "attention(x, y, x) => t0 = partition{dim=0,degree=k}(x); combine{dim=0,degree=k}(attention(t0, "
     "partition{dim=0,degree=k}(y), t0))",
     "partition; combine"},
    {"attention 75, spread", rule_kind::parallel, 2,
     "attention(x, y, y) => t0 = partition{dim=-1,degree=k}(y); co"
     "mbine{dim=-1,degree=k}(attention(partition{dim=-1,degree=k}(x), t0, t0))",
     "partition; combine"},
    {"attention 76, spread", rule_kind::parallel, 2,
     "attention(x, x, y) => t0 = partition{dim=-1,degree=k}(x); combine{dim=-1,degree=k}(attention(t0, t0, "
     "partition{dim=-1,degree=k}(y)))",
     "partition; combine"},
    {"attention 77, spread", rule_kind::parallel, 2,
     "attention(x, y, x) => t0 = partition{dim=-1,degree=k}(x); combine{dim=-1,degree=k}(attention(t0, "
     "partition{dim=-1,degree=k}(y), t0))",
     "partition; combine"},
    {"attention 83, spread", rule_kind::parallel, 4,
     "attention(x, y, z) => combine{dim=1,degree=k}(attention(partition{dim=1,degree=k}(x), replicate{degree=k}(y), "
     "replicate{degree=k}(z)))",
     "partition; combine; replicate"},
    {"attention 84, spread", rule_kind::parallel, 4,
     "attention(x, y, z) => combine{dim=0,degree=k}(attention(partition{dim=0,degree=k}(x), partition{dim=0,degree=k}(y), "
     "partition{dim=0,degree=k}(z)))",
     "partition; combine"},
    {"attention 86, spread", rule_kind::parallel, 2,
     "attention(x, y, z) => combine{dim=-1,degree=k}(attention(partition{dim=-1,degree=k}(x), partition{dim=-1,degree=k}(y), "
     "partition{dim=-1,degree=k}(z)))",
     "partition; combine"},
};

}  // namespace tensorpar::rules
