// model.hpp - what is trained: everything else sees a graph, never the type that declares it
#pragma once
#include <tensorpar/exec/device/host.hpp>
#include <tensorpar/program/training_problem.hpp>

/// The model with its batch and its optimizer.
tensorpar::training_problem problem();
/// The samples of one step, the same for the same seed.
tensorpar::host_batch samples(unsigned seed);
