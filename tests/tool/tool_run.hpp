// tests/tool/tool_run.hpp - a command line run in this process, and what it printed
#pragma once
#include <sstream>
#include <string>
#include <support/search_once.hpp>
#include <tensorpar/core/json.hpp>
#include <tensorpar/tool/tool.hpp>
#include <vector>

namespace tests {

/// Small enough for a moment, with two towers and weights.
inline std::string const small_model = "mlp_unify:layers=2,hidden=256,features=64";

struct tool_run {
  int code = -1;
  std::string out, err;
  bool says(std::string const& text) const { return out.find(text) != out.npos; }
  bool complains(std::string const& text) const { return err.find(text) != err.npos; }
  /// Standard output as one JSON object per line. Throws where a line is none.
  std::vector<tensorpar::core::json> lines() const {
    std::vector<tensorpar::core::json> r;
    std::istringstream all(out);
    for (std::string line; std::getline(all, line);) r.push_back(tensorpar::core::parse_json(line, "line"));
    return r;
  }
  /// Those of one event.
  std::vector<tensorpar::core::json> events(std::string const& name) const {
    std::vector<tensorpar::core::json> r;
    for (tensorpar::core::json const& l : lines()) if (l["event"] == name) r.push_back(l);
    return r;
  }
};

inline tool_run run_tool(std::vector<std::string> const& args, bool terminal = false,
                         std::optional<tensorpar::tools::own_model> const& own = std::nullopt) {
  std::ostringstream out, err;
  tool_run r;
  r.code = static_cast<int>(tensorpar::tools::run(args, {out, err, terminal}, own));
  r.out = out.str();
  r.err = err.str();
  return r;
}
/// The same of words that stand apart by blanks.
inline std::vector<std::string> words(std::string const& line) {
  std::istringstream all(line);
  std::vector<std::string> r;
  for (std::string w; all >> w;) r.push_back(w);
  return r;
}
inline tool_run run_line(std::string const& line, bool terminal = false) { return run_tool(words(line), terminal); }

/// A plan of the small model on four devices.
inline std::string plan_line(std::string const& more = "") {
  return "plan --model " + small_model + " --cluster logical-2x2 --batch 48 --effort quick --threads 1 " + more;
}

}  // namespace tests
