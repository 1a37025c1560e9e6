// tensorpar/plan/schema1.hpp - plan files of schema 1, whose keys had other names
#pragma once
#include <algorithm>
#include <string>
#include <tensorpar/core/json.hpp>

namespace tensorpar::detail {

/// Gives the key of an object another name, in its place. Nothing where there is no such key, or both are.
inline void rename_key(core::json& object, char const* from, char const* to) {
  if (!object.is_object() || !object.contains(from) || object.contains(to)) return;
  core::json r = core::json::object();
  for (auto& [key, value] : object.items()) r[key == from ? to : key] = std::move(value);
  object = std::move(r);
}

/// A plan's JSON with the names of the other schema: of schema 1 (`first`), or of schema 2. What is no plan
/// stays what it is, for decode to refuse. Schema 1 says `order` for `node_order` and for a pipeline's
/// `schedule`, and `sharding: update` for `zero: updates`. O(plan).
inline core::json in_schema(core::json plan, bool first) {
  auto const rename = [&](core::json& object, char const* one, char const* two) {
    rename_key(object, first ? two : one, first ? one : two);
  };
  if (!plan.is_object()) return plan;
  plan["tensorpar_plan"] = first ? 1 : 2;
  rename(plan, "order", "node_order");
  if (plan.contains("pipeline")) rename(plan["pipeline"], "order", "schedule");
  if (!plan.contains("nodes") || !plan["nodes"].is_array()) return plan;
  for (core::json& node : plan["nodes"]) {
    rename(node, "sharding", "zero");
    char const* const key = first ? "sharding" : "zero";
    if (node.is_object() && node.contains(key) && node[key] == (first ? "updates" : "update"))
      node[key] = first ? "update" : "updates";
  }
  return plan;
}

}  // namespace tensorpar::detail
