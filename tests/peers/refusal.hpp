// tests/peers/refusal.hpp - the error that something ends with
#pragma once
#include <tensorpar/core/error.hpp>

namespace tests {

/// The error that f throws; one that says "accepted" if it throws none.
template <class F> tensorpar::error refusal(F const& f) {
  try {
    f();
  } catch (tensorpar::error const& e) { return e; }
  return tensorpar::error("accepted", "", "");
}

}  // namespace tests
