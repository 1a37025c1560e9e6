// tensorpar/ranges/ranges.hpp - the one door to range-v3. Needs the part `ranges`
#pragma once
#ifdef __CUDACC__
#error "tensorpar: nvcc cannot read range-v3. Include tensorpar/report/queries.hpp in a .cpp file instead."
#endif
#include <range/v3/functional/bind_back.hpp>
#include <range/v3/numeric/accumulate.hpp>
#include <range/v3/range/conversion.hpp>
#include <range/v3/view/filter.hpp>
#include <range/v3/view/iota.hpp>
#include <range/v3/view/sliding.hpp>
#include <range/v3/view/transform.hpp>
#include <range/v3/view/view.hpp>
