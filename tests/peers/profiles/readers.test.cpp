#include <doctest/doctest.h>

#include <numeric>
#include <tensorpar/graph/sp/series_parallel.hpp>
#include <tensorpar/peers/profiles/dnn_partitioning.hpp>
#include <tensorpar/peers/profiles/graphpipe.hpp>
#include <tensorpar/peers/profiles/pipedream.hpp>
#include <tensorpar/peers/profiles/piper.hpp>

#include "profile_data.hpp"

using namespace tensorpar;
using namespace tensorpar::peers;
using namespace profile_data;

static_assert(graph::topology<dnn_partitioning_profile> && graph::topology<piper_profile> && graph::topology<pipedream_profile> &&
              graph::topology<graphpipe_log>);

namespace {

/// A text with one part replaced, and what the error must say and where it must point.
struct fault {
  char const *from, *to, *where, *what;
};
template <class Parse> void check_faults(std::string const& good, std::vector<fault> const& faults, Parse const& parse) {
  parse(good);
  for (fault const& f : faults) {
    std::string bad = good;
    std::size_t const at = bad.find(f.from);
    REQUIRE_MESSAGE(at != std::string::npos, f.from);
    bad.replace(at, std::string(f.from).size(), f.to);
    CAPTURE(bad);
    try {
      parse(bad);
      FAIL("accepted");
    } catch (error const& e) {
      CHECK_MESSAGE(e.where().find(f.where) != std::string::npos, "where: ", e.where(), " instead of ", std::string(f.where));
      CHECK_MESSAGE(e.problem().find(f.what) != std::string::npos, "what: ", e.problem(), " instead of ", std::string(f.what));
    }
  }
}
/// No text that begins like a good one may do anything but parse or throw `error`.
template <class Parse> void check_cuts(std::string const& good, Parse const& parse) {
  for (std::size_t n = 0; n < good.size(); ++n) {
    try {
      parse(good.substr(0, n));
    } catch (error const& e) {
      CHECK(!e.where().empty());
    }
  }
}

std::string const dnn = R"({"maxSizePerFPGA": 100.0, "maxFPGAs": 2, "maxCPUs": 1, "nodes": [
{"id": 7, "name": "a", "supportedOnFpga": 1, "cpuLatency": 10, "fpgaLatency": 1.5, "isBackwardNode": 0, "colorClass": 9, "size": 4},
{"id": 3, "supportedOnFpga": true, "cpuLatency": 20, "fpgaLatency": 2, "isBackwardNode": false},
{"id": 50, "name": "c", "supportedOnFpga": 0, "cpuLatency": 5, "fpgaLatency": 0, "isBackwardNode": 1, "colorClass": 9, "size": 6.5}],
"edges": [{"sourceId": 7, "destId": 3, "cost": 0.25, "size": 1}, {"sourceId": 3, "destId": 50, "cost": 0.5},
{"sourceId": 7, "destId": 50, "cost": 0.25}]})";

std::string const piper = R"({"maxMemoryPerDevice": 1e9, "maxDevices": 4, "bandwidth": 1e8, "mbsInBatch": 8, "nodes": [
{"id": 0, "name": "x", "TMPCs": {"1": [{"id": "vanilla", "timePerSample": 2.0, "parameterSize": 8, "memoryUsageA": 5, "memoryUsageB": 16,
"syncTimeFw": {}, "syncTimeBw": {"4": 0.0}}], "2": [{"id": "vanilla", "timePerSample": 1.25, "parameterSize": 4, "memoryUsageA": 3,
"memoryUsageB": 8, "syncTimeFw": {}, "syncTimeBw": {"4": 64.0}}]}},
{"id": 4, "TMPCs": {"1": [{"id": "vanilla", "timePerSample": 3.0, "parameterSize": 0, "memoryUsageA": 5, "memoryUsageB": 0,
"syncTimeFw": {"0": 32.0}, "syncTimeBw": {}}, {"id": "activation recomp", "timePerSample": 4.0, "parameterSize": 0, "memoryUsageA": 1,
"memoryUsageB": 4, "syncTimeFw": {"0": 32.0}, "syncTimeBw": {}}]}}],
"edges": [{"sourceId": 0, "destId": 4, "communicationCost": 128.0}]})";

std::string const pipedream =
    "node1 -- Input0 -- forward_compute_time=0.000, backward_compute_time=0.000, activation_size=0.0, parameter_size=0.000\n"
    "node2 -- LSTM(4, 4, bias=True) -- forward_compute_time=1.500, backward_compute_time=2.500, activation_size=[10.0; 5.0], "
    "parameter_size=7.000 -- stage_id=1\n"
    "node3 -- Add(inplace) -- forward_compute_time=0.5, backward_compute_time=0.25, activation_size=3.0, parameter_size=0.000\n"
    "\tnode1 -- node2\n\tnode2 -- node3\n\tnode1 -- node3\n";

