// src/rules.cpp - compiled once for tensorpar::compiled: rewrite rules, read and replayed
#include <tensorpar/program/rewritten.hpp>
#include <tensorpar/search/problem/substitution_rules.hpp>

namespace tensorpar {
template rewrite::rewriting rewrite::apply_rule<>(rewrite::rule const&, rewrite::rule_match const&, rewrite::open_graph&, rewrite::left_overs);
template rewrite::rule rewrite::parse_rule<>(std::string_view, rewrite::vocabulary const&, std::string const&);
template std::vector<rewrite::rule> const& rewrite::standard_rules<>();
template std::vector<rewrite::rule> const& rewrite::rules_both_ways<>();
template std::vector<rewrite::rule> const& rewrite::nesting_rules<>();
template std::vector<rewrite::rule> const& search::substitution_rules<>();
template computation_graph passes::rewritten<>(computation_graph const&, plan const&);
}  // namespace tensorpar
