// tensorpar/report/page/device_groups.hpp - devices that play the same part in a plan, and the colour they
// share
#pragma once
#include <algorithm>
#include <array>
#include <set>
#include <tensorpar/core/index.hpp>
#include <tensorpar/program/lockstep_devices.hpp>
#include <tensorpar/report/page/markup.hpp>
#include <tensorpar/report/summary.hpp>

namespace tensorpar::report {

/// A partition of the devices, groups by their first device. The page gives every group one colour and one
/// letter, wherever it shows devices.
struct device_groups {
  std::vector<std::vector<int>> members;  // ascending
  std::vector<int> of;                    // by device: its group
  int size() const { return static_cast<int>(members.size()); }
  /// The groups of some devices, ascending. O(devices log). Devices that are not of the plan are left out.
  std::vector<int> among(std::vector<int> const& devices) const {
    std::set<int> r;
    for (int d : devices)
      if (d >= 0 && idx(d) < of.size()) r.insert(of[idx(d)]);
    return {r.begin(), r.end()};
  }
};

/// From a class per device, named by any of its devices.
inline device_groups groups_by(std::vector<int> const& classes) {
  device_groups r;
  std::map<int, int> number;
  for (std::size_t d = 0; d < classes.size(); ++d) {
    int const g = number.insert({classes[d], r.size()}).first->second;
    if (g == r.size()) r.members.emplace_back();
    r.members[idx(g)].push_back(static_cast<int>(d));
    r.of.push_back(g);
  }
  return r;
}
/// Devices of one kind on which the same operators run. `kinds`: by device, as `machine::device`; empty: all
/// are alike. O(operators * devices * log).
inline device_groups device_groups_of(plan_summary const& s, std::vector<int> const& kinds) {
  std::vector<int> like(s.devices.size(), 0);
  if (kinds.size() == like.size()) passes::refine_classes(like, kinds);
  std::set<std::vector<int>> told;
  for (operator_summary const& o : s.operators) {
    if (!told.insert(o.devices).second) continue;
    std::vector<char> in(like.size(), 0);
    for (int d : o.devices)
      if (d >= 0 && idx(d) < in.size()) in[idx(d)] = 1;
    passes::refine_classes(like, in);
  }
  return groups_by(like);
}

/// "A" to "Z", then "AA", "AB" ...: colours repeat, names do not. Precondition: group >= 0.
inline std::string group_name(int group) {
  std::string r;
  for (int n = group; n >= 0; n = n / 26 - 1) r.insert(r.begin(), static_cast<char>('A' + n % 26));
  return r;
}

namespace detail {

/// Eight colours that the colour-blind tell apart (Okabe and Ito 2008; yellow darker on white, black as
/// grey), the next eight mixed with the page's colour, then from the start.
inline std::string group_colour(int group, bool dark) {
  constexpr std::array<std::array<int, 3>, 8> on_white{{{0, 114, 178},
                                                        {230, 159, 0},
                                                        {0, 158, 115},
                                                        {204, 121, 167},
                                                        {86, 180, 233},
                                                        {213, 94, 0},
                                                        {178, 155, 0},
                                                        {95, 107, 122}}},
      on_black{{{61, 155, 224},
                {240, 175, 40},
                {20, 180, 135},
                {222, 147, 187},
                {120, 198, 242},
                {238, 120, 35},
                {240, 228, 66},
                {170, 180, 194}}};
  std::array<int, 3> const c = (dark ? on_black : on_white)[idx(group % 8)];
  auto const part = [&](std::size_t k) {
    return static_cast<unsigned>(group / 8 % 2 == 1 ? (c[k] + (dark ? 20 : 255)) / 2 : c[k]);
  };
  char text[32];
  std::snprintf(text, sizeof text, "#%02x%02x%02x", part(0), part(1), part(2));
  return text;
}
/// CSS for a group's colour.
inline std::string group_css(int group) { return "var(--group-" + std::to_string(group) + ")"; }
/// The colours of so many groups, in light and in dark.
inline std::string group_style(int groups) {
  std::string r;
  for (bool dark : {false, true}) {
    r += dark ? ":root.dark {" : ":root {";
    for (int g = 0; g < groups; ++g)
      r += " --group-" + std::to_string(g) + ": " + group_colour(g, dark) + ";";
    r += " }\n";
  }
  for (int g = 0; g < groups; ++g) r += ".seg.g" + std::to_string(g) + " { fill: " + group_css(g) + "; }\n";
  return r;
}
/// "A: devices 0-7", without the letter where there is but one group.
inline std::string group_text(device_groups const& all, int group) {
  std::vector<int> const& d = all.members[idx(group)];
  std::string const name = all.size() > 1 ? group_name(group) + ": " : "";
  return name + (d.size() == 1 ? "device " : "devices ") + devices_text(d);
}
/// The letters of the groups, joined; "" where there is but one.
inline std::string group_letters(device_groups const& all, std::vector<int> const& groups) {
  std::string r;
  if (all.size() > 1)
    for (int g : groups) r += (r.empty() ? "" : " ") + group_name(g);
  return r;
}
inline std::string group_legend(device_groups const& all) {
  std::vector<std::pair<std::string, std::string>> entries;
  for (int g = 0; g < all.size(); ++g) entries.push_back({group_css(g), group_text(all, g)});
  return legend(entries);
}

/// A bar with one segment per group, in the colour of those that are used; what lies between is joined.
/// O(groups).
inline std::string group_stripe(std::vector<int> const& used, int groups, double x, double y, double width) {
  double const w = groups > 0 ? width / groups : 0, gap = w > 3 ? 1.5 / w : 0;
  std::string r = "<g transform=\"translate(" + short_number(x) + " " + short_number(y) + ") scale(" +
                  printed("%.3g", w) + " 5)\">";
  for (int g = 0, next; g < groups; g = next) {
    bool const on = std::binary_search(used.begin(), used.end(), g);
    for (next = g + 1; !on && next < groups && !std::binary_search(used.begin(), used.end(), next);) ++next;
    r += "<rect class=\"seg " + (on ? "g" + std::to_string(g) : "off") + "\" x=\"" + std::to_string(g) +
         "\" width=\"" + printed("%.3g", next - g - gap) + "\" height=\"1\"/>";
  }
  return r + "</g>";
}

}  // namespace detail

}  // namespace tensorpar::report