std::string const graphpipe =
    "4 0 0 1 1 \n2 2 4 1 1 2 2 1 2 \n\n\nModel : x\nmini-batch size: 8\nMemory Limit : 3 GB\n# devices : 3\nis linearized: 0\n"
    "Computation graph: serial(0|parallel(1|2)|3)\n\nRunning time: 1.5 sec\nTPS (of bottleneck stage): 2.5\nT (minibatch): 30\n"
    "    weight size         memory            act            tps     num device           (i, m, k)          nodes\n"
    "            10 MB             30 MB            20 MB         1.25              1     (4, 2, 2)              (1,0,)\n"
    "            20 MB             40 MB            20 MB          2.5              2     (2, 2, 2)              (2,3,)\n"
    "--------------\nLowest TPS: 2.5\n";

}  // namespace

TEST_CASE("dnn-partitioning: ids that are not dense, colours, flags as numbers or truth values, units as asked") {
  auto const g = parse_dnn_partitioning(dnn, "p.json", core::profile_units::as_published);
  CHECK(g.id == std::vector<i64>{7, 3, 50});
  CHECK(g.inputs == std::vector<std::vector<int>>{{}, {0}, {0, 1}});
  CHECK(g.name[0] == "a");
  CHECK(g.name[1].empty());
  CHECK(g.colours == 2);
  CHECK(g.colour[0] == g.colour[2]);
  CHECK(g.colour[0] != g.colour[1]);
  CHECK(g.accelerator == std::vector<double>{1.5, 2, 0});
  CHECK(g.send == std::vector<double>{0.25, 0.5, 0});
  CHECK(g.size == std::vector<double>{4, 0, 6.5});
  CHECK(g.backward == std::vector<char>{0, 0, 1});
  CHECK(g.on_accelerator == std::vector<char>{1, 1, 0});
  CHECK(g.memory == 100);
  auto const ms = parse_dnn_partitioning(dnn, "p.json", core::profile_units::compute_in_milliseconds);
  CHECK(ms.accelerator[0] == doctest::Approx(0.0015));
  CHECK(ms.cpu[1] == doctest::Approx(0.02));
  CHECK(ms.send == g.send);
}

TEST_CASE("dnn-partitioning: what is wrong and where") {
  auto const parse = [](std::string const& s) { return parse_dnn_partitioning(s, "p.json", core::profile_units::as_published); };
  check_faults(dnn, {
    {"\"maxFPGAs\": 2, ", "", "p.json", "\"maxFPGAs\" is missing"},
    {"\"maxCPUs\": 1", "\"maxCPUs\": -1", "p.json: maxCPUs", "no such number"},
    {"\"maxCPUs\": 1", "\"maxCPUs\": 1.5", "p.json: maxCPUs", "no such number"},
    {"\"fpgaLatency\": 2", "\"fpgaLatency\": -2", "p.json: nodes[1].fpgaLatency", "out of range"},
    {"\"fpgaLatency\": 2", "\"fpgaLatency\": NaN", "p.json:3:", "malformed"},
    {"\"fpgaLatency\": 2", "\"fpgaLatency\": 1e300", "p.json: nodes[1].fpgaLatency", "out of range"},
    {"\"fpgaLatency\": 2", "\"fpgaLatency\": 1e999", "p.json", "malformed"},
    {"\"fpgaLatency\": 2", "\"fpgaLatency\": \"2\"", "p.json: nodes[1].fpgaLatency", "not a number"},
    {"\"cpuLatency\": 20, ", "", "p.json: nodes[1]", "\"cpuLatency\" is missing"},
    {"\"isBackwardNode\": 0", "\"isBackwardNode\": 2", "p.json: nodes[0].isBackwardNode", "no such number"},
    {"\"id\": 3", "\"id\": 7", "p.json: nodes[", "stands twice"},
    {"\"id\": 3", "\"id\": \"3\"", "p.json: nodes[1].id", "not a number"},
    {"\"sourceId\": 3", "\"sourceId\": 4", "p.json: edges[1].sourceId", "no node has the id 4"},
    {"\"destId\": 50", "\"destId\": 51", "p.json: edges[1].destId", "no node has the id 51"},
    {"\"cost\": 0.5", "\"cost\": true", "p.json: edges[1].cost", "not a number"},
    {"\"destId\": 50, \"cost\": 0.25", "\"destId\": 50, \"cost\": 0.3", "p.json: edges[2].cost", "another edge out of node 7"},
    {"\"sourceId\": 3, \"destId\": 50", "\"sourceId\": 50, \"destId\": 3", "p.json: edges[1]", "from a backward to a forward"},
    {"\"sourceId\": 3, \"destId\": 50, \"cost\": 0.5", "\"sourceId\": 3, \"destId\": 7, \"cost\": 0.5", "p.json: edges",
     "cycle: 3 -> 7 -> 3"},
    {"\"sourceId\": 3, \"destId\": 50, \"cost\": 0.5", "\"sourceId\": 3, \"destId\": 3, \"cost\": 0.5", "p.json: edges", "cycle: 3 -> 3"},
    {"\"edges\": [", "\"edges\": 5, \"x\": [", "p.json: edges", "not a list"},
    {"\"colorClass\": 9", "\"colorClass\": []", "p.json: nodes[0].colorClass", "not a number"},
  }, parse);
  check_cuts(dnn, parse);
  CHECK_THROWS_WITH_AS(parse("[]"), doctest::Contains("an object"), error);
  CHECK_THROWS_WITH_AS(parse(R"({"maxSizePerFPGA":1,"maxFPGAs":1,"maxCPUs":1,"nodes":[],"edges":[]})"), doctest::Contains("a list of 0"),
                       error);
  CHECK_THROWS_WITH_AS(read_dnn_partitioning("/nowhere.json", core::profile_units::as_published), doctest::Contains("cannot read"), error);
}

