// tests/plan/cluster_file.test.cpp - clusters as JSON: round trips, presets, errors that name file, key and what is valid
#include <tensorpar/plan/cluster_file.hpp>
#include <doctest/doctest.h>

#include <cstdio>
#include <filesystem>
#include <random>
#include <support/scratch_folder.hpp>

using namespace tensorpar;

namespace {
constexpr char good[] = R"({"tensorpar_cluster": 1, "name": "mine",
 "kinds": [{"name": "big", "flops": 1e13, "memory_bandwidth": 5e11, "memory": 1000000, "launch": 1e-6},
           {"name": "small", "flops": 1e12, "memory_bandwidth": 1e11, "memory": 500000, "launch": 0}],
 "devices": [{"kind": "big", "count": 4}, {"kind": "small", "count": 2}],
 "links": [{"name": "near", "group": 2, "latency": 1e-6, "bandwidth": 1e10}, {"name": "far", "group": 6, "latency": 1e-5, "bandwidth": 1e9}]})";
std::string changed(std::string const& from, std::string const& to) {
  std::string s = good;
  auto const at = s.find(from);
  REQUIRE(at != std::string::npos);
  return s.replace(at, from.size(), to);
}
std::string complaint_about(std::string const& text) {
  try {
    parse_cluster(text, "c.json");
  } catch (error const& e) {
    CHECK(e.where().find("c.json") == 0);
    return e.what();
  }
  return "accepted";
}
}  // namespace

TEST_CASE("a cluster spelled out") {
  machine const m = parse_cluster(good, "c.json");
  CHECK(m.name == "mine");
  CHECK(m.device == std::vector<int>{0, 0, 0, 0, 1, 1});
  CHECK(m.kinds[1].memory == 500000);
  CHECK(m.between(0, 1).name == "near");
  CHECK(m.between(1, 2).latency == 1e-5);
  CHECK(decode_cluster(encode_cluster(m), "again") == m);
  CHECK(m.kinds[0].rates == format_rates());
  CHECK(!parse_cluster(changed("\"links\"", "\"lane_per_link\": false, \"links\""), "c.json").lane_per_link);
  machine const beside = parse_cluster(changed("\"links\"", "\"lane_per_link\": true, \"links\""), "c.json");
  CHECK(beside.lane_per_link);
  CHECK(decode_cluster(encode_cluster(beside), "c.json") == beside);
  machine const known = parse_cluster(changed("\"launch\": 0", "\"launch\": 0, \"efficiency\": {\"products\": 0.5, \"half_terms\": 9}"), "c.json");
  CHECK(known.kinds[1].efficiency == kernel_efficiency{.products = 0.5, .half_terms = 9});
  CHECK(decode_cluster(encode_cluster(known), "again") == known);
  machine const fast = parse_cluster(changed("\"flops\": 1e13", "\"flops\": 1e13, \"rates\": {\"f32\": 1e13, \"bf16\": 8e13}"), "c.json");
  CHECK(fast.kinds[0].rates == format_rates{.f32 = 1e13, .bf16 = 8e13});
  CHECK(decode_cluster(encode_cluster(fast), "again") == fast);
  CHECK(parse_cluster(changed("\"memory\": 1000000", "\"memory\": 1e6"), "c.json") == m);      // a whole number, however it is written
}

TEST_CASE("every preset survives the file, and the file names presets") {
  tests::scratch_folder const folder;
  std::string const path = folder / "cluster.json";
  for (std::string const& name : preset_names()) {
    machine const m = preset(name);
    write_cluster(m, path);
    CHECK(read_cluster(path) == m);
    CHECK(find_cluster(path) == m);
    CHECK(find_cluster(name) == m);
    CHECK_THROWS_WITH_AS(find_cluster(path + "x"), doctest::Contains("or the path of a file that ends in .json"), error);
    CHECK(parse_cluster("{\"preset\": \"" + name + "\"}", "c.json") == m);
  }
  std::remove(path.c_str());
  CHECK_THROWS_AS(read_cluster(path), error);
}

