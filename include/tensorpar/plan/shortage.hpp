// tensorpar/plan/shortage.hpp - no plan fits: which device lacks how many bytes
#pragma once
#include <optional>
#include <string>
#include <tensorpar/core/config.hpp>
#include <tensorpar/core/error.hpp>

namespace tensorpar {

/// No assignment fits (proven), or none was found.
struct shortage {
  int device = -1;                      // where most is missing
  // bytes: what this device lacks in the assignment that needs least, or in the best that was tried
  i64 missing = 0;
  i64 needed = 0, capacity = 0;         // bytes on that device
  bool proven = false;                  // that nothing fits, of the space searched; else: nothing was found
  friend bool operator==(shortage const&, shortage const&) = default;
};

/// "no plan fits: device 0 lacks 12 bytes, needs 112 and has 100"; of a shortage that is not proven also that
/// others may.
inline std::string text_of(shortage const& s) {
  return "no plan fits: device " + std::to_string(s.device) + " lacks " + std::to_string(s.missing) +
         " bytes, needs " + std::to_string(s.needed) + " and has " + std::to_string(s.capacity) +
         (s.proven ? "" : " in the best of the plans that were tried");
}
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_infeasible(shortage const& s,
                                                                     std::string const& where) {
  throw error(text_of(s), where,
              "a plan of a search whose result is feasible(): more memory, more devices, or a smaller batch");
}

}  // namespace tensorpar
