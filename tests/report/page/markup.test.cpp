// tests/report/page/markup.test.cpp - text cannot become markup; tables have what they are given
#include <tensorpar/report/page/markup.hpp>
#include <doctest/doctest.h>

using namespace tensorpar;

TEST_CASE("text that may stand in elements and attributes") {
  CHECK(report::html_text("a<b>&\"c'\n") == "a&lt;b&gt;&amp;&quot;c&#39; ");
  CHECK(report::html_text("<a href=\"x\">'&'\n</a>") == "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39; &lt;/a&gt;");
  CHECK(report::html_text("\xc2\xb7") == "\xc2\xb7");
}

TEST_CASE("cards, meters, legends and tables") {
  using namespace report::detail;
  CHECK(card("<1>", "a", "b") == "<div><p class=\"soft\">a</p><p class=\"big\">&lt;1&gt;</p><p class=\"soft\">b</p></div>\n");
  CHECK(meter_row("n", "v", 0.255, "m").find("width:25.5%") != std::string::npos);
  CHECK(meter_row("n", "v", 7, "m").find("width:100.0%") != std::string::npos);
  CHECK(meter_row("n", "v", -1, "m").find("width:0.0%") != std::string::npos);
  CHECK(legend({{"red", "a & b"}}) == "<div class=\"legend\"><span><i style=\"background:red\"></i>a &amp; b</span></div>\n");
  CHECK(table({{"a", "b"}, {"1", "2"}}, {false, true}) ==
        "<div class=\"table whole\"><table class=\"plain\"><thead><tr><th>a</th><th class=\"n\">b</th></tr></thead><tbody>\n"
        "<tr><td>1</td><td class=\"n\">2</td></tr>\n</tbody></table></div>\n");
  CHECK(table({}) == "<div class=\"table whole\"><table class=\"plain\"></table></div>\n");
  CHECK(short_number(2.04) == "2");
  CHECK(short_number(-2.06) == "-2.1");
}
