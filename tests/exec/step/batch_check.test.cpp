// tests/exec/step/batch_check.test.cpp - a bad batch is one clear error, and the next good one trains as if it had never been
#include <doctest/doctest.h>
#include <functional>
#include <tensorpar/exec/step/batch_check.hpp>

#include "support/effort.hpp"
#include "support/random_pipeline.hpp"
#include "support/spine.hpp"

using namespace tests;

namespace {

/// A language model whose one input holds tokens and, shifted by one, labels; the last token is a label alone.
computation_graph shifted_tokens() {
  computation_graph g;
  int const ids = g.add_input("ids", shape({4, 7}, dtype::i32)), x = g.add_input("x", {4, 6, 8});
  int const tokens = out(g, g.add(slice_axis{1, 0, 6}, {ids})), labels = out(g, g.add(slice_axis{1, 1, 6}, {ids}));
  int v = g.add_with_weights(embedding{20, 8}, {tokens}, "embed");
  v = g.add(add{}, {out(g, v), x}, "sum");
  v = g.add_with_weights(linear{12}, {out(g, v)}, "head");
  v = g.add(cross_entropy{}, {out(g, v), labels}, "loss");
  g.add_output("loss", out(g, v));
  return g;
}
struct mistake {
  char const* words;
  std::function<void(host_batch&)> make;
};
/// What may be wrong with input `name` of a batch.
std::vector<mistake> faults_of(host_batch const& good, std::string const& name) {
  host_tensor const& t = good.at(name);
  bool const integer = t.real.empty();
  char const* const number = integer ? " integers (at batch)" : " real numbers (at batch)";
  std::vector<mistake> r{
      {"the batch lacks input '", [=](host_batch& b) { b.erase(name); }},
      {"which is no input of the model (at batch); valid: '", [](host_batch& b) { b["mask"] = {{4}, {1, 1, 1, 1}, {}}; }},
      {" has shape ", [=](host_batch& b) { b[name].shape.d[0].n += 1; }},
      {" has shape ", [=](host_batch& b) { b[name].shape.d[b[name].shape.rank++] = dim(1); }},
      {" has shape ", [=](host_batch& b) { b[name].shape.rank = 0; }},
      {number, [=](host_batch& b) { integer ? b[name].index.pop_back() : b[name].real.pop_back(); }},
      {number, [=](host_batch& b) { integer ? b[name].index.clear() : b[name].real.clear(); }},
      {integer ? " is given real numbers (at batch)" : " is given integers (at batch)",
       [=](host_batch& b) {
         host_tensor& x = b[name];
         auto const n = integer ? x.index.size() : x.real.size();
         x.real.assign(integer ? n : 0, 1.0f);
         x.index.assign(integer ? 0 : n, 1);
       }},
      {integer ? " is given real numbers besides its integers" : " is given integers besides its real numbers",
       [=](host_batch& b) { integer ? b[name].real.push_back(1) : b[name].index.push_back(1); }}};
  if (integer)
    for (std::int32_t v : {-1, 12, 1 << 30, std::numeric_limits<std::int32_t>::min()})
      r.push_back({"; valid: 0 to 11, for ", [=](host_batch& b) { b[name].index[b[name].index.size() * 2 / 3] = v; }});
  return r;
}
template <class E> std::string answer_to(E& e, host_batch const& b, bool evaluates) {
  try {
    if (evaluates) e.evaluate(b);
    else e.step(b, 0.125);
  } catch (error const& x) { return x.what(); }
  return "accepted";
}

}  // namespace

TEST_CASE("no bad batch harms an executor: every fault of every input, in steps and evaluations, under shardings, savings and pipelines") {
  std::mt19937 draw(1);
  int faults = 0;
  for (computation_graph const& g : {residual_mlp(), small_transformer()})
    for (int turn = 0, n = test_effort::cases(6); turn < n; ++turn) {
      plan const p = random_plan_of_a_kind(g, turn, draw);
      executor_of<double> e(g, p), twin(g, p);
      int const times = turn % 3 < 2 ? 4 : p.micro_batches;
      host_batch const good = random_batch(g, times, 1);
      CAPTURE(turn);
      e.initialise(1);
      twin.initialise(1);
      for (auto const& [name, tensor] : good)
        for (mistake const& f : faults_of(good, name)) {
          host_batch bad = good;
          f.make(bad);
          bool const evaluates = draw() % 2;
          CAPTURE(name);
          CAPTURE(f.words);
          std::string const said = answer_to(e, bad, evaluates);
          CHECK_MESSAGE(said.find(f.words) != said.npos, said);
          ++faults;
        }
      CHECK_FALSE(e.failed());
      for (u64 k = 0; k < 2; ++k) CHECK(e.step(random_batch(g, times, k), 0.125).loss == twin.step(random_batch(g, times, k), 0.125).loss);
      CHECK(parameters_of(e) == parameters_of(twin));
    }
  CHECK(faults > test_effort::cases(200));
}

TEST_CASE("indices are checked where they are read: parts of one input have ranges of their own, in every micro-batch") {
  computation_graph const g = shifted_tokens();
  for (int micro_batches : {1, 3}) {
    training_options o;
    o.micro_batches = micro_batches;
    plan p = serial_plan(g);
    p.micro_batches = micro_batches;
    executor_of<float> e(differentiate(g, o), p);
    e.initialise(1);
    host_batch const good = random_batch(g, micro_batches, 1);
    for (int row = 0; row < 4 * micro_batches; ++row)
      for (int column : {0, 3, 6}) {
        host_batch b = good;
        std::int32_t& x = b["ids"].index[static_cast<std::size_t>(row * 7 + column)];
        std::string const at = " at [" + std::to_string(row) + ", " + std::to_string(column) + "] (at batch); valid: 0 to ";
        x = column ? 11 : 19;
        CHECK(answer_to(e, b, false) == "accepted");
        x = column ? 12 : 20;                              // a label, or a first token, which is no label
        std::string const words =
            "input 'ids' holds " + std::to_string(x) + at + (column ? "11, for cross_entropy 'loss'" : "19, for embedding 'embed'");
        CHECK(answer_to(e, b, false) == words);
        CHECK(answer_to(e, b, true) == words);
      }
  }
}
