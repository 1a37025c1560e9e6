// tests/report/page/browser.test.cpp - pages in a real browser, where there is one: no error, every row, folds that open and close by keyboard
#include <tensorpar/report/page/html.hpp>
#include <tensorpar/report/page/pipeline_page.hpp>
#include <doctest/doctest.h>

#include <cstdlib>
#include <report/found_in.hpp>
#include <report/page/page_subject.hpp>
#include <support/random_pipeline.hpp>
#include <support/scratch_folder.hpp>
#include <tensorpar/core/read_file.hpp>
#include <tensorpar/core/whole_file.hpp>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/program/step_of.hpp>
#include <tensorpar/simulate/engine.hpp>

using namespace tensorpar;
using tests::count;

namespace {

/// The browser's command; "" where there is none.
std::string browser() {
  for (char const* name : {"chromium", "chromium-browser", "google-chrome"})
    if (std::system(("command -v " + std::string(name) + " >/dev/null 2>&1").c_str()) == 0) return name;
  return "";
}
/// What a page shows after a script has run behind its own: the document, and "errors=N" as its title.
std::string shown(std::string page, std::string const& script) {
  tests::scratch_folder const folder;
  std::string const head = "<script>let errors = []; onerror = m => { errors.push(m); };</script></head>",
                    tail = "<script>" + script + "document.title = 'errors=' + errors.length + ' ' + errors.join(' ');</script></body>";
  page.replace(page.find("</head>"), 7, head);
  page.replace(page.rfind("</body>"), 7, tail);
  core::write_whole_file(folder / "page.html", page);
  int const rc = std::system((browser() + " --headless --no-sandbox --disable-gpu --user-data-dir=" + (folder / "profile") +
                              " --virtual-time-budget=5000 --dump-dom 'file://" + (folder / "page.html") + "' > " + (folder / "dom") +
                              " 2> " + (folder / "log")).c_str());
  CHECK(rc == 0);
  return core::read_file(folder / "dom");
}
std::size_t rows(std::string const& dom) {
  std::size_t const from = dom.find("<tbody id=\"operators\">");
  return count(dom.substr(from, dom.find("</tbody>", from) - from), "<tr ");
}
bool without_browser() {
  if (!browser().empty()) return false;
  MESSAGE("skipped: there is no chromium, chromium-browser or google-chrome");
  return true;
}
/// Sixteen layers of three operators on one device, between an input and a loss.
computation_graph layers() {
  computation_graph g;
  int v = g.add_input("x", {8, 16});
  for (int r = 0; r < 16; ++r) {
    int const from = v;
    v = tests::out(g, g.add_with_weights(linear{16}, {v}, "fc" + std::to_string(r)));
    v = tests::out(g, g.add(relu{}, {v}, "act" + std::to_string(r)));
    v = tests::out(g, g.add(add{}, {v, from}, "skip" + std::to_string(r)));
  }
  int const w = g.add_parameter("w", {8, 16}, tensorpar::op::init::normal_02);
  g.add_output("loss", tests::out(g, g.add(mean_squared_error{}, {v, w}, "loss")));
  return g;
}

}  // namespace

TEST_CASE("pages of every kind run without an error") {
  if (without_browser()) return;
  auto s = tests::report_of(tests::hostile_names(40), 4, 3);
  s.p.model = "<i>\"model\" & co</i>";
  s.p.cluster.name = "</script><script>errors.push('injected')</script>";
  report::page_notes notes;
  notes.strategy = "<b>\"in words\"</b>";
  notes.rivals = {{"<img src=x onerror=errors.push(1)>", "a", 1, 1, 1, "'\"&"}};
  std::string const dom = shown(report::html_report(s.t, s.p, s.q, s.predicted, {{"<measured>", s.measured}}, {}, notes), "");
  CHECK(dom.find("<title>errors=0 </title>") != dom.npos);
  CHECK(rows(dom) == static_cast<std::size_t>(s.t.forward_nodes));
  std::mt19937 draw(5);
  for (int turn = 0; turn < 3; ++turn) {                    // a pipeline, micro-batches, memory savings
    computation_graph const g = tests::small_transformer();
    plan p = tests::random_plan_of_a_kind(g, turn, draw);
    planned_step const x = step_of(g, p);
    std::string const page = report::html_report(x.graph, x.plan, x.program, simulate(x.program, p.cluster, cost::analytical{}));
    CHECK(shown(page, "document.getElementById('theme').click();").find("<title>errors=0 </title>") != std::string::npos);
  }
  CHECK(shown(report::html_report({}, {}, {}, {}), "").find("<title>errors=0 </title>") != std::string::npos);
}

TEST_CASE("folds open and close by click and by keyboard, in graph and table alike") {
  if (without_browser()) return;
  auto const s = tests::report_of(layers(), 1, 1);
  std::string const page = report::html_report(s.t, s.p, s.q, s.predicted);
  std::string const closed = shown(page, "");
  CHECK(rows(closed) == 4);
  CHECK(count(closed.substr(0, closed.find("<template")), "class=\"op") == 4);
  std::string const press = "const press = (what, key) => document.querySelector(what).dispatchEvent("
                            "new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));";
  std::string const opened = shown(page, press + "press('#graph .badge', 'Enter');");
  CHECK(rows(opened) == 49);
  CHECK(count(opened.substr(0, opened.find("<template")), "class=\"op") == 49);
  CHECK(opened.find(">fold all</button>") != opened.npos);
  std::string const again = shown(page, press + "press('#graph .badge', 'Enter'); press('#graph .badge', ' ');");
  CHECK(rows(again) == 4);
  CHECK(again.find(">unfold all</button>") != again.npos);
  std::string const table = shown(page, "document.querySelector('#operators .fold').click();");
  CHECK(rows(table) == 49);
  std::string const sorted = shown(page, "document.querySelectorAll('#operator-table th')[5].click(); document.getElementById('unfold').click();"
                                         "document.querySelector('#operators tr').click();");
  CHECK(rows(sorted) == 49);
  CHECK(count(sorted, "chosen\"") >= 2);                    // in graph and table
  for (std::string const* dom : {&closed, &opened, &again, &table, &sorted}) CHECK(dom->find("<title>errors=0 </title>") != dom->npos);
}

TEST_CASE("ten thousand operators: a small page, a first thousand rows, and all of them on demand") {
  auto const s = tests::report_of(tests::hostile_names(10'000), 6, 1);
  std::string const page = report::html_report(s.t, s.p, s.q, s.predicted);
  CHECK(page.size() < 9'000'000u);
  if (without_browser()) return;
  std::string const first = shown(page, ""), all = shown(page, "[...document.querySelectorAll('#operators button')].pop().click();");
  CHECK(rows(first) == 1000);
  CHECK(rows(all) > 9000);
  for (std::string const* dom : {&first, &all}) CHECK(dom->find("<title>errors=0 </title>") != dom->npos);
}
