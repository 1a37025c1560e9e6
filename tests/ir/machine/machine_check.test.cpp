// tests/ir/machine/machine_check.test.cpp - machines that mean nothing are refused, with the place and what would be valid
#include <tensorpar/ir/machine/machine_check.hpp>
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <tensorpar/ir/machine/machine_presets.hpp>

using namespace tensorpar;

TEST_CASE("every preset is a machine, also one device without links") {
  for (std::string const& name : preset_names()) CHECK_NOTHROW(require_machine(preset(name)));
  machine one = logical(1);
  one.links.clear();
  CHECK_NOTHROW(require_machine(one));
}

TEST_CASE("what means nothing is named: place, value, and what would be valid") {
  struct wrong { char const *what, *at, *valid; std::function<void(machine&)> change; };
  double const infinite = 1 / 0.0, none = std::nan("");
  for (wrong const& w : {
           wrong{"no kinds of device", "kinds", "at least one", [](machine& m) { m.kinds.clear(); }},
           wrong{"0 is out of range", "kinds[0].flops", "a number from 1", [](machine& m) { m.kinds[0].flops = 0; }},
           wrong{"-1e+09 is out of range", "kinds[0].flops", "from 1", [](machine& m) { m.kinds[0].flops = -1e9; }},
           wrong{"nan is out of range", "kinds[0].memory_bandwidth", "from 1", [=](machine& m) { m.kinds[0].memory_bandwidth = none; }},
           wrong{"0 is out of range", "kinds[0].memory", "a whole number from 1", [](machine& m) { m.kinds[0].memory = 0; }},
           wrong{"-0.5 is out of range", "kinds[0].launch", "a number from 0", [](machine& m) { m.kinds[0].launch = -0.5; }},
           wrong{"no devices", "device", "at least one", [](machine& m) { m.device.clear(); }},
           wrong{"1 is out of range", "device[2]", "a whole number from 0 to 0", [](machine& m) { m.device[2] = 1; }},
           wrong{"-1 is out of range", "device[0]", "from 0 to 0", [](machine& m) { m.device[0] = -1; }},
           wrong{"a list of 0", "links", "from 1 to 8", [](machine& m) { m.links.clear(); }},
           wrong{"a list of 9", "links", "from 1 to 8", [](machine& m) { m.links.resize(9, m.links[1]); }},
           wrong{"0 is out of range", "links[0].group", "from 1", [](machine& m) { m.links[0].group = 0; }},
           wrong{"3 is out of range", "links[1].group", "from 4", [](machine& m) { m.links[1].group = 3; }},
           wrong{"2 is out of range", "links[0].group", "from 4", [](machine& m) { m.links.pop_back(); }},
           wrong{"groups of 3 do not consist of groups of 2", "links[1].group", "a multiple of 2",
                 [](machine& m) { m.links.insert(m.links.begin() + 1, {"odd", 3, 0, 1e9}); }},
           wrong{"-1 is out of range", "links[1].latency", "a number from 0", [](machine& m) { m.links[1].latency = -1; }},
           wrong{"inf is out of range", "links[1].latency", "from 0", [=](machine& m) { m.links[1].latency = infinite; }},
           wrong{"0 is out of range", "links[1].bandwidth", "from 1", [](machine& m) { m.links[1].bandwidth = 0; }},
           wrong{"nan is out of range", "links[1].bandwidth", "from 1", [=](machine& m) { m.links[1].bandwidth = none; }}}) {
    CAPTURE(std::string(w.at));
    machine m = logical_nodes(2, 2);
    w.change(m);
    try {
      require_machine(m);
      FAIL_CHECK("accepted");
    } catch (error const& e) {
      CHECK(e.problem() == w.what);
      CHECK(e.where() == "machine \"logical-2x2\": " + std::string(w.at));
      CHECK(e.valid().find(w.valid) != std::string::npos);
    }
  }
}
