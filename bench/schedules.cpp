// bench/schedules.cpp - passes per second of simulator, checker and generators; bubbles and activations beside their closed forms
#include "../examples/standard_output.hpp"
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <tensorpar/check/schedule_check.hpp>
#include <tensorpar/search/pipeline/schedules/closed_forms.hpp>
#include <tensorpar/search/pipeline/schedules/microbatch.hpp>

using namespace tensorpar;
using namespace tensorpar::search;

namespace {

void line(std::string const& name, char const* metric, double value, char const* unit, double reference) {
  std::printf("{\"bench\":\"schedules\",\"case\":\"%s\",\"metric\":\"%s\",\"value\":%.6g,\"unit\":\"%s\",\"reference\":%.6g,\"ratio\":%.4g}\n",
              name.c_str(), metric, value, unit, reference, reference > 0 ? value / reference : 0.0);
}
template <class F> double seconds(F const& f) {   // the least of five
  double least = 1e300;
  for (int i = 0; i < 5; ++i) {
    auto const from = std::chrono::steady_clock::now();
    f();
    least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count());
  }
  return least;
}

pipeline stages_on(int groups, int v, int micro_batches, bool v_shape = false) {
  pipeline p;
  p.mini_batch = micro_batches;
  for (int g = 0; g < groups; ++g) p.groups.push_back({g, 1});
  p.stages.resize(static_cast<std::size_t>(groups * v));
  for (int s = 0; s < groups * v; ++s)
    p.stages[static_cast<std::size_t>(s)].group = v_shape && s >= groups ? 2 * groups - 1 - s : s % groups;
  return p;
}
std::size_t passes(pipeline const& p) {
  std::size_t n = 0;
  for (auto const& o : p.schedule) n += o.size();
  return n;
}

/// Bubble and largest activations of a schedule with p = 8, m = 32 and the costs of a whole share, beside the closed form.
void quality(schedule_kind kind, int v, double f, double b, double w, schedule_form const& form) {
  int const p = 8, m = 32;
  simulation::pipeline_costs c;
  c.stages.assign(static_cast<std::size_t>(p * v), {f / v, b / v, w / v, 0, 1.0 / v});
  auto const e = passes::chain_of_stages(p * v);
  auto const q = make_schedule(kind, stages_on(p, v, m, kind == schedule_kind::zb_v), e, c);
  if (!q) return;
  auto const r = simulation::simulate_pipeline(*q, e, c);
  char name[80];
  std::snprintf(name, sizeof name, "%s p=8 m=32 F=%g B=%g W=%g v=%d", std::string(name_of(kind)).c_str(), f, b, w, v);
  line(name, form.of_span ? "bubble in the longest span" : "bubble", form.of_span ? r.span_bubble() : r.bubble(), "s", form.bubble);
  line(name, "most activations", *std::max_element(r.activations.begin(), r.activations.end()), "micro-batches",
       form.activations.empty() ? 0 : *std::max_element(form.activations.begin(), form.activations.end()));
}

void speed(int p, int m) {
  auto const e = passes::chain_of_stages(p);
  simulation::pipeline_costs c;
  c.stages.assign(static_cast<std::size_t>(p), {1, 1, 1, 0, 1});
  auto const bare = stages_on(p, 1, m);
  std::string const size = " p=" + std::to_string(p) + " m=" + std::to_string(m);
  auto const rate = [&](std::string const& name, pipeline const& q, double s, double wanted) {
    line(name + size, "passes", static_cast<double>(passes(q)) / s, "1/s", wanted);
  };
  for (schedule_kind kind : {schedule_kind::gpipe, schedule_kind::one_f_one_b, schedule_kind::zb_h1}) {
    auto const q = *make_schedule(kind, bare, e, c);
    std::string const name(name_of(kind));
    simulation::pipeline_simulator run(q, e, c);
    rate("simulate " + name, q, seconds([&] { run.attempt(q.schedule); }), 1e6);
    rate("generate " + name, q, seconds([&] { make_schedule(kind, bare, e, c); }), 0);
    rate("check " + name, q, seconds([&] { check_orders(q, e); }), 0);
  }
  for (schedule_kind kind : {schedule_kind::greedy, schedule_kind::zb_auto})
    if (p <= 16)
      line("generate " + std::string(name_of(kind)) + size, "seconds", seconds([&] { make_schedule(kind, bare, e, c); }), "s", 0);
}

void in_flight_speed() {
  i64 sum = 0;
  in_flight_ratio rule(1, 2);
  auto const all = [&](auto&& f) {
    for (i64 k : {1, 2, 4})
      for (i64 b = 1; b <= 64; b *= 2)
        for (i64 l : {1, 2, 4})
          for (i64 d = 1; d <= 64; d *= 2)
            for (i64 i = 1; i <= 64; ++i) sum += f(k, b, l, d, i * l * d);
  };
  double const calls = 3.0 * 7 * 3 * 7 * 64;
  line("in-flight table", "calls", calls / seconds([&] { all(in_flight); }), "1/s", 1e6);
  line("in-flight, forward:backward 1:2", "calls", calls / seconds([&] { all(rule); }), "1/s", 1e6);
  if (sum == 0) std::puts("");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Passes per second of the pipeline simulator and schedule generators; schedules beside their closed forms"};
  bool quick = false;
  app.add_flag("--quick", quick, "small pipelines only");
  CLI11_PARSE(app, argc, argv);
  for (auto [f, b, w] : {std::array<double, 3>{2, 2, 2}, {4, 5, 3}}) {
    even_chain const one{.p = 8, .m = 32, .forward = f, .backward = b, .weights = w};
    even_chain two = one;
    two.v = 2;
    quality(schedule_kind::gpipe, 1, f, b, w, gpipe_form(one));
    quality(schedule_kind::one_f_one_b, 1, f, b, w, one_f_one_b_form(one));
    quality(schedule_kind::greedy, 1, f, b, w, one_f_one_b_form(one));
    quality(schedule_kind::interleaved, 2, f, b, w, interleaved_form(two));
    quality(schedule_kind::zb_h1, 1, f, b, w, zb_h1_form(one));
    quality(schedule_kind::zb_h2, 1, f, b, w, zb_h2_form(one));
    quality(schedule_kind::zb_v, 2, f, b, w, zb_v_form(one));
  }
  speed(8, 32);
  in_flight_speed();
  if (quick) return 0;
  speed(16, 256);
  speed(64, 4096);
  return 0;
}
