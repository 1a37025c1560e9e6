// tests/zoo/registry.test.cpp - models by name: sizes from a text, what is refused, every reduced model trained serially and sharded
#include <doctest/doctest.h>
#include <tensorpar/zoo/registry.hpp>

#include <cmath>
#include <set>
#include <support/spine.hpp>
#include <tensorpar/ir/differentiate.hpp>

#include "counts.hpp"

using namespace tests;

namespace {
std::string refusal(auto&& f) {
  try {
    f();
  } catch (error const& e) {
    return e.what();
  }
  return "accepted";
}
std::string answer(std::string_view spec, i64 batch = 1) {
  return refusal([&] { zoo::make(spec, batch); });
}
bool starts(std::string const& text, std::string_view with) { return text.substr(0, with.size()) == with; }
/// A model's own samples on axis 0 of every input.
bool batched(computation_graph const& g, i64 batch) {
  for (graph_value const& v : g.values)
    if (v.role == value_role::input && !(v.type.d[0] == zoo::batch(batch))) return false;
  return true;
}
}  // namespace

TEST_CASE("there are 23 models, each with a name, a description, a batch and sizes") {
  std::set<std::string> names;
  for (zoo::entry const& e : zoo::entries()) {
    CAPTURE(e.name);
    CHECK(names.insert(e.name).second);
    CHECK(!e.description.empty());
    CHECK(e.samples_per_device >= 1);
    CHECK(!e.params.empty());
    for (zoo::parameter const& p : e.params) {
      CHECK(p.value >= p.least);
      CHECK(p.value <= p.most);
    }
  }
  for (char const* n : {"resnext50", "resnext50_artifact", "inception_v3", "inception_v3_artifact", "bert_large", "bert_artifact", "dlrm",
                        "dlrm_summit", "dlrm_criteo", "xdl", "candle_uno", "mlp_unify", "gpt3_1b3", "gpt3_175b", "llama3_8b", "llama3_70b",
                        "llama3_405b", "moe_2b6", "nasnet_a", "mmt", "vgg19", "resnet50", "split_test"})
    CHECK(names.count(n) == 1);
  CHECK(names.size() == 23);
  CHECK(&zoo::entries() == &zoo::entries());
}

TEST_CASE("every model is made, with its sizes said again it is the same, and its loss is its output") {
  for (zoo::entry const& e : zoo::entries()) {
    CAPTURE(e.name);
    computation_graph const g = zoo::make(e.name, e.samples_per_device);
    CHECK(batched(g, e.samples_per_device));
    REQUIRE(g.outputs.size() == 1);
    CHECK(g.outputs[0].name == "loss");
    CHECK(g.type(g.outputs[0].value).rank == 0);
    std::string spec = e.name;
    for (std::size_t i = 0; i < e.params.size(); ++i)
      spec += (i ? "," : ":") + e.params[i].key + "=" + std::to_string(e.params[i].value);
    CHECK(zoo::make(spec, e.samples_per_device).hash() == g.hash());
    CHECK(tensorpar::graph::sp_decomposition(g).has_value() == (e.name != "nasnet_a"));
  }
}

TEST_CASE("sizes are set by key") {
  CHECK(operators(zoo::make("bert_artifact:layers=24", 1))["attention"] == 24);
  CHECK(parameters(zoo::make("mlp_unify:hidden=16,layers=1,features=4", 2)) == 2 * 4 * 16);
  CHECK(operators(zoo::make("inception_v3:auxiliary=1", 1))["conv2d"] == 96);
  CHECK(operators(zoo::make("gpt3_1b3:layers=3,packed=1", 1))["packed_attention"] == 3);
  CHECK(operators(zoo::make("mmt:branches=2,layers=4", 1))["attention"] == 8);
  CHECK(zoo::make("gpt3_1b3:seq=16", 3).values[1].type == shape{zoo::batch(3), zoo::tokens(16)}.of(dtype::i32));
  CHECK(zoo::make("mmt:branches=2,layers=4", 1).hash() == made<zoo::two_branches>(zoo::mmt_sizes{.branches = 2, .layers = 4}).hash());
}

