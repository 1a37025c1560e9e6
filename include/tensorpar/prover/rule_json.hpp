// tensorpar/prover/rule_json.hpp - rules as JSON, and back
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/json.hpp>
#include <tensorpar/rewrite/rule_parser.hpp>

namespace tensorpar::prover {

/// {"name", "source": {"nodes": [{"op", "attributes": {name: term}, "in": [value]}], "outputs": [value]},
/// "target": {...},
///  "conditions": [text]}. A value is a tensor's name, or "#i" for node i of its side, "#i.j" for its result
///  j; a function is "?f".
inline core::json to_json(rewrite::rule const& r) {
  auto value = [&](rewrite::pattern_value v) {
    return v.node < 0 ? r.tensors[idx(v.slot)]
                      : "#" + std::to_string(v.node) + (v.slot ? "." + std::to_string(v.slot) : "");
  };
  auto side = [&](rewrite::pattern_graph const& g) {
    core::json nodes = core::json::array(), outputs = core::json::array();
    for (rewrite::pattern_node const& n : g.nodes) {
      core::json attributes = core::json::object(), in = core::json::array();
      for (std::size_t i = 0; i < n.attr.size(); ++i)
        if (!n.attr[i].open)
          attributes[std::string(n.op->attr_name(static_cast<int>(i)))] =
              rewrite::detail::spell_term(r, n.attr[i], n.op->attr_kind(static_cast<int>(i)) == 'f');
      for (rewrite::pattern_value v : n.in) in.push_back(value(v));
      std::string const op =
          n.op ? std::string(n.op->name) : "?" + r.parameters[idx(n.function)].name;
      nodes.push_back({{"op", op}, {"attributes", std::move(attributes)}, {"in", std::move(in)}});
    }
    for (rewrite::pattern_value v : g.outputs) outputs.push_back(value(v));
    return core::json{{"nodes", std::move(nodes)}, {"outputs", std::move(outputs)}};
  };
  core::json conditions = core::json::array();
  for (rewrite::rule_condition const& c : r.conditions) conditions.push_back(rewrite::spell(r, c));
  return {{"name", r.name},
          {"source", side(r.source)},
          {"target", side(r.target)},
          {"conditions", std::move(conditions)}};
}

/// The rule that `to_json` wrote. Throws `error` where something is missing, of another type, or means
/// nothing.
/// Law: rule_from_json(to_json(r)) is r up to the numbering of tensors and parameters.
inline rewrite::rule rule_from_json(core::json const& j,
                                    rewrite::vocabulary const& words = rewrite::standard_vocabulary(),
                           std::string const& where = "rule") {
  auto member = [&](core::json const& o, char const* key, core::json::value_t type,
                    char const* kind) -> core::json const& {
    if (!o.is_object() || !o.contains(key) || o[key].type() != type)
      throw error(std::string("no ") + kind + " \"" + key + "\"", where, "what to_json writes");
    return o[key];
  };
  auto text = [&](core::json const& v) {
    if (!v.is_string()) throw error("a value that is no text", where, "what to_json writes");
    return v.get<std::string>();
  };
  auto value = [&](core::json const& v) {
    std::string s = text(v);
    if (!s.empty() && s[0] == '#') s[0] = 'n';
    return s;
  };
  // The text form of the same rule, every node by name; its parser checks the rest.
  auto side = [&](char const* key) {
    core::json const& g = member(j, key, core::json::value_t::object, "object");
    std::string s;
    int count = 0;
    for (core::json const& n : member(g, "nodes", core::json::value_t::array, "array")) {
      s += "n" + std::to_string(count++) + " = " + text(member(n, "op", core::json::value_t::string, "text"));
      std::string attributes, in;
      for (auto const& [name, term] : member(n, "attributes", core::json::value_t::object, "object").items())
        attributes += (attributes.empty() ? "" : ",") + name + "=" + text(term);
      for (core::json const& v : member(n, "in", core::json::value_t::array, "array"))
        in += (in.empty() ? "" : ", ") + value(v);
      s += (attributes.empty() ? "" : "{" + attributes + "}") + "(" + in + "); ";
    }
    std::string outputs;
    for (core::json const& v : member(g, "outputs", core::json::value_t::array, "array"))
      outputs += (outputs.empty() ? "" : ", ") + value(v);
    return s + outputs;
  };
  std::string conditions;
  for (core::json const& c : member(j, "conditions", core::json::value_t::array, "array"))
    conditions += (conditions.empty() ? " where " : ", ") + text(c);
  rewrite::rule r = rewrite::parse_rule(side("source") + " => " + side("target") + conditions, words, where);
  r.name = text(member(j, "name", core::json::value_t::string, "text"));
  return r;
}

}  // namespace tensorpar::prover
