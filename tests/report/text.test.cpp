// tests/report/text.test.cpp - units, explanations and comparisons say what the program does
#include <doctest/doctest.h>

#include <report/report_subject.hpp>
#include <sstream>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/report/text.hpp>
#include <tensorpar/simulate/engine.hpp>

using namespace tensorpar;

namespace {
bool has(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }
std::size_t lines(std::string const& s) { return static_cast<std::size_t>(std::count(s.begin(), s.end(), '\n')); }
}  // namespace

TEST_CASE("units have three digits") {
  CHECK(seconds_text(0) == "0 s");
  CHECK(seconds_text(1.5e-9) == "1.50 ns");
  CHECK(seconds_text(999.4e-9) == "999 ns");
  CHECK(seconds_text(999.6e-9) == "1.00 us");
  CHECK(seconds_text(12.34e-6) == "12.3 us");
  CHECK(seconds_text(0.5) == "500 ms");
  CHECK(seconds_text(12) == "12.0 s");
  CHECK(seconds_text(-2e-3) == "-2.00 ms");
  CHECK(bytes_text(0) == "0 B");
  CHECK(bytes_text(1023) == "1023 B");
  CHECK(bytes_text(1024) == "1.00 KiB");
  CHECK(bytes_text(1536.0 * 1024) == "1.50 MiB");
  CHECK(bytes_text(1023.9 * 1024) == "1.00 MiB");
  CHECK(bytes_text(5e15) == "4.44 PiB");
  CHECK(devices_text({0, 1, 2, 3, 8, 10, 11}) == "0-3,8,10-11");
  CHECK(devices_text({}) == "");
  CHECK(columns({{"a", "10"}, {"\xce\xbb\xce\xbb\xce\xbb", "5"}}, {}) == "  a    10\n  \xce\xbb\xce\xbb\xce\xbb   5\n");
}

TEST_CASE("a spread is said with the names of axes") {
  computation_graph g;
  axis const batch("batch"), hidden("hidden");
  int const x = g.add_input("x", {batch(8), dim(6)});
  int const v = g.add_with_weights(linear{.out = 12, .to = hidden}, {x}, "fc");
  std::string const all = spread_text(g, v, {0, {{'0', 2, 1}, {'o', 3, 2}, {'\0', 2, 6}}});
  CHECK(has(all, "batch /2"));
  CHECK(has(all, "/3"));
  CHECK(has(all, "2 copies"));
  CHECK(has(spread_text(g, v, {0, {{'i', 2, 1}}}), "(summed) /2"));
  CHECK(spread_text(g, v, {}) == "one device");
  CHECK(spread_text(g, v, {0, {{'0', 2, 2}, {'0', 2, 1}}}) == "batch /4");
}

TEST_CASE("a summary adds up") {
  for (unsigned seed = 0; seed < 12; ++seed) {
    auto const s = tests::report_of(seed % 2 ? tests::residual_mlp() : tests::small_transformer(), seed % 3 ? 4 : 6, seed,
                                    1 + static_cast<int>(seed % 2));
    plan_summary const sum = summary_of("chosen", s.t, s.p, s.q, s.predicted);
    CHECK(sum.operators.size() == static_cast<std::size_t>(s.t.forward_nodes));
    double of_operators = 0, of_tasks = 0, compute = 0, busy = 0;
    i64 tasks = 0;
    for (operator_summary const& o : sum.operators) of_operators += o.sent();
    for (task const& k : s.q.tasks) {
      of_tasks += bytes_of_move(s.q, k);
      tasks += k.kind == task_kind::move;
    }
    for (i64 n : sum.times) tasks -= n;
    CHECK(tasks == 0);
    CHECK(of_tasks == doctest::Approx(sum.sent()));
    CHECK(of_operators == doctest::Approx(sum.sent()));              // without clipping, every movement serves some forward operator
    for (device_summary const& d : sum.devices) { compute += d.compute + d.move; CHECK(d.compute <= sum.seconds * (1 + 1e-9)); }
    for (span const& x : s.predicted.spans) busy += x.end - x.start;
    CHECK(compute == doctest::Approx(busy));
    CHECK(sum.peak() == *std::max_element(s.q.arena.begin(), s.q.arena.end()));
  }
}

