// tests/plan/codec.test.cpp - decode(encode(p)) == p; anything else than a plan is refused with file, key and what is valid
#include <doctest/doctest.h>

#include <limits>
#include <plan/random_plan.hpp>
#include <random>
#include <support/cpu_seconds.hpp>
#include <tensorpar/plan/node_codec.hpp>
#include <tensorpar/plan/plan_text.hpp>

using namespace tensorpar;

namespace {

plan sample() {
  plan p;
  p.model = "mlp";
  p.graph = 0x0123456789abcdefull;
  p.cluster = make_cluster("two by two", {"cpu", 1e10, 2e10, i64{1} << 30, 1e-6}, 4, 2, {"fast", 2, 1e-6, 1e10}, {"slow", 4, 1e-4, 1e8});
  p.nodes = {{{0, {{'0', 2, 2}, {'o', 2, 1}}}}, {{1, {{'\0', 3, 1}}}}, {{3, {}}}};
  p.step_seconds = 0.1;
  p.peak_bytes = {1, 2, 3, 4};
  return p;
}

// The file of `sample` with one change, its checksum left as it was unless the change asks for a new one.
std::string changed(void (*change)(core::json&)) {
  core::json j = encode(sample());
  change(j);
  return j.dump();
}
error refusal(std::string const& text) {
  try {
    decode_plan(text, "plan.json");
  } catch (error const& e) {
    return e;
  }
  return error("accepted", "", "");
}

}  // namespace

TEST_CASE("decode(encode(p)) == p, and the text is canonical") {
  std::mt19937 r(1);
  for (int turn = 0; turn < 300; ++turn) {
    plan const p = test::random_plan(r);
    std::string const text = encode(p).dump();
    plan const q = decode_plan(text, "t");
    REQUIRE(q == p);
    REQUIRE(q.hash() == p.hash());
    REQUIRE(encode(q).dump() == text);
    REQUIRE(decode_plan(encode(p).dump(2), "t") == p);
  }
}

TEST_CASE("a node's text is that of its value, and names cannot stand in the nodes' place") {
  std::mt19937 r(5);
  for (int turn = 0; turn < 200; ++turn) {
    plan p = test::random_plan(r);
    for (op_strategy& n : p.nodes) n.zero = static_cast<ir::zero_stage>(r() % 4), n.recompute = r() % 2 == 0;
    for (op_strategy const& n : p.nodes) {
      std::string text;
      detail::put_node(text, n);
      REQUIRE(text == detail::encode_node(n).dump(-1, ' ', true));
    }
    p.model = turn % 2 ? "\"nodes\":\"\"" : "\\\"nodes\":\"\",\"nodes\":[]";
    core::json const j = encode(p);
    REQUIRE(j["checksum"] == detail::checksum_of(p));
    REQUIRE(decode(j, "p") == p);
  }
}

TEST_CASE("reading and writing a plan of many operators takes time in proportion") {
  auto seconds = [](int n, bool writes) {
    plan p = sample();
    p.peak_bytes.clear();
    p.nodes.assign(static_cast<std::size_t>(n), p.nodes[0]);
    core::json const j = encode(p);
    return tests::cpu_seconds([&] {
      if (writes) encode(p);
      else decode(j, "p");
    });
  };
  for (bool writes : {false, true})
    CHECK(seconds(8000, writes) < 12 * seconds(2000, writes) + 0.005);   // linear: 4 to 5 times; quadratic: 16
}

TEST_CASE("reals keep every bit") {
  for (double x : {0.1, 1e-308, 5e-324, 1.7976931348623157e308, 1.0 / 3, 123456789.123456789, 0.0, -0.0}) {
    plan p = sample();
    p.step_seconds = x;
    plan const q = decode_plan(encode(p).dump(), "t");
    CHECK(std::bit_cast<u64>(q.step_seconds) == std::bit_cast<u64>(x));
  }
}

TEST_CASE("the schema version stands first, and keys may come in any order") {
  core::json const j = encode(sample());
  CHECK(j.begin().key() == "tensorpar_plan");
  core::json backwards = core::json::object();
  for (auto it = j.rbegin(); it != j.rend(); ++it) backwards[it.key()] = it.value();
  CHECK(decode(backwards, "t") == sample());
}

