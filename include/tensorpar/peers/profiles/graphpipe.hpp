// tensorpar/peers/profiles/graphpipe.hpp - GraphPipe's strategy files (text) and the planner's log that may
// follow in them
#pragma once
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <tensorpar/core/index.hpp>
#include <tensorpar/peers/profiles/source.hpp>
#include <tensorpar/peers/profiles/text.hpp>
#include <vector>

namespace tensorpar::peers {

/// A stage as the strategy's second line has it.
struct graphpipe_stage {
  i64 micro_batch = 1;      ///< samples
  i64 in_flight = 1;        ///< samples whose activations the stage holds
  i64 k = 1;                ///< of kFkB, micro-batches
  int devices = 1;
  friend bool operator==(graphpipe_stage const&, graphpipe_stage const&) = default;
};
/// A stage as the planner's log has it. Memory in MB, times in the simulator's unit per sample.
struct graphpipe_log_stage {
  double weights = 0, memory = 0, activations = 0, time_per_sample = 0;
  int devices = 1;
  i64 in_flight = 1, micro_batch = 1, k = 1;  ///< all in samples
  std::vector<int> nodes;                     ///< ascending
  friend bool operator==(graphpipe_log_stage const&, graphpipe_log_stage const&) = default;
};
/// The planner's log. Models `topology`: the operators by number, with the edges of its series-parallel
/// expression; operators that the expression leaves out have none.
struct graphpipe_log : profile_graph {
  i64 mini_batch = 0;         ///< samples; 0 where the log does not say
  double memory_limit = 0;    ///< GB
  int devices = 0;
  bool linearised = false;
  double search_seconds = 0, bottleneck = 0, iteration = 0;
  std::vector<graphpipe_log_stage> stages;
  friend bool operator==(graphpipe_log const&, graphpipe_log const&) = default;
};
/// A whole file: line 1 gives each operator its stage, line 2 (absent in some) each stage its schedule, then
/// perhaps a log.
struct graphpipe_strategy {
  std::vector<int> stage_of;
  std::vector<graphpipe_stage> stages;
  std::optional<graphpipe_log> log;
  friend bool operator==(graphpipe_strategy const&, graphpipe_strategy const&) = default;
};

namespace detail {

/// An expression of serial(..|..), parallel(..|..) and operator numbers; adds its edges and returns where it
/// starts and ends.
struct graphpipe_expression {
  struct ends {
    std::vector<int> first, last;
  };
  profile_line& x;
  profile_graph& g;
  i64 edges = 0;

