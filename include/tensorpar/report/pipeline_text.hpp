// tensorpar/report/pipeline_text.hpp - a pipeline drawn with letters: devices down, time across
#pragma once
#include <cmath>
#include <tensorpar/core/index.hpp>
#include <tensorpar/report/units.hpp>
#include <tensorpar/simulate/pipeline.hpp>

namespace tensorpar::report {

namespace detail {
/// Micro-batches in turn: a-z forward, A-Z backward.
constexpr char letter_of(pass_entry const& e) {
  int const i = e.micro_batch % 26;
  return e.what == pass::forward    ? static_cast<char>('a' + i)
         : e.what == pass::backward ? static_cast<char>('A' + i)
                                    : '+';
}
inline std::string group_text(device_range const& g) {
  return g.count == 1 ? "device " + std::to_string(g.first)
                      : "devices " + std::to_string(g.first) + "-" + std::to_string(g.first + g.count - 1);
}
inline void require_passes(pipeline const& p, simulation::pipeline_run const& r) {
  bool fits = r.passes.size() == p.schedule.size() && r.passes.size() == p.groups.size();
  for (std::size_t g = 0; fits && g < r.passes.size(); ++g) fits = r.passes[g].size() == p.schedule[g].size();
  if (!fits) throw error("a run without its passes", "drawing of a pipeline", "simulate_pipeline(..., true)");
}
}  // namespace detail

/// One line per group of devices, `width` columns for the whole step. A letter is a micro-batch (modulo 26):
/// small going forward, capital going back; `+` gradients of weights, `.` idle. A column shows what runs in
/// its middle. Precondition: r is a run of p with its passes kept. Throws `error` otherwise. O(passes +
/// groups * width).
inline std::string pipeline_text(pipeline const& p, simulation::pipeline_run const& r, int width = 100) {
  detail::require_passes(p, r);
  if (width < 1) width = 1;
  std::size_t label = 0;
  for (device_range const& g : p.groups) label = std::max(label, detail::group_text(g).size());
  std::string out;
  for (std::size_t g = 0; g < p.groups.size(); ++g) {
    std::string row(idx(width), '.');
    double const step = r.makespan > 0 ? r.makespan / width : 1;
    for (std::size_t i = 0; i < r.passes[g].size(); ++i) {
      simulation::pass_times const t = r.passes[g][i];
      int const from = std::max(0, static_cast<int>(std::ceil(t.start / step - 0.5)));
      for (int c = from; c < width && (c + 0.5) * step < t.end; ++c)
        row[idx(c)] = detail::letter_of(p.schedule[g][i]);
    }
    std::string const name = detail::group_text(p.groups[g]);
    out += name + std::string(label - name.size(), ' ') + " |" + row + "|\n";
  }
  out += std::string(label, ' ') + "  0" +
         std::string(idx(std::max(1, width - 2)), ' ') + seconds_text(r.makespan) + "\n";
  return out;
}

}  // namespace tensorpar::report