TEST_CASE("an explanation names every operator, collective and device") {
  auto const s = tests::report_of(tests::residual_mlp(), 4, 3);
  std::string const text = explain(s.t, s.p, s.q, s.predicted);
  plan_summary const sum = summary_of("", s.t, s.p, s.q, s.predicted);
  for (operator_summary const& o : sum.operators) { CHECK(has(text, o.name)); CHECK(has(text, o.spread)); }
  for (int k = 0; k < move_kinds; ++k)
    if (sum.bytes[static_cast<std::size_t>(k)] > 0) CHECK(has(text, move_text(static_cast<move_kind>(k)) + " "));
  CHECK(has(text, "predicted step " + seconds_text(s.predicted.seconds)));
  CHECK(has(text, "dominated by comp") != has(text, "dominated by comm"));
  CHECK(has(text, "peak memory"));
  CHECK(text.back() == '\n');
  plan q = s.p;
  q.bound = 0.9;
  q.cost = 1;
  CHECK(has(explain(s.t, q, s.q, s.predicted), "gap 10.0 %"));
}

TEST_CASE("many operators share lines") {
  auto const s = tests::report_of(tests::hostile_names(300), 1, 1);
  std::string const text = explain(s.t, s.p, s.q, s.predicted);
  CHECK(lines(text) < 30);
  std::istringstream in(text);  // rows by their words: the widths of the columns are the table's business
  int found = 0;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string count, times, op;
    words >> count >> times >> op;
    if (times != "x") continue;
    ++found;
    CHECK((op == "relu" ? count == "200" : op == "add" && count == "100"));
  }
  CHECK(found == 2);
  CHECK(has(text, "contraction{bi,io->bo}"));  // not as packed words
}

TEST_CASE("attributes that are empty are left out") {
  CHECK(op_text(linear{512}) == "linear{out=512,bias=1}");
  CHECK(op_text(linear{.out = 10, .to = axis("classes")}) == "linear{out=10,bias=1,to=classes}");
  CHECK(op_text(relu{}) == "relu");
  CHECK(op_text(contraction("mk,kn->mn")) == "contraction{mk,kn->mn}");
}

TEST_CASE("what dominates follows the tasks, with and without overlap") {
  auto const s = tests::report_of(tests::residual_mlp(), 4, 3);
  timeline const one_lane = simulate(s.q, s.p.cluster, analytical{}, {.overlap = false});
  plan_summary const two = summary_of("", s.t, s.p, s.q, s.predicted), one = summary_of("", s.t, s.p, s.q, one_lane);
  CHECK(two.sent() > 0);
  for (std::size_t d = 0; d < one.devices.size(); ++d) {
    CHECK(one.devices[d].move == doctest::Approx(two.devices[d].move));
    CHECK(one.devices[d].compute == doctest::Approx(two.devices[d].compute));
  }
  // by hand: two tasks on one device, 3 s of computing and 1 s of talking
  program q = s.q;
  q.tasks.clear();
  task work, talk;
  work.node = 2;
  talk.kind = task_kind::move;
  talk.step.kind = move_kind::all_gather;
  q.tasks = {work, talk};
  timeline time;
  time.spans = {{1, lane::compute, 0, "work", 0, 3}, {1, lane::compute, 1, "talk", 3, 4}};
  time.seconds = 4;
  CHECK(summary_of("", s.t, s.p, q, time).dominated ==
        "computation: device 1 computes for 75 % of the step, most of it for fc2 (3.00 s); it communicates for 25 %, most of it in "
        "all-gather (1.00 s)");
}

TEST_CASE("a plan without a timeline is still explained") {
  auto const s = tests::report_of(tests::residual_mlp(), 2, 5);
  CHECK(has(explain(s.t, s.p, s.q, timeline{}), "nothing was timed"));
}

TEST_CASE("one operator, and the same text every time") {
  auto const s = tests::report_of(tests::one_operator(), 2, 5);
  std::string const text = explain(s.t, s.p, s.q, s.predicted);
  CHECK(has(text, "only"));
  CHECK(has(text, "nothing"));  // is moved
  auto const a = tests::report_of(tests::small_cnn(), 4, 9), b = tests::report_of(tests::small_cnn(), 4, 9);
  CHECK(explain(a.t, a.p, a.q, a.predicted) == explain(b.t, b.p, b.q, b.predicted));
  CHECK(explain(plan_summary{}).find("dominated") != std::string::npos);
}

TEST_CASE("progress") {
  CHECK(progress_line({3, 12, 0.25, 0.975, 1234.4, 2e-3, 1.6e-3}) ==
        "epoch 3/12  loss 0.2500  accuracy 97.50 %  1234 samples/s  step 2.00 ms (predicted 1.60 ms, +25 %)");
  CHECK(progress_line({1, 1, 2, -1, 10, 1, 0}) == "epoch 1/1  loss 2.0000  10 samples/s  step 1.00 s");
}
