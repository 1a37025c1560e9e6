// tensorpar/run.hpp - the umbrella of running: declare a model, read a plan, train it on threads of this
// machine. No search is in it. Needs the parts `eigen`, `json` and `threads`.
#pragma once
#include <tensorpar/exec/comm/threads.hpp>
#include <tensorpar/exec/cpu/eigen.hpp>
#include <tensorpar/exec/files/checkpoint.hpp>
#include <tensorpar/exec/trainer.hpp>
#include <tensorpar/plan/plan_file.hpp>
#include <tensorpar/tensorpar.hpp>
#include <tensorpar/typed/lower.hpp>
