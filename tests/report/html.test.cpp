// tests/report/html.test.cpp - the page stands alone: tags balance, text is escaped, nothing outside is referred to, all data are there
#include <doctest/doctest.h>

#include <map>
#include <report/report_subject.hpp>
#include <set>
#include <tensorpar/report/html.hpp>

using namespace tensorpar;

namespace {

// Opens and closes every element in order; scripts and styles are raw text. Returns what is wrong, or "".
std::string unbalanced(std::string const& page) {
  std::set<std::string> const empty{"meta", "input", "br", "rect", "path", "!DOCTYPE"};
  std::vector<std::string> open;
  for (std::size_t at = 0; at < page.size();) {
    if (page[at] != '<') {
      if (page[at] == '>') return "a bare > at " + std::to_string(at);
      ++at;
      continue;
    }
    std::size_t end = at + 1;
    for (bool quoted = false; end < page.size() && (quoted || page[end] != '>'); ++end) if (page[end] == '"') quoted = !quoted;
    if (end >= page.size()) return "a tag without an end";
    bool const closing = page[at + 1] == '/';
    std::size_t const from = at + 1 + closing;
    std::size_t to = from;
    while (to < end && page[to] != ' ' && page[to] != '/') ++to;
    std::string const name = page.substr(from, to - from);
    if (name.empty()) return "a bare < at " + std::to_string(at);
    if (closing) {
      if (open.empty() || open.back() != name) return "</" + name + "> closes " + (open.empty() ? "nothing" : open.back());
      open.pop_back();
    } else if (!empty.count(name)) {
      open.push_back(name);
      if (name == "script" || name == "style") {
        std::size_t const stop = page.find("</" + name + ">", end);
        if (stop == page.npos) return name + " never ends";
        end = stop - 1;
      }
    }
    at = end + 1;
  }
  return open.empty() ? "" : open.back() + " is never closed";
}
json data_of(std::string const& page) {
  std::string const start = "<script type=\"application/json\" id=\"data\">";
  std::size_t const at = page.find(start) + start.size();
  return parse_json(page.substr(at, page.find("</script>", at) - at), "data");
}
std::size_t count(std::string const& s, std::string const& what) {
  std::size_t n = 0;
  for (std::size_t at = s.find(what); at != s.npos; at = s.find(what, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("pages are well formed and stand alone") {
  for (unsigned k = 0; k < 6; ++k) {
    computation_graph const g = k < 2    ? tests::hostile_names(k ? 200 : 7)
                                : k == 2 ? tests::residual_mlp()
                                : k == 3 ? tests::small_cnn()
                                         : tests::small_transformer();
    static constexpr int devices[] = {4, 2, 6, 12, 1, 64};
    auto s = tests::report_of(g, devices[k], k, 1 + static_cast<int>(k % 2));
    s.p.model = "<i>\"model\" & co</i>";
    s.p.cluster.name = "</script><script>alert(1)</script>";
    std::string const page = html_report(s.t, s.p, s.q, s.predicted, k % 2 ? &s.measured : nullptr);
    CHECK(unbalanced(page) == "");
    for (char const* outside : {"http:", "https:", "//cdn", "src=", "href=", "@import", "url("})
      CHECK_MESSAGE(page.find(outside) == page.npos, outside);
    CHECK(page.find("<i>\"model\"") == page.npos);
    CHECK(page.find("alert(1)</script>") == page.npos);
    CHECK(page.find("&lt;i&gt;&quot;model&quot; &amp; co&lt;/i&gt;") != page.npos);
    CHECK(count(page, "class=\"op\"") == static_cast<std::size_t>(s.t.forward_nodes));
  }
}

TEST_CASE("all spans, operators, devices and samples are in the data") {
  auto const s = tests::report_of(tests::hostile_names(40), 6, 3);
  json const d = data_of(html_report(s.t, s.p, s.q, s.predicted, &s.measured));
  REQUIRE(d["timelines"].size() == 2);
  for (int k = 0; k < 2; ++k) {
    timeline const& t = k ? s.measured : s.predicted;
    json const& spans = d["timelines"][static_cast<std::size_t>(k)]["spans"];
    REQUIRE(spans.size() == t.spans.size());
    for (std::size_t i = 0; i < t.spans.size(); ++i) {
      CHECK(spans[i][0] == t.spans[i].device);
      CHECK(spans[i][2] == t.spans[i].task);
      CHECK(std::abs(spans[i][3].get<double>() - t.spans[i].start * 1e9) <= 0.5 + 1e-6);
      CHECK(d["tasks"][static_cast<std::size_t>(t.spans[i].task)][0] == s.q.tasks[static_cast<std::size_t>(t.spans[i].task)].name);
    }
  }
  CHECK(d["operators"].size() == static_cast<std::size_t>(s.t.forward_nodes));
  CHECK(d["peaks"] == json(s.q.arena));
  CHECK(d["colours"].size() == 6);
  std::size_t samples = 0;
  for (json const& m : d["memory"]) samples += m["samples"].size();
  CHECK(samples == s.predicted.memory.size());
}

TEST_CASE("memory over time from lifetimes stays within the arena and ends with what persists") {
  for (unsigned seed = 0; seed < 10; ++seed) {
    auto const s = tests::report_of(tests::residual_mlp(), 4, seed);
    std::map<int, i64> last, most;
    for (memory_sample const& m : memory_over_time(s.q, s.predicted)) {
      last[m.device] = m.bytes;
      most[m.device] = std::max(most[m.device], m.bytes);
    }
    CHECK(!last.empty());
    for (auto const& [device, bytes] : last) {
      i64 kept = 0;
      for (buffer const& b : s.q.buffers)
        if (b.persistent && std::binary_search(b.devices.begin(), b.devices.end(), device)) kept += b.bytes;
      CHECK(bytes >= kept);
      CHECK(most[device] >= kept);
    }
  }
}

TEST_CASE("text is cut between characters") {
  CHECK(detail::shortened("abc", 3) == "abc");
  CHECK(detail::shortened("abcd", 3) == "ab\xe2\x80\xa6");
  CHECK(detail::shortened("\xce\xbb\xce\xbb\xce\xbb\xce\xbb", 3) == "\xce\xbb\xce\xbb\xe2\x80\xa6");
  CHECK(html_text("<a href=\"x\">'&'\n</a>") == "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39; &lt;/a&gt;");
}
