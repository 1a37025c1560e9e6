// tests/report/page/device_groups.test.cpp - devices that play one part are one group, with a colour and a letter of its own
#include <tensorpar/report/page/device_groups.hpp>
#include <doctest/doctest.h>

#include <report/found_in.hpp>
#include <report/report_subject.hpp>

using namespace tensorpar;
using tests::count;

namespace {
std::array<int, 3> rgb(std::string const& s) {
  int const all = static_cast<int>(std::stol(s.substr(1), nullptr, 16));
  return {all >> 16, all >> 8 & 255, all & 255};
}
/// Relative luminance (WCAG 2).
double luminance(std::string const& s) {
  double sum = 0;
  double const weight[] = {0.2126, 0.7152, 0.0722};
  for (std::size_t k = 0; k < 3; ++k) {
    double const c = rgb(s)[k] / 255.0;
    sum += weight[k] * (c <= 0.03928 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4));
  }
  return sum;
}
double contrast(double a, double b) { return (std::max(a, b) + 0.05) / (std::min(a, b) + 0.05); }
}  // namespace

TEST_CASE("operators and kinds part devices, nothing else does") {
  report::plan_summary s;
  s.devices.resize(6);
  CHECK(report::device_groups_of(s, {}).size() == 1);
  s.operators.resize(3);
  s.operators[0].devices = {0, 1, 2, 3, 4, 5};
  s.operators[1].devices = {2, 3};
  s.operators[2].devices = {2, 3};
  report::device_groups const g = report::device_groups_of(s, {});
  CHECK(g.members == std::vector<std::vector<int>>{{0, 1, 4, 5}, {2, 3}});
  CHECK(g.of == std::vector<int>{0, 0, 1, 1, 0, 0});
  CHECK(g.among({5, 3, 2}) == std::vector<int>{0, 1});
  CHECK(g.among({-1, 9}).empty());
  CHECK(report::device_groups_of(s, {0, 0, 0, 0, 0, 1}).size() == 3);
  CHECK(report::detail::group_text(g, 0) == "A: devices 0-1,4-5");
  CHECK(report::detail::group_letters(g, {0, 1}) == "A B");
  CHECK(report::detail::group_text(report::groups_by({7}), 0) == "device 0");
  CHECK(report::groups_by({}).size() == 0);
}

TEST_CASE("random plans: groups are a partition, ordered by first devices, and operators stand on whole groups") {
  for (unsigned seed = 0; seed < 8; ++seed) {
    auto const s = tests::report_of(tests::small_transformer(), 12, seed);
    report::plan_summary const sum = report::summary_of("", s.t, s.p, s.q, s.predicted);
    report::device_groups const g = report::device_groups_of(sum, s.p.cluster.device);
    std::vector<int> all;
    int first = -1;
    for (int k = 0; k < g.size(); ++k) {
      std::vector<int> const& m = g.members[static_cast<std::size_t>(k)];
      CHECK(m.front() > first);
      first = m.front();
      all.insert(all.end(), m.begin(), m.end());
      for (report::operator_summary const& o : sum.operators) {
        auto const on = std::count_if(m.begin(), m.end(), [&](int d) { return std::binary_search(o.devices.begin(), o.devices.end(), d); });
        CHECK((on == 0 || on == static_cast<std::ptrdiff_t>(m.size())));
      }
    }
    std::sort(all.begin(), all.end());
    for (std::size_t d = 0; d < all.size(); ++d) CHECK(all[d] == static_cast<int>(d));
    CHECK(all.size() == sum.devices.size());
  }
}

TEST_CASE("colours differ, and can be seen on the page in light and dark; names never repeat") {
  std::set<std::string> colours, names;
  for (bool dark : {false, true})
    for (int g = 0; g < 16; ++g) {
      std::string const c = report::detail::group_colour(g, dark);
      CHECK(colours.insert(c).second);
      if (g < 8) CHECK(contrast(luminance(c), luminance(dark ? "#1b202a" : "#ffffff")) > 2);
    }
  for (int g = 0; g < 1000; ++g) CHECK(names.insert(report::group_name(g)).second);
  CHECK(report::group_name(0) == "A");
  CHECK(report::group_name(25) == "Z");
  CHECK(report::group_name(26) == "AA");
  CHECK(report::group_name(27) == "AB");
  CHECK(report::detail::group_colour(16, false) == report::detail::group_colour(0, false));
  std::string const style = report::detail::group_style(3);
  CHECK(count(style, "--group-2: #") == 2);
  CHECK(count(style, "{ fill: var(--group-") == 3);
  CHECK(count(style, "{") == count(style, "}"));
}

TEST_CASE("a stripe has a segment per used group, and joins what is between") {
  using report::detail::group_stripe;
  CHECK(count(group_stripe({0, 2}, 4, 0, 0, 100), "class=\"seg g") == 2);
  CHECK(count(group_stripe({0, 2}, 4, 0, 0, 100), "seg off") == 2);
  CHECK(count(group_stripe({0, 7}, 12, 0, 0, 100), "seg off") == 2);     // the six between are one
  CHECK(count(group_stripe({}, 12, 0, 0, 100), "<rect") == 1);
  CHECK(count(group_stripe({}, 0, 0, 0, 100), "<rect") == 0);
  CHECK(count(group_stripe({0}, 1, 0, 0, 100), "<rect") == 1);
}