TEST_CASE("refusals name the file, the key and what is valid") {
  struct example { void (*change)(core::json&); char const *where, *problem, *valid; };
  example const all[] = {
      {[](core::json& j) { j["tensorpar_plan"] = 3; }, "plan.json: tensorpar_plan", "schema version 3", "version 1 or 2"},
      {[](core::json& j) { j["tensorpar_plan"] = "1"; }, "plan.json: tensorpar_plan", "not a whole number", "a whole number"},
      {[](core::json& j) { j.erase("tensorpar_plan"); }, "plan.json", "not a tensorpar plan", "tensorpar_plan"},
      {[](core::json& j) { j = core::json::array(); }, "plan.json", "not a tensorpar plan", "an object"},
      {[](core::json& j) { j.erase("nodes"); }, "plan.json", "\"nodes\" is missing", "an object that has it"},
      {[](core::json& j) { j["extra"] = 1; }, "plan.json: \"extra\"", "unknown key", "hash"},
      {[](core::json& j) { j["model"] = 7; }, "plan.json: model", "not a text", "a text"},
      {[](core::json& j) { j["graph"] = "xyz"; }, "plan.json: graph", "not a hash", "16 lower-case"},
      {[](core::json& j) { j["graph"] = "0123456789ABCDEF"; }, "plan.json: graph", "not a hash", "16 lower-case"},
      {[](core::json& j) { j["micro_batches"] = 0; }, "plan.json: micro_batches", "out of range", "from 1"},
      {[](core::json& j) { j["micro_batches"] = 1.5; }, "plan.json: micro_batches", "not a whole number", "from 1"},
      {[](core::json& j) { j["micro_batches"] = 99999999999; }, "plan.json: micro_batches", "out of range", "1048576"},
      {[](core::json& j) { j["micro_batches"] = std::numeric_limits<u64>::max(); }, "plan.json: micro_batches", "out of range", "1048576"},
      {[](core::json& j) { j["optimizer"]["kind"] = "adam"; }, "plan.json: optimizer.kind", "\"adam\" is none of them",
       "sgd, momentum, adamw"},
      {[](core::json& j) { j["optimizer"]["moments"] = "f32"; }, "plan.json: optimizer.moments", "unknown", "bf16, or no such key for f32"},
      {[](core::json& j) { j["optimizer"]["gradients"] = "i32"; }, "plan.json: optimizer.gradients", "unknown", "bf16, or no such key for f32"},
      {[](core::json& j) { j["optimizer"]["moments"] = 2; }, "plan.json: optimizer.moments", "not a text", "a text"},
      {[](core::json& j) { j["optimizer"]["beta1"] = nullptr; }, "plan.json: optimizer.beta1", "not a number", "a number from"},
      {[](core::json& j) { j["optimizer"]["beta1"] = -1; }, "plan.json: optimizer.beta1", "out of range", "a number from"},
      {[](core::json& j) { j["cluster"]["device"] = core::json::array(); }, "plan.json: cluster.device", "a list of 0", "from 1"},
      {[](core::json& j) { j["cluster"]["device"][2] = 1; }, "plan.json: cluster.device[2]", "out of range", "from 0 to 0"},
      {[](core::json& j) { j["cluster"]["links"] = core::json::array(); }, "plan.json: cluster.links", "a list of 0", "from 1"},
      {[](core::json& j) { j["cluster"]["links"][1]["group"] = 3; }, "plan.json: cluster.links[1].group", "out of range", "from 4"},
      {[](core::json& j) { j["cluster"]["links"][0]["bandwidth"] = 0; }, "plan.json: cluster.links[0].bandwidth", "out of range",
       "a number from 1"},
      {[](core::json& j) { j["cluster"]["kinds"][0]["memory"] = -5; }, "plan.json: cluster.kinds[0].memory", "out of range", "from 1"},
      {[](core::json& j) { j["cluster"]["kinds"][0]["rates"] = {{"bf16", -1}}; }, "plan.json: cluster.kinds[0].rates.bf16", "out of range",
       "a number from 1"},
      {[](core::json& j) { j["cluster"]["kinds"][0]["rates"] = {{"fp16", 1e12}}; }, "plan.json: cluster.kinds[0].rates.\"fp16\"",
       "unknown key", "f32, tf32, bf16, fp8"},
      {[](core::json& j) { j["precision"] = "fp16"; }, "plan.json: precision", "\"fp16\" is none of them", "f32, tf32, bf16, fp8"},
      {[](core::json& j) { j["precision"] = "f32"; }, "plan.json: precision", "says nothing", "tf32, bf16, fp8"},
      {[](core::json& j) { j["nodes"] = 3; }, "plan.json: nodes", "not a list", "a list"},
      {[](core::json& j) { j["nodes"][0]["start"] = 4; }, "plan.json: nodes[0].start", "out of range", "from 0 to 3"},
      {[](core::json& j) { j["nodes"][0]["axes"][0]["degree"] = 1000000000; }, "plan.json: nodes[0].axes[0].degree", "out of range",
       "from 1 to 4"},
      {[](core::json& j) { j["nodes"][0]["axes"][1]["degree"] = 4; }, "plan.json: nodes[0].axes[1].degree", "the mesh has 8 devices",
       "at most 4"},
      {[](core::json& j) { j["nodes"][0]["axes"][0]["degree"] = 0; }, "plan.json: nodes[0].axes[0].degree", "out of range", "from 1"},
      {[](core::json& j) { j["nodes"][0]["axes"][1]["stride"] = 3; }, "plan.json: nodes[0].axes[1].stride", "reaches device 5",
       "devices 0 to 3"},
      {[](core::json& j) { j["nodes"][0]["axes"][1]["letter"] = "ab"; }, "plan.json: nodes[0].axes[1].letter", "not a loop", "one letter"},
      {[](core::json& j) { j["node_order"] = 3; }, "plan.json: node_order", "not a list", "a list"},
      {[](core::json& j) { j["node_order"] = core::json::array(); }, "plan.json: node_order", "a list of 0", "from 1"},
      {[](core::json& j) { j["node_order"] = {0, 1}; }, "plan.json: node_order", "an order of 2 operators where the plan decides about 3",
       "every operator once"},
      {[](core::json& j) { j["node_order"] = {0, 3, 1}; }, "plan.json: node_order[1]", "operator 3", "operators 0 to 2"},
      {[](core::json& j) { j["node_order"] = {0, 2, 2}; }, "plan.json: node_order[2]", "operator 2 comes twice", "every operator once"},
      {[](core::json& j) { j["node_order"] = {0, 2, "b"}; }, "plan.json: node_order[2]", "not a whole number", "a whole number"},
      {[](core::json& j) { j["node_order"] = {0, 2, 1}; }, "plan.json: checksum", "edited", "plan again"},
      {[](core::json& j) { j["node_order"] = {0, 2, 1}; j["pipeline"] = 1; }, "plan.json: node_order", "beside a pipeline",
       "one of the two"},
      {[](core::json& j) { j["predicted"]["peak_bytes"].erase(0); }, "plan.json: predicted.peak_bytes", "one entry per device",
       "4 entries"}, {[](core::json& j) { j["predicted"]["cost"] = "fast"; }, "plan.json: predicted.cost", "not a number", "a number from"},
      {[](core::json& j) { j["predicted"]["tasks"] = "0123456789abcdef"; }, "plan.json: predicted", "belong together", "both, or neither"},
      {[](core::json& j) { j["predicted"]["tasks"] = j["predicted"]["offsets"] = "7"; }, "plan.json: predicted.tasks", "not a hash",
       "16 lower-case"},
      // values that are fine one by one, but not what was written
      {[](core::json& j) { j["nodes"][0]["axes"][0]["letter"] = "1"; }, "plan.json: checksum", "edited", "plan again"},
      {[](core::json& j) { j["predicted"]["step_seconds"] = 0.2; }, "plan.json: checksum", "edited", "plan again"},
      {[](core::json& j) { j["model"] = "cnn"; }, "plan.json: checksum", "edited", "plan again"},
      {[](core::json& j) { j["hash"] = "0000000000000000"; }, "plan.json: hash", "the hash is not the plan's", ""},
      {[](core::json& j) { j["checksum"] = "0000000000000000"; }, "plan.json: checksum", "edited", "plan again"},
      {[](core::json& j) { j["checksum"] = 5; }, "plan.json: checksum", "not a hash", "16 lower-case"},
  };
  for (example const& e : all) {
    std::string const text = changed(e.change);
    CAPTURE(text);
    error const got = refusal(text);
    CHECK(got.where() == e.where);
    CHECK_MESSAGE(got.problem().find(e.problem) != std::string::npos, got.what());
    CHECK_MESSAGE(got.valid().find(e.valid) != std::string::npos, got.what());
  }
}

