// tensorpar/rewrite/rules/activated.hpp - proved rules about activated; made by scripts/make-rules, do not edit
#pragma once
#include <tensorpar/rewrite/shipped_rule.hpp>

namespace tensorpar::rules {

inline constexpr shipped_rule activated[] = {
    {"activated linear 1", rule_kind::algebra, 4,
     "relu(linear(x, y, z)) => linear_relu(x, y, z)",
     "linear and relu, biased"},
    {"activated linear 2", rule_kind::algebra, 4,
     "sigmoid(linear(x, y, z)) => linear_sigmoid(x, y, z)",
     "linear and sigmoid, biased"},
    {"activated linear 3", rule_kind::algebra, 4,
     "tanh(linear(x, y, z)) => linear_tanh(x, y, z)",
     "linear and tanh, biased"},
    {"activated linear 4", rule_kind::algebra, 4,
     "relu(linear(x, y)) => linear_relu(x, y)",
     "linear and relu"},
    {"activated linear 6", rule_kind::algebra, 4,
     "sigmoid(linear(x, y)) => linear_sigmoid(x, y)",
     "linear and sigmoid"},
    {"activated linear 8", rule_kind::algebra, 4,
     "tanh(linear(x, y)) => linear_tanh(x, y)",
     "linear and tanh"},
    {"activated convolution 1", rule_kind::algebra, 4,
     "relu(conv2d{groups=1}(x, y, z)) => conv2d_relu{groups=1}(x, y, z)",
     "conv2d and relu, biased"},
    {"activated convolution 2", rule_kind::algebra, 4,
     "relu(conv2d{groups=1}(x, y)) => conv2d_relu{groups=1}(x, y)",
     "conv2d and relu"},
};

}  // namespace tensorpar::rules
