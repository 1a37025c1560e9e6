// tensorpar/tensorpar.hpp - the umbrella: declare a model, ask about it, lower it to a graph. Host only; of third parties Hana alone.
// Planning, simulating and running cost more to parse and are included where they are used: search/optimize.hpp, simulate/engine.hpp,
// exec/executor.hpp with exec/eigen.hpp and exec/threads.hpp, plan/plan_file.hpp, report/...
#pragma once
#include <tensorpar/typed/hana.hpp>
#include <tensorpar/typed/typed.hpp>
