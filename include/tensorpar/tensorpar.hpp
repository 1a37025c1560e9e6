// tensorpar/tensorpar.hpp - the umbrella: declare a model, have it checked, ask about it, visit it. Host
// only; of third parties Hana alone.
// What costs more to parse is included where it is used: typed/lower.hpp (the model as a run-time graph),
// graph/order.hpp (longest_path and other algorithms), search/intra/optimize.hpp, simulate/engine.hpp,
// exec/executor.hpp with exec/cpu/eigen.hpp and exec/comm/threads.hpp, plan/plan_file.hpp, report/...
#pragma once
#include <tensorpar/op/operators.hpp>
#include <tensorpar/typed/composites.hpp>
#include <tensorpar/typed/hana.hpp>
#include <tensorpar/typed/queries.hpp>