TEST_CASE("Piper: degrees, configurations, sync bytes by edge") {
  auto const g = parse_piper(piper, "p.json", core::profile_units::as_published);
  CHECK(g.id == std::vector<i64>{0, 4});
  CHECK(g.inputs == std::vector<std::vector<int>>{{}, {0}});
  REQUIRE(g.degrees[0].size() == 2);
  CHECK(g.degrees[0][1].degree == 2);
  CHECK(g.degrees[0][1].ways[0].seconds == 1.25);
  CHECK(g.degrees[0][1].ways[0].sync_out == std::vector<double>{64});
  CHECK(g.degrees[1][0].ways[1].name == "activation recomp");
  CHECK(g.degrees[1][0].ways[1].sync_in == std::vector<double>{32});
  CHECK(g.edges[0] == piper_edge{0, 1, 128});
  CHECK(g.micro_batches == 8);
  CHECK(parse_piper(piper, "p.json", core::profile_units::compute_in_milliseconds).degrees[0][0].ways[0].seconds == doctest::Approx(0.002));
}

TEST_CASE("Piper: what is wrong and where") {
  auto const parse = [](std::string const& s) { return parse_piper(s, "p.json", core::profile_units::as_published); };
  check_faults(piper, {
    {"\"mbsInBatch\": 8, ", "", "p.json", "\"mbsInBatch\" is missing"},
    {"\"bandwidth\": 1e8", "\"bandwidth\": 0", "p.json: bandwidth", "out of range"},
    {"\"TMPCs\": {\"1\"", "\"TMPCs\": {\"one\"", "p.json: nodes[0].TMPCs", "no tensor-parallel degree"},
    {"\"TMPCs\": {\"1\"", "\"TMPCs\": {\"0\"", "p.json: nodes[0].TMPCs", "no tensor-parallel degree"},
    {"\"timePerSample\": 1.25", "\"timePerSample\": -1.25", "p.json: nodes[0].TMPCs.2[0].timePerSample", "out of range"},
    {"\"syncTimeBw\": {\"4\": 64.0}", "\"syncTimeBw\": {}", "p.json: nodes[0].TMPCs.2[0].syncTimeBw", "\"4\" is missing"},
    {"\"syncTimeFw\": {\"0\": 32.0}", "\"syncTimeFw\": 5", "p.json: nodes[1].TMPCs.1[0].syncTimeFw", "not an object"},
    {"\"memoryUsageA\": 1,", "", "p.json: nodes[1].TMPCs.1[1]", "\"memoryUsageA\" is missing"},
    {"\"sourceId\": 0", "\"sourceId\": 1", "p.json: edges[0].sourceId", "no node has the id 1"},
    {"\"id\": 4", "\"id\": 0", "p.json: nodes[", "stands twice"},
    {"\"communicationCost\": 128.0}", "\"communicationCost\": 128.0}, {\"sourceId\": 0, \"destId\": 4, \"communicationCost\": 1}",
     "p.json: edges[1]", "a second edge"},
    {"{\"1\": [{\"id\": \"vanilla\", \"timePerSample\": 2.0", "{\"1\": [], \"4\": [{\"id\": \"vanilla\", \"timePerSample\": 2.0",
     "p.json: nodes[0].TMPCs.1", "a list of 0"},
  }, parse);
  check_cuts(piper, parse);
}