TEST_CASE("what is unknown, malformed, out of range or does not fit is refused with what would be valid") {
  CHECK(starts(answer("resnext"), "no model 'resnext' (at zoo::make: 'resnext'); valid: resnext50, resnext50_artifact, inception_v3, "));
  CHECK(starts(answer(""), "no model ''"));
  CHECK(starts(answer(" vgg19"), "no model ' vgg19'"));
  CHECK(answer("vgg19:depth=3") == "no size 'depth' (at zoo::make: 'vgg19:depth=3'); valid: image, width, hidden, classes");
  CHECK(answer("vgg19:") == "'' is no size (at zoo::make: 'vgg19:'); valid: NAME or NAME:key=value,key=value");
  CHECK(starts(answer("vgg19:image"), "'image' is no size"));
  CHECK(starts(answer("vgg19:image=224,"), "'' is no size"));
  CHECK(answer("vgg19:image=0") == "'0' for 'image' (at zoo::make: 'vgg19:image=0'); valid: a whole number from 1 to 1024");
  for (char const* value : {"", "-1", "1e3", "12x", " 12", "99999999999999999999", "1025", "0x10"})
    CHECK(starts(answer("vgg19:image=" + std::string(value)), "'" + std::string(value) + "' for 'image'"));
  CHECK(starts(answer("inception_v3:auxiliary=2"), "'2' for 'auxiliary'"));
  CHECK(answer("inception_v3:auxiliary=2").ends_with("from 0 to 1"));
  CHECK(starts(answer("vgg19:image=32,image=32"), "'image' is given twice"));
  CHECK(answer("dlrm:tables=32").ends_with("from 1 to 31"));
  CHECK(answer("xdl:tables=32") == "accepted");
  for (char const* spec : {"bert_large:heads=7", "llama3_8b:kv_heads=5", "llama3_8b:kv_heads=64", "moe_2b6:group=48", "vgg19:image=16",
                           "inception_v3:image=50", "resnext50:groups=3", "nasnet_a:filters=2"}) {
    CAPTURE(spec);
    CHECK(answer(spec).find("valid: sizes that fit each other") != std::string::npos);
  }
  CHECK(answer("mmt:heads=3").ends_with("such as branches=4 layers=8 hidden=1024 heads=16 wide=4096 seq=256"));
  CHECK(answer("vgg19", 0) == "a batch of 0 (at zoo::make: 'vgg19'); valid: a whole number from 1 to 68719476736");
  CHECK(starts(answer("vgg19", -5), "a batch of -5"));
  CHECK(starts(refusal([] { zoo::make_reduced("vgg19:image=32", 1); }), "no model 'vgg19:image=32' (at zoo::make_reduced: "));
}

TEST_CASE("reduced models keep their kinds of operators, and are small") {
  for (zoo::entry const& e : zoo::entries()) {
    CAPTURE(e.name);
    auto const large = operators(zoo::make(e.name, 1)), small = operators(zoo::make_reduced(e.name, 24));
    std::set<std::string> a, b;
    for (auto const& [name, n] : large) a.insert(name);
    for (auto const& [name, n] : small) b.insert(name);
    if (e.name == "moe_2b6") b.erase("merge_axes");          // its groups are parts of sequences
    CHECK(a == b);
    CHECK(parameters(zoo::make_reduced(e.name, 24)) < 14000);
    CHECK(tensorpar::graph::sp_decomposition(zoo::make_reduced(e.name, 24)).has_value() == (e.name != "nasnet_a"));
    CHECK(batched(zoo::make_reduced(e.name, 24), 24));
  }
}

TEST_CASE("reduced models train: in double numbers stay numbers and parameters move, in the field any sharding gives what one device gives") {
  std::mt19937 draw(5);
  for (zoo::entry const& e : zoo::entries()) {
    if (e.name == "gpt3_175b" || e.name == "llama3_70b" || e.name == "llama3_405b") continue;      // the same when reduced
    CAPTURE(e.name);
    computation_graph const g = zoo::make_reduced(e.name, 4);
    training_graph const step = differentiate(g);
    executor_of<double> reals(step, serial_plan(g));
    reals.initialise(7);
    auto const before = parameters_of(reals);
    reals.step(random_batch(g, 1, 1), 0.125);
    auto const after = parameters_of(reals);
    std::size_t still = 0;
    bool numbers = true;
    for (std::size_t i = 0; i < after.size(); ++i) {
      still += after[i] == before[i];
      for (double x : after[i]) numbers = numbers && std::isfinite(x);
    }
    CHECK(numbers);
    CHECK(still <= after.size() / 4);                        // a unit that is off, a bias before a normalisation
    executor_of<prime_field> serial(step, serial_plan(g)), sharding(step, random_plan(g, 4, draw));
    CHECK(train(serial, 1) == train(sharding, 1));
  }
}