TEST_CASE("text cut short is refused at every length") {
  std::string const text = encode(sample()).dump();
  for (std::size_t n = 0; n < text.size(); ++n) {
    error const e = refusal(text.substr(0, n));
    REQUIRE(e.problem() != "accepted");
    REQUIRE(e.where().rfind("plan.json", 0) == 0);
  }
  CHECK(refusal(text + "}").where() == "plan.json:1:" + std::to_string(text.size() + 1));
}

TEST_CASE("any changed byte is an error or the same plan") {
  std::mt19937 r(2);
  int refused = 0, same = 0;
  for (int turn = 0; turn < 3000; ++turn) {
    plan const p = turn % 2 ? sample() : test::random_plan(r);
    std::string text = encode(p).dump(turn % 3 ? -1 : 1);
    for (int n = 1 + static_cast<int>(r() % 3); n > 0; --n) {
      std::size_t const at = r() % text.size();
      if (r() % 4 == 0) text.erase(at, 1 + r() % 3);
      else if (r() % 4 == 0) text.insert(at, 1, static_cast<char>(r()));
      else text[at] = static_cast<char>(r() % 3 ? r() % 128 : r());
      if (text.empty()) text = " ";
    }
    bool equal = true;
    try {
      equal = decode_plan(text, "t") == p;
      ++same;
    } catch (error const&) {
      ++refused;
    }
    REQUIRE(equal);
  }
  MESSAGE(refused << " refused, " << same << " unharmed");
  CHECK(refused > 2500);
}