TEST_CASE("errors") {
  CHECK(complaint_about("{\"tensorpar_cluster\": 1").find("malformed JSON") == 0);
  CHECK(complaint_about("[]").find("not a cluster (at c.json); valid: an object with the key \"preset\"") == 0);
  CHECK(complaint_about("{\"name\": \"x\"}").find("not a cluster") == 0);
  CHECK(
      complaint_about("{\"preset\": \"sumit\"}").find("no machine has this name: machine \"sumit\" (at c.json: preset); valid: summit, ") ==
      0);
  CHECK(complaint_about("{\"preset\": 3}") == "not a text (at c.json: preset); valid: a text");
  CHECK(complaint_about("{\"preset\": \"summit\", \"name\": \"x\"}").find("unknown key (at c.json: \"name\"); valid: preset") == 0);
  CHECK(complaint_about(changed("cluster\": 1", "cluster\": 2")) ==
        "a cluster of schema version 2 (at c.json: tensorpar_cluster); valid: version 1");
  CHECK(complaint_about(changed("\"flops\": 1e13", "\"flops\": -1")).find("-1 is out of range (at c.json: kinds[0].flops)") == 0);
  CHECK(complaint_about(changed("\"flops\": 1e13, ", "")).find("the key \"flops\" is missing (at c.json: kinds[0])") == 0);
  CHECK(complaint_about(changed("\"launch\": 0", "\"launch\": 0, \"rates\": {\"f32\": 0.5}"))
            .find("0.5 is out of range (at c.json: kinds[1].rates.f32); valid: a number from 1") == 0);
  CHECK(complaint_about(changed("\"launch\": 0", "\"launch\": 0, \"rates\": 3")).find("not an object (at c.json: kinds[1].rates)") == 0);
  CHECK(complaint_about(changed("\"links\"", "\"lane_per_link\": 1, \"links\"")) ==
        "not a truth value (at c.json: lane_per_link); valid: true or false");
  CHECK(complaint_about(changed("\"launch\": 0", "\"launch\": 0, \"efficiency\": {\"products\": 1.5}")) ==
        "a share above 1 (at c.json: kinds[1].efficiency.products); valid: a number from 0 to 1");
  CHECK(complaint_about(changed("\"launch\": 0", "\"launch\": 0, \"efficiency\": {\"half_terms\": -1}"))
            .find("-1 is out of range (at c.json: kinds[1].efficiency.half_terms)") == 0);
  CHECK(complaint_about(changed("\"launch\": 0", "\"lunch\": 0")).find("unknown key (at c.json: kinds[1].\"lunch\"); valid: name, flops") ==
        0);
  CHECK(complaint_about(changed("\"name\": \"small\"", "\"name\": \"big\""))
            .find("the kind \"big\" stands twice (at c.json: kinds[1].name)") == 0);
  CHECK(complaint_about(changed("\"kind\": \"small\"", "\"kind\": \"tiny\"")) ==
        "no kind of device is called \"tiny\" (at c.json: devices[1].kind); valid: big, small");
  CHECK(complaint_about(changed("\"count\": 2", "\"count\": 0")).find("0 is out of range (at c.json: devices[1].count)") == 0);
  CHECK(complaint_about(changed("\"count\": 2", "\"count\": 1e9")).find("1000000000.0 is out of range (at c.json: devices[1].count)") == 0);
  CHECK(complaint_about(changed("\"count\": 2", "\"count\": 99999999999")).find("99999999999 is out of range") == 0);
  CHECK(complaint_about(changed("\"group\": 6", "\"group\": 5"))
            .find("5 is out of range (at c.json: links[1].group); valid: a whole number from 6") == 0);
  CHECK(complaint_about(changed("\"bandwidth\": 1e9", "\"bandwidth\": 0")).find("0 is out of range (at c.json: links[1].bandwidth)") == 0);
  CHECK(complaint_about(
            changed("{\"name\": \"far\"", "{\"name\": \"odd\", \"group\": 3, \"latency\": 0, \"bandwidth\": 1e9}, {\"name\": \"far\"")) ==
        "groups of 3 do not consist of groups of 2 (at c.json: links[1].group); valid: a multiple of 2");
  CHECK(complaint_about(changed("[{\"kind\": \"big\", \"count\": 4}, {\"kind\": \"small\", \"count\": 2}]", "[]"))
            .find("a list of 0 (at c.json: devices)") == 0);
  machine m = logical(2);
  m.links[0].bandwidth = 1 / 0.0;
  CHECK_THROWS_AS(encode_cluster(m), error);
  m.links[0].bandwidth = -1e9;
  CHECK_THROWS_WITH_AS(write_cluster(m, "no_such_folder/c.json"),
                       "-1e+09 is out of range (at no_such_folder/c.json: links[0].bandwidth); valid: a number from 1 to 1.79e+308", error);
  m = logical(2);
  m.device[1] = 3;
  CHECK_THROWS_AS(encode_cluster(m), error);
}