TEST_CASE("PipeDream: descriptions with commas, lists of activations, stages, milliseconds to seconds") {
  auto const g = parse_pipedream(pipedream, "graph.txt");
  CHECK(g.id == std::vector<std::string>{"node1", "node2", "node3"});
  CHECK(g.description[1] == "LSTM(4, 4, bias=True)");
  CHECK(g.forward[1] == doctest::Approx(0.0015));
  CHECK(g.backward[1] == doctest::Approx(0.0025));
  CHECK(g.activation[1] == 15);
  CHECK(g.parameter[1] == 7);
  CHECK(g.stage == std::vector<int>{-1, 1, -1});
  CHECK(g.inputs == std::vector<std::vector<int>>{{}, {0}, {0, 1}});
  CHECK(parse_pipedream(pipedream + "\tnode1 -- node2\r\n\n", "graph.txt").inputs == g.inputs);
}

TEST_CASE("PipeDream: what is wrong and where") {
  auto const parse = [](std::string const& s) { return parse_pipedream(s, "graph.txt"); };
  check_faults(pipedream, {
    {"forward_compute_time=1.500", "forward_compute_time=-1.5", "graph.txt:2:", "no such number"},
    {"forward_compute_time=1.500", "forward_compute_time=nan", "graph.txt:2:56", "no such number"},
    {"forward_compute_time=1.500", "forward_compute_time=inf", "graph.txt:2:", "no such number"},
    {"forward_compute_time=1.500", "forward_compute_time=1e99", "graph.txt:2:", "no such number"},
    {"forward_compute_time=1.500", "forward_compute_time=", "graph.txt:2:", "no such number"},
    {", backward_compute_time=2.500", "", "graph.txt:2:", "found"},
    {"[10.0; 5.0]", "[10.0; 5.0", "graph.txt:2:", "found"},
    {"[10.0; 5.0]", "[]", "graph.txt:2:", "no such number"},
    {" -- stage_id=1", " -- stage_id=x", "graph.txt:2:", "no such number"},
    {" -- stage_id=1", " and more", "graph.txt:2:", "where the line should end"},
    {"node2 -- LSTM", "node1 -- LSTM", "graph.txt:2:1", "stands twice"},
    {"node3 -- Add(inplace) -- ", "node3 ", "graph.txt:3:", "no node"},
    {"node3 -- Add(inplace) -- forward", "node3 -- Add(inplace) -- backward", "graph.txt:3:", "no times"},
    {"node3 -- Add(inplace) -- forward", "node3 -- -- forward", "graph.txt:3:", "no times"},
    {"\tnode1 -- node2", "\tnode1 -- node9", "graph.txt:4:11", "no node has the id"},
    {"\tnode1 -- node2", "\tnode9 -- node2", "graph.txt:4:2", "no node has the id"},
    {"\tnode1 -- node2", "\tnode1", "graph.txt:4:", "no edge"},
    {"\tnode1 -- node3", "\tnode3 -- node2", "graph.txt", "cycle: node"},
  }, parse);
  check_cuts(pipedream, parse);
  CHECK_THROWS_WITH_AS(parse(""), doctest::Contains("no node"), error);
}

TEST_CASE("GraphPipe: strategy and log") {
  graphpipe_strategy const s = parse_graphpipe(graphpipe, "s.txt");
  CHECK(s.stage_of == std::vector<int>{0, 0, 1, 1});
  CHECK(s.stages == std::vector<graphpipe_stage>{{2, 4, 1, 1}, {2, 2, 1, 2}});
  REQUIRE(s.log.has_value());
  CHECK(s.log->inputs == std::vector<std::vector<int>>{{}, {0}, {0}, {1, 2}});
  CHECK(s.log->mini_batch == 8);
  CHECK(s.log->memory_limit == 3);
  CHECK(s.log->devices == 3);
  CHECK(s.log->bottleneck == 2.5);
  CHECK(s.log->iteration == 30);
  REQUIRE(s.log->stages.size() == 2);
  CHECK(s.log->stages[0] == graphpipe_log_stage{10, 30, 20, 1.25, 1, 4, 2, 2, {0, 1}});
  CHECK(!parse_graphpipe("2 0 1\n", "s.txt").log);
  CHECK(parse_graphpipe("2 0 1", "s.txt").stages.empty());
}

