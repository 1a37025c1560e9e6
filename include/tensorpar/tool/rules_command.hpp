// tensorpar/tool/rules_command.hpp - `tensorpar rules`: the shipped rewrite rules, counted and listed
#pragma once
#include <map>
#include <string>
#include <tensorpar/report/json.hpp>
#include <tensorpar/report/units.hpp>
#include <tensorpar/rewrite/rules/standard_rules.hpp>
#include <tensorpar/tool/console.hpp>
#include <tensorpar/tool/nearest.hpp>
#include <tensorpar/tool/settings.hpp>

namespace tensorpar::tools {

namespace detail {

inline constexpr char const* rule_kinds[] = {"algebra", "parallel", "hybrid"};

/// "element-wise sums" of "element-wise sums 12, 3": the family of terms in which a rule was found.
inline std::string family_of(std::string_view name) {
  std::size_t end = name.find_first_of("0123456789");
  if (end == name.npos) end = name.size();
  while (end > 0 && (name[end - 1] == ' ' || name[end - 1] == ',')) --end;
  return std::string(end ? name.substr(0, end) : name);
}

}  // namespace detail

/// Counts of the shipped rules by kind and by family; with a word, the rules whose names contain it. Throws
/// `usage_error` where none does. O(rules).
inline exit_code rules_command(settings const& s, console const& io) {
  std::map<std::string, int> families, kinds;
  std::vector<rewrite::shipped_rule> listed_rules;
  std::vector<rewrite::shipped_rule> const all = rewrite::shipped_rules();
  for (rewrite::shipped_rule const& r : all) {
    ++families[detail::family_of(r.name)];
    ++kinds[detail::rule_kinds[idx(static_cast<int>(r.kind))]];
    if (!s.word.empty() && detail::lower_case(r.name).find(detail::lower_case(s.word)) != std::string::npos)
      listed_rules.push_back(r);
  }
  if (!s.word.empty() && listed_rules.empty()) {
    std::vector<std::string> names;
    for (auto const& [name, n] : families) names.push_back(name);
    throw usage_error("no rule is called \"" + s.word + "\"" + did_you_mean(s.word, names), "tensorpar rules",
                      listed(names));
  }
  if (s.json) {
    for (rewrite::shipped_rule const& r : listed_rules)
      io.out << report::event_line("rule", {{"name", r.name},
                                            {"kind", detail::rule_kinds[idx(static_cast<int>(r.kind))]},
                                            {"cases", r.cases},
                                            {"text", r.text},
                                            {"axioms", r.axioms}});
    core::json line{{"rules", all.size()}};
    for (auto const& [name, n] : kinds) line["kinds"][name] = n;
    for (auto const& [name, n] : families) line["families"][name] = n;
    io.out << report::event_line("rules", line);
    return exit_code::fine;
  }
  for (rewrite::shipped_rule const& r : listed_rules)
    io.out << r.name << " (" << detail::rule_kinds[idx(static_cast<int>(r.kind))] << ", proved in " << r.cases
           << " cases)\n  " << r.text << "\n";
  if (!listed_rules.empty()) {
    io.out << listed_rules.size() << " of " << all.size() << " rules\n";
    return exit_code::fine;
  }
  io.out << all.size() << " rules, each proved for all degrees and extents\n";
  std::vector<std::vector<std::string>> rows;
  for (auto const& [name, n] : kinds) rows.push_back({name, std::to_string(n)});
  io.out << "by what they change\n" << report::columns(rows, {}, "  ");
  rows.clear();
  for (auto const& [name, n] : families) rows.push_back({name, std::to_string(n)});
  io.out << "by family\n" << report::columns(rows, {}, "  ");
  return exit_code::fine;
}

}  // namespace tensorpar::tools
