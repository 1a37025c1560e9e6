// src/mapping.cpp - compiled once for tensorpar::compiled: the best assignment of choices
#include <tensorpar/search/solve/mapping.hpp>

namespace tensorpar::search {
template mapping_result best_mapping<>(mapping_problem const&, mapping_options const&);
}  // namespace tensorpar::search