TEST_CASE("GraphPipe: what is wrong and where") {
  auto const parse = [](std::string const& s) { return parse_graphpipe(s, "s.txt"); };
  check_faults(graphpipe, {
    {"4 0 0 1 1", "5 0 0 1 1", "s.txt:1:", "missing"},
    {"4 0 0 1 1", "3 0 0 1 1", "s.txt:1:", "should end"},
    {"4 0 0 1 1", "4 0 0 1 2", "s.txt:1", "stage 2 does not exist"},
    {"4 0 0 1 1", "4 0 0 1 -1", "s.txt:1:", "no such number"},
    {"2 2 4 1 1", "2 2 4 1 0", "s.txt:2:", "no such number"},
    {"2 2 4 1 1 2 2 1 2", "2 2 4 1 1 2 2 1", "s.txt:2:", "missing"},
    {"serial(0|parallel(1|2)|3)", "serial(0|parallel(1|2)|4)", "s.txt:10:", "operator 4"},
    {"serial(0|parallel(1|2)|3)", "serial(0|parallel(1|2|3)", "s.txt:10:", "ends early"},
    {"serial(0|parallel(1|2)|3)", "serial(0|1|0)", "s.txt", "cycle"},
    {"T (minibatch): 30", "", "s.txt", "not whole"},
    {"T (minibatch): 30", "T (minibatch): inf", "s.txt:14:", "no such number"},
    {"(2,3,)", "(2,9,)", "s.txt:17:", "no such number"},
    {"(2,3,)", "(2,1,)", "s.txt:17:", "in two stages"},
    {"(2, 2, 2)", "(2, 2)", "s.txt:17:", "found"},
    {"20 MB          2.5", "20          2.5", "s.txt:17:", "found"},
  }, parse);
  check_cuts(graphpipe, parse);
}

TEST_CASE("published profiles: sizes and sums as their facts have them") {
  if (!here()) return;
  struct row {
    char const* file;
    int nodes, edges, backward;
  };
  for (row const& r : {row{"LayerGraphs/bert24_inference", 32, 55, 0}, row{"LayerGraphs/bert24_training", 64, 110, 32},
                       row{"LayerGraphs/resnet50_inference", 177, 193, 0}, row{"LayerGraphs/resnet50_training", 354, 386, 177},
                       row{"OperatorGraphs/bert_l-3_training", 600, 817, 365}, row{"OperatorGraphs/resnet50_training", 1243, 1806, 639}}) {
    std::string const file = std::string("dnn-partitioning/") + r.file + ".json";
    if (!has(file)) continue;
    auto const g = read_dnn_partitioning(folder() + file, core::profile_units::as_published);
    CHECK(g.node_count() == r.nodes);
    CHECK(static_cast<int>(graph::edges(g).size()) == r.edges);
    CHECK(std::accumulate(g.backward.begin(), g.backward.end(), 0) == r.backward);
    CHECK(g.cpus == 1);
  }
  if (has("piper/resnet.json")) {
    auto const g = read_piper(folder() + "piper/resnet.json", core::profile_units::compute_in_milliseconds);
    double time = 0, weights = 0;
    for (auto const& d : g.degrees) time += d[0].ways[0].seconds, weights += d[0].ways[0].parameters;
    CHECK(g.node_count() == 177);
    CHECK(g.edges.size() == 193);
    CHECK(time == doctest::Approx(0.462381).epsilon(1e-9));
    CHECK(weights == doctest::Approx(1.0223e8).epsilon(1e-4));
  }
  if (has("piper/bert32a100.json")) {
    auto const g = read_piper(folder() + "piper/bert32a100.json", core::profile_units::as_published);
    CHECK(g.node_count() == 37);
    CHECK(g.edges.size() == 67);
    CHECK(g.micro_batches == 1920);
    CHECK(g.degrees[5].size() == 4);
  }
  if (has("pipedream/resnet50/graph.txt")) {
    auto const g = read_pipedream(folder() + "pipedream/resnet50/graph.txt");
    CHECK(g.node_count() == 177);
    CHECK(std::accumulate(g.forward.begin(), g.forward.end(), 0.0) == doctest::Approx(0.2015).epsilon(1e-3));
    CHECK(std::accumulate(g.backward.begin(), g.backward.end(), 0.0) == doctest::Approx(0.2609).epsilon(1e-3));
  }
  if (has("graphpipe/candle_uno_partition.txt"))
    CHECK(read_graphpipe(folder() + "graphpipe/candle_uno_partition.txt").stage_of.size() == 53);
}