  ends part(int depth) {
    bool const series = x.take("serial("), side = !series && x.take("parallel(");
    if (!series && !side) {
      int const v = static_cast<int>(x.integer(0, core::profile_max_nodes - 1));
      if (v >= g.node_count())
        x.fail("operator " + std::to_string(v) + " is not in the strategy", "operators of line 1");
      return {{v}, {v}};
    }
    if (depth == 256) x.fail("the expression is nested too deeply", "256 levels");
    ends r = part(depth + 1);
    while (x.take("|")) {
      ends const next = part(depth + 1);
      if (series) {
        edges += static_cast<i64>(next.first.size()) * static_cast<i64>(r.last.size());
        if (edges > core::profile_max_edges)
          x.fail("too many dependencies", "at most " + std::to_string(core::profile_max_edges));
        for (int v : next.first)
          g.inputs[idx(v)].insert(g.inputs[idx(v)].end(), r.last.begin(), r.last.end());
        r.last = next.last;
      } else {
        r.first.insert(r.first.end(), next.first.begin(), next.first.end());
        r.last.insert(r.last.end(), next.last.begin(), next.last.end());
      }
    }
    x.expect(")");
    return r;
  }
};

/// "216 MB  2862 MB  2646 MB  1.1707  1  (512, 128, 128)  (42,38,1,)".
inline graphpipe_log_stage graphpipe_row(profile_line x, int operators) {
  graphpipe_log_stage s;
  for (double* mb : {&s.weights, &s.memory, &s.activations}) {
    x.blanks();
    *mb = x.number();
    x.expect(" MB");
  }
  x.blanks();
  s.time_per_sample = x.number();
  x.blanks();
  s.devices = static_cast<int>(x.integer(1, 1 << 20));
  x.blanks();
  x.expect("(");
  s.in_flight = x.integer(1, i64{1} << 40);
  x.expect(", ");
  s.micro_batch = x.integer(1, i64{1} << 40);
  x.expect(", ");
  s.k = x.integer(1, i64{1} << 40);
  x.expect(")");
  x.blanks();
  x.expect("(");
  while (!x.take(")")) {
    s.nodes.push_back(static_cast<int>(x.integer(0, operators - 1)));
    if (!x.take(",") && !x.rest().starts_with(")")) x.fail("found " + x.shown(), "\",\" or \")\"");
  }
  x.end();
  std::sort(s.nodes.begin(), s.nodes.end());
  return s;
}

/// What follows a label such as "Running time:"; false if the line has another.
inline bool graphpipe_label(profile_line& x, std::string_view label) {
  if (!x.take(label)) return false;
  x.blanks();
  return true;
}

inline graphpipe_log graphpipe_read_log(std::vector<profile_line> lines, std::size_t from, int operators) {
  graphpipe_log g;
  g.inputs.resize(idx(operators));
  bool graph = false, bottleneck = false, total = false, table = false;
  std::vector<char> placed(idx(operators), 0);
  for (std::size_t i = from; i < lines.size(); ++i) {
    profile_line x = lines[i];
    x.blanks();
    if (graphpipe_label(x, "mini-batch size:")) g.mini_batch = x.integer(1, i64{1} << 40);
    else if (graphpipe_label(x, "Memory Limit :")) g.memory_limit = x.number(1e9);
    else if (graphpipe_label(x, "# devices :")) g.devices = static_cast<int>(x.integer(1, 1 << 20));
    else if (graphpipe_label(x, "is linearized:")) g.linearised = x.integer(0, 1) == 1;
    else if (graphpipe_label(x, "Running time:")) g.search_seconds = x.number();
    else if (graphpipe_label(x, "TPS (of bottleneck stage):")) g.bottleneck = x.number(), bottleneck = true;
    else if (graphpipe_label(x, "T (minibatch):")) g.iteration = x.number(), total = true;
    else if (graphpipe_label(x, "Computation graph:")) {
      graphpipe_expression{x, g}.part(0);
      x.end();
      graph = true;
    } else if (x.take("weight size")) {
      for (table = true; i + 1 < lines.size() && lines[i + 1].text.find(" MB") != std::string_view::npos;
           ++i) {
        g.stages.push_back(graphpipe_row(lines[i + 1], operators));
        for (int v : g.stages.back().nodes)
          if (std::exchange(placed[idx(v)], 1))
            lines[i + 1].fail("operator " + std::to_string(v) + " is in two stages",
                              "each operator in one stage");
      }
    }
  }
  std::string const& file = *lines.front().file;
  if (!graph || !bottleneck || !total || !table || g.stages.empty())
    throw error(
        "the planner's log is not whole", file,
        "lines \"Computation graph:\", \"TPS (of bottleneck stage):\", \"T (minibatch):\" and the table of "
        "stages");
  for (auto& list : g.inputs) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  finish_profile_graph(g, file, [](int v) { return std::to_string(v); });
  return g;
}

}  // namespace detail

/// Reads a strategy: "n s0 s1 ... s(n-1)", then "m" and four whole numbers per stage (micro-batch and
/// in-flight in samples, k in micro-batches, devices), then nothing or the planner's log. Throws `error` with
/// file, line and column for anything else: lists shorter or longer than announced, stages that do not exist,
/// numbers out of range, a log without graph, times or stages. O(file).
inline graphpipe_strategy parse_graphpipe(std::string_view text, std::string const& where) {
  auto lines = detail::profile_lines(text, where);
  if (lines.empty()) throw error("the file is empty", where, "a strategy");
  graphpipe_strategy r;
  detail::profile_line x = lines[0];
  i64 const n = x.integer(1, core::profile_max_nodes);
  for (i64 i = 0; i < n; ++i) {
    x.blanks();
    r.stage_of.push_back(static_cast<int>(x.integer(0, core::profile_max_nodes)));
  }
  x.end();
  std::size_t next = 1;
  if (next < lines.size() && lines[next].text.find_first_not_of(" \t") != std::string_view::npos) {
    x = lines[next++];
    i64 const m = x.integer(1, core::profile_max_nodes);
    for (i64 i = 0; i < m; ++i) {
      i64 four[4];
      for (i64& y : four) {
        x.blanks();
        y = x.integer(1, i64{1} << 40);
      }
      if (four[3] > 1 << 20) x.fail("too many devices", "at most " + std::to_string(1 << 20));
      r.stages.push_back({four[0], four[1], four[2], static_cast<int>(four[3])});
    }
    x.end();
    for (int s : r.stage_of)
      if (s >= m)
        throw error("stage " + std::to_string(s) + " does not exist", where + ":1",
                    "stages from 0 to " + std::to_string(m - 1));
  }
  for (std::size_t i = next; i < lines.size(); ++i)
    if (lines[i].text.find_first_not_of(" \t") != std::string_view::npos) {
      r.log = detail::graphpipe_read_log(lines, i, static_cast<int>(n));
      break;
    }
  return r;
}
inline graphpipe_strategy read_graphpipe(std::string const& path) {
  return parse_graphpipe(detail::profile_file(path), path);
}

}  // namespace tensorpar::peers
