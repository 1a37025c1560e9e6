// tensorpar/report/units.hpp - numbers as people read them, and text columns
#pragma once
#include <cstdio>
#include <string>
#include <tensorpar/core/config.hpp>
#include <vector>

namespace tensorpar::report {

namespace detail {
inline std::string printed(char const* format, double x) {
  char b[48];
  std::snprintf(b, sizeof b, format, x);
  return b;
}
/// Three significant digits.
inline std::string three(double x) { return printed(x < 9.995 ? "%.2f" : x < 99.95 ? "%.1f" : "%.0f", x); }
}  // namespace detail

/// "1.23 ms". Negative times keep their sign.
inline std::string seconds_text(double s) {
  if (s < 0) return "-" + seconds_text(-s);
  if (s == 0) return "0 s";
  if (s < 0.9995e-6) return detail::three(s * 1e9) + " ns";
  if (s < 0.9995e-3) return detail::three(s * 1e6) + " us";
  if (s < 0.9995) return detail::three(s * 1e3) + " ms";
  return detail::three(s) + " s";
}
/// "1.50 MiB"; below 1 KiB exact.
inline std::string bytes_text(double b) {
  if (b < 1024) return detail::printed("%.0f", b) + " B";
  char const* unit[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  int u = 0;
  for (b /= 1024; b >= 999.5 && u < 4; b /= 1024) ++u;
  return detail::three(b) + " " + unit[u];
}
inline std::string percent_text(double part) { return detail::printed("%.0f", 100 * part) + " %"; }
/// Relative distance of a cost from a bound: "0 %" only where the bound is reached, up to the order of sums.
/// Precondition: cost > 0.
inline std::string gap_text(double cost, double bound) {
  double const gap = 1 - bound / cost;
  if (gap <= 1e-8) return "0 %";
  return gap < 0.0005 ? "below 0.1 %" : detail::printed("%.1f", 100 * gap) + " %";
}

/// At most n code points, the last one an ellipsis if something was cut.
inline std::string shortened(std::string const& s, std::size_t n) {
  std::size_t points = 0, last = 0;  // of code points begun; where the last one that fits begins
  for (std::size_t i = 0; i < s.size(); ++i) {
    if ((static_cast<unsigned char>(s[i]) & 0xc0) == 0x80) continue;
    if (points++ == n) return s.substr(0, last) + "\xe2\x80\xa6";
    last = i;
  }
  return s;
}

/// "0-3,8": ascending device numbers, runs joined.
inline std::string devices_text(std::vector<int> const& d) {
  std::string r;
  for (std::size_t i = 0; i < d.size();) {
    std::size_t j = i;
    while (j + 1 < d.size() && d[j + 1] == d[j] + 1) ++j;
    r += (i ? "," : "") + std::to_string(d[i]) + (j > i ? "-" + std::to_string(d[j]) : "");
    i = j + 1;
  }
  return r;
}

/// Rows of cells as aligned text: the first column to the left, the columns named in `left` too, all others
/// to the right. Counts code points of UTF-8, so that a name in any script lines up.
inline std::string columns(std::vector<std::vector<std::string>> const& rows, std::vector<bool> const& left,
                           std::string const& indent = "  ") {
  auto width = [](std::string const& s) {
    std::size_t n = 0;
    for (char c : s) n += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
    return n;
  };
  std::vector<std::size_t> most;
  for (auto const& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i == most.size()) most.push_back(0);
      if (width(row[i]) > most[i]) most[i] = width(row[i]);
    }
  std::string r;
  for (auto const& row : rows) {
    std::string line = indent;
    for (std::size_t i = 0; i < row.size(); ++i) {
      std::string const gap(most[i] - width(row[i]), ' ');
      bool const to_left = i == 0 || (i < left.size() && left[i]);
      line += (i ? "  " : "") + (to_left ? row[i] + gap : gap + row[i]);
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    r += line + "\n";
  }
  return r;
}

}  // namespace tensorpar::report
