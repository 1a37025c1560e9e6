// tensorpar/report/page/notes.hpp - what a page tells besides its plan, given by whoever writes it
#pragma once
#include <string>
#include <tensorpar/report/comparison.hpp>
#include <vector>

namespace tensorpar::report {

/// A part of a device's memory: "weights", "gradients", "optimizer", "activations", "workspace".
struct memory_part {
  std::string kind;
  i64 bytes = 0;
  friend bool operator==(memory_part const&, memory_part const&) = default;
};

/// Everything is optional, and shown where it is given. No page asks a clock or its surroundings: the same
/// arguments make the same page, byte for byte.
struct page_notes {
  std::string strategy = {};                          // the plan in a sentence, as people say it
  std::vector<std::vector<memory_part>> memory = {};  // by device, its fullest moment by kind
  std::vector<rival> rivals = {};                     // what else could have been
  std::string date = {}, command = {};                // when it was made, and by which command line
};

}  // namespace tensorpar::report
