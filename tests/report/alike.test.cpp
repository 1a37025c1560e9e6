// tests/report/alike.test.cpp - operators that share a line: sums, members, labels
#include <tensorpar/report/alike.hpp>
#include <doctest/doctest.h>

#include <random>

using namespace tensorpar;

namespace {
tensorpar::report::operator_summary some(std::mt19937& draw, int node) {
  tensorpar::report::operator_summary o;
  o.node = node;
  o.name = draw() % 3 ? "name" + std::to_string(node) : "";
  o.op = draw() % 2 ? "linear" : "relu";
  o.sharding = draw() % 2 ? "serial" : "n/2";
  o.devices = {static_cast<int>(draw() % 2)};
  o.compute = static_cast<double>(draw() % 100);
  o.move = static_cast<double>(draw() % 100);
  for (double& b : o.bytes) b = static_cast<double>(draw() % 1000);
  return o;
}
}  // namespace

TEST_CASE("groups partition the operators, in order of first members, and add up") {
  std::mt19937 draw(1);
  for (int turn = 0; turn < 50; ++turn) {
    std::vector<tensorpar::report::operator_summary> all;
    for (int i = 0; i < 20; ++i) all.push_back(some(draw, i));
    auto const same = [&](std::size_t i, std::size_t j) { return report::detail::same_choice(all[i], all[j]); };
    auto const groups = report::detail::joined(all, true, same);
    std::vector<int> seen(all.size(), 0);
    std::size_t before = 0;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      auto const& which = groups[g].which;
      CHECK(std::is_sorted(which.begin(), which.end()));
      if (g) CHECK(which.front() > before);
      before = which.front();
      tensorpar::report::operator_summary sum = all[which.front()];
      for (std::size_t i : which) {
        ++seen[i];
        CHECK(same(which.front(), i));
        if (i != which.front()) report::detail::accumulate(sum, all[i]);
      }
      CHECK(groups[g].sum.compute == sum.compute);
      CHECK(groups[g].sum.move == sum.move);
      CHECK(groups[g].sum.bytes == sum.bytes);
    }
    CHECK(std::count(seen.begin(), seen.end(), 1) == 20);
    for (std::size_t a = 0; a < groups.size(); ++a)
      for (std::size_t b = 0; b < a; ++b) CHECK(!same(groups[a].which.front(), groups[b].which.front()));
    CHECK(report::detail::joined(all, false, same).size() == all.size());
  }
}

TEST_CASE("labels and bytes") {
  std::mt19937 draw(2);
  tensorpar::report::operator_summary o = some(draw, 7);
  o.name = "head";
  CHECK(report::detail::alike{o, {0}}.label() == "head");
  CHECK(report::detail::alike{o, {0, 3, 5}}.label() == "3 x");
  o.name.clear();
  CHECK(report::detail::alike{o, {0}}.label() == "#7");
  o.bytes.fill(0);
  CHECK(report::detail::moved_text(o.bytes) == "-");
  o.bytes[0] = 2048;
  std::string const one = report::detail::moved_text(o.bytes);
  CHECK(one == report::move_text(static_cast<ir::reshard_kind>(0)) + " " + report::bytes_text(2048));
  o.bytes[2] = 1;
  CHECK(report::detail::moved_text(o.bytes).starts_with(one + ", "));
}
