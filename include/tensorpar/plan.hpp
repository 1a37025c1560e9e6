// tensorpar/plan.hpp - the umbrella of planning: declare a model, describe a machine, plan its training.
// `plan_training` (search/plan_training.hpp) is the one entry. Needs the part `threads`.
#pragma once
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/ir/machine/machine_presets.hpp>
#include <tensorpar/search/plan_training.hpp>
#include <tensorpar/tensorpar.hpp>
#include <tensorpar/typed/lower.hpp>
