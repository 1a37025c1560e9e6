// tensorpar/typed/typed.hpp - declaring models: everything but the Hana view
#pragma once
#include <tensorpar/graph/order.hpp>
#include <tensorpar/graph/sp/series_parallel.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/typed/composites.hpp>
#include <tensorpar/typed/freeze.hpp>
#include <tensorpar/typed/lower.hpp>
#include <tensorpar/typed/queries.hpp>