TEST_CASE("what JSON cannot hold is refused when writing") {
  for (double x : {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    plan p = sample();
    p.cost = x;
    CHECK_THROWS_AS(encode(p), error);
    p = sample();
    p.cluster.kinds[0].flops = x;
    CHECK_THROWS_AS(encode(p), error);
  }
  plan p = sample();
  p.model = "\xff";
  CHECK_THROWS_AS(encode(p), error);
}

TEST_CASE("a plan's file says its number format, and what a device does in others, only where it is not f32 alone") {
  plan p = sample();
  CHECK(!encode(p).contains("precision"));
  CHECK(!encode(p)["cluster"]["kinds"][0].contains("rates"));
  std::vector<u64> hashes{p.hash()};
  for (precision f : {precision::tf32, precision::bf16, precision::fp8}) {
    p.precision = f;
    CHECK(encode(p)["precision"] == precision_names[static_cast<int>(f)]);
    CHECK(decode(encode(p), "t") == p);
    for (u64 h : hashes) CHECK(h != p.hash());
    hashes.push_back(p.hash());
  }
  p.cluster.kinds[0].rates = {.f32 = 1e10, .bf16 = 4e10};
  for (u64 h : hashes) CHECK(h != p.hash());
  CHECK(encode(p)["cluster"]["kinds"][0]["rates"].dump() == R"({"f32":10000000000.0,"bf16":40000000000.0})");
  CHECK(decode(encode(p), "t") == p);
}

TEST_CASE("a plan's file says what the loss is only where it is a sum; without it, as in older files, it is a mean") {
  plan p = sample();
  CHECK(!encode(p).contains("reduction"));
  CHECK(decode_plan(encode(p).dump(), "t").reduction == loss_reduction::mean);
  u64 const mean = p.hash();
  p.reduction = loss_reduction::sum;
  CHECK(encode(p)["reduction"] == "sum");
  CHECK(decode_plan(encode(p).dump(), "t") == p);
  CHECK(p.hash() != mean);
  for (char const* text : {"mean", "as_graph", "product"}) {
    core::json j = encode(p);
    j["reduction"] = text;
    CHECK(std::string(refusal(j.dump()).what()).find("reduction") != std::string::npos);
  }
  p.reduction = loss_reduction::as_graph;
  CHECK_THROWS_WITH_AS(encode(p), doctest::Contains("leaves the loss's reduction open"), error);
}
