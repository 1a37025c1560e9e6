// tensorpar/report/page/notes.hpp - what a page tells besides its plan, given by whoever writes it
#pragma once
#include <string>
#include <tensorpar/report/comparison.hpp>
#include <vector>

namespace tensorpar::report {

/// Everything is optional, and shown where it is given. No page asks a clock or its surroundings: the same
/// arguments make the same page, byte for byte.
struct page_notes {
  std::string strategy = {};                          // the plan in a sentence, as people say it
  std::vector<rival> rivals = {};                     // what else could have been
  std::string date = {}, command = {};                // when it was made, and by which command line
};

}  // namespace tensorpar::report
