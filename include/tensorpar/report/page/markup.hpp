// tensorpar/report/page/markup.hpp - text that may stand in a page, and the small pieces that pages are made
// of
#pragma once
#include <string>
#include <string_view>
#include <tensorpar/report/units.hpp>
#include <utility>
#include <vector>

namespace tensorpar::report {

/// Text for HTML and SVG, in elements and in quoted attributes. Control characters become spaces.
inline std::string html_text(std::string_view s) {
  std::string r;
  for (char c : s) {
    switch (c) {
      case '&': r += "&amp;"; break;
      case '<': r += "&lt;"; break;
      case '>': r += "&gt;"; break;
      case '"': r += "&quot;"; break;
      case '\'': r += "&#39;"; break;
      default: r += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return r;
}

namespace detail {

/// For coordinates: at most one digit behind the point.
inline std::string short_number(double x) {
  std::string r = printed("%.1f", x);
  if (r.ends_with(".0")) r.resize(r.size() - 2);
  return r;
}
inline std::string card(std::string const& big, std::string const& what, std::string const& more = "") {
  return "<div><p class=\"soft\">" + html_text(what) + "</p><p class=\"big\">" + html_text(big) +
         "</p><p class=\"soft\">" + html_text(more) + "</p></div>\n";
}
/// A row of a table: name, value, a bar of which `part` (0 to 1) is filled, and a remark.
inline std::string meter_row(std::string const& name, std::string const& value, double part,
                             std::string const& more, std::string const& colour = "") {
  std::string const width = printed("%.1f", 100 * std::min(1.0, std::max(0.0, part)));
  return "<tr><td>" + html_text(name) + "</td><td class=\"n\">" + html_text(value) +
         "</td><td><div class=\"meter\"><i style=\"width:" + width + "%" +
         (colour.empty() ? "" : ";background:" + colour) + "\"></i></div></td><td class=\"n soft\">" +
         html_text(more) + "</td></tr>\n";
}
/// A square in a colour, which is CSS and no user's text.
inline std::string swatch(std::string const& colour) { return "<i style=\"background:" + colour + "\"></i>"; }
/// Colours with what they mean.
inline std::string legend(std::vector<std::pair<std::string, std::string>> const& entries) {
  std::string r = "<div class=\"legend\">";
  for (auto const& [colour, text] : entries) r += "<span>" + swatch(colour) + html_text(text) + "</span>";
  return r + "</div>\n";
}
/// Rows of cells that are markup already, the first row a heading. `numbers`: by column whether it stands to
/// the right.
inline std::string table(std::vector<std::vector<std::string>> const& rows,
                         std::vector<bool> const& numbers = {}) {
  std::string r = "<div class=\"table whole\"><table class=\"plain\">";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::string const tag = i == 0 ? "th" : "td";
    r += i == 0 ? "<thead><tr>" : "<tr>";
    for (std::size_t k = 0; k < rows[i].size(); ++k)
      r += "<" + tag + (k < numbers.size() && numbers[k] ? " class=\"n\"" : "") + ">" + rows[i][k] + "</" +
           tag + ">";
    r += i == 0 ? "</tr></thead><tbody>\n" : "</tr>\n";
  }
  return r + (rows.empty() ? "" : "</tbody>") + "</table></div>\n";
}

}  // namespace detail

}  // namespace tensorpar::report
