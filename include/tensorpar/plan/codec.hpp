// tensorpar/plan/codec.hpp - a plan as JSON: canonical, versioned, checksummed
#pragma once
#include <algorithm>
#include <cmath>
#include <optional>
#include <tensorpar/core/hash.hpp>
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/machine/precision.hpp>
#include <tensorpar/plan/machine_codec.hpp>
#include <tensorpar/plan/node_codec.hpp>
#include <tensorpar/plan/optimizer_codec.hpp>
#include <tensorpar/plan/order_fault.hpp>
#include <tensorpar/plan/pipeline_codec.hpp>
#include <tensorpar/plan/plan.hpp>
#include <tensorpar/plan/schema1.hpp>

namespace tensorpar {

namespace detail {

constexpr char const* reduction_names[] = {"as_graph", "mean", "sum"};

inline core::json encode_rewrites(std::vector<rewrite::rewrite_record> const& all) {
  core::json r = core::json::array();
  for (rewrite::rewrite_record const& x : all) {
    core::json one = core::json::object();
    one["rule"] = x.rule;
    one["nodes"] = x.nodes;
    one["tensors"] = x.tensors;
    one["parameters"] = x.parameters;
    one["functions"] = x.functions;
    r.push_back(std::move(one));
  }
  return r;
}
/// Whether rules can be applied so is not looked at here (program/rewritten.hpp).
inline std::vector<rewrite::rewrite_record> decode_rewrites(plan_reader const& r) {
  std::vector<rewrite::rewrite_record> all;
  for (std::size_t i = 0, n = r.array(1, SIZE_MAX); i < n; ++i) {
    plan_reader const x = r[i];
    x.object({"rule", "nodes", "tensors", "parameters", "functions"});
    rewrite::rewrite_record one{x["rule"].text(), {}, {}, {}, {}};
    plan_reader const nodes = x["nodes"], tensors = x["tensors"], parameters = x["parameters"],
                      functions = x["functions"];
    for (std::size_t k = 0, m = nodes.array(0, 64); k < m; ++k)
      one.nodes.push_back(nodes[k].bounded(0, INT32_MAX));
    for (std::size_t k = 0, m = tensors.array(0, 64); k < m; ++k)
      one.tensors.push_back(tensors[k].bounded(-1, INT32_MAX));
    for (std::size_t k = 0, m = parameters.array(0, 64); k < m; ++k)
      one.parameters.push_back(parameters[k].integer(INT64_MIN, INT64_MAX));
    for (std::size_t k = 0, m = functions.array(0, 64); k < m; ++k)
      one.functions.push_back(functions[k].text());
    all.push_back(std::move(one));
  }
  return all;
}

/// Whether operators come behind those that they read from is for the graph to say (fault_of_order).
inline std::vector<int> decode_order(plan_reader const& r, bool pipeline, int operators) {
  if (pipeline)
    r.fail("an order of operators beside a pipeline",
           "one of the two: groups have their own orders of passes");
  std::vector<int> order;
  for (std::size_t i = 0, n = r.array(1, SIZE_MAX); i < n; ++i)
    order.push_back(r[i].bounded(INT32_MIN, INT32_MAX));
  if (std::optional<order_fault> const f = fault_of_permutation(order, operators))
    (f->entry < 0 ? r : r[idx(f->entry)]).fail(f->what, f->valid);
  return order;
}

/// Of the canonical text of everything but itself.
inline std::string text_checksum(std::string_view canonical) {
  return core::detail::hex_of(core::hasher().add(canonical).value());
}
inline std::string plan_checksum(core::json const& body) { return text_checksum(body.dump(-1, ' ', true)); }
inline std::string canonical_text(core::json const& plan_as_json) {
  try {
    return plan_as_json.dump(-1, ' ', true);
  } catch (core::json::exception const&) {
    throw error("a plan with a name that is not UTF-8", "model, device or link names", "UTF-8");
  }
}

/// encode(p) with an empty checksum and these nodes.
inline core::json encode_around(plan const& p, core::json nodes) {
  require_feasible(p);
  core::json r = core::json::object();
  r["tensorpar_plan"] = plan::schema;
  r["hash"] = core::detail::hex_of(p.hash());
  r["checksum"] = "";
  r["model"] = p.model;
  if (p.batch > 0) r["batch"] = p.batch;
  r["graph"] = core::detail::hex_of(p.graph);
  if (!p.rewrites.empty()) {
    r["serial"] = core::detail::hex_of(p.serial);
    r["rewrites"] = detail::encode_rewrites(p.rewrites);
  }
  r["cluster"] = detail::encode_machine(p.cluster);
  r["micro_batches"] = p.micro_batches;
  if (p.prefetch) r["prefetch"] = p.prefetch;
  if (p.reduction != loss_reduction::mean)
    r["reduction"] = detail::reduction_names[static_cast<int>(p.reduction)];
  if (p.precision != precision::f32) r["precision"] = precision_names[static_cast<int>(p.precision)];
  r["scalar_bytes"] = p.scalar_bytes;
  r["optimizer"] = detail::encode_optimizer(p.optimizer);
  r["nodes"] = std::move(nodes);
  if (!p.node_order.empty()) r["node_order"] = p.node_order;
  if (!p.pipeline.empty()) r["pipeline"] = detail::encode_pipeline(p.pipeline);
  core::json said = core::json::object();
  said["cost"] = p.cost;
  said["bound"] = p.bound;
  said["step_seconds"] = p.step_seconds;
  said["peak_bytes"] = p.peak_bytes;
  if (!p.scratch.empty()) said["scratch"] = p.scratch;
  if (p.tasks || p.offsets) {
    said["tasks"] = core::detail::hex_of(p.tasks);
    said["offsets"] = core::detail::hex_of(p.offsets);
  }
  r["predicted"] = std::move(said);
  optimizer_choice const& q = p.optimizer;
  std::vector<double> reals{q.momentum,  q.beta1, q.beta2, q.eps,         q.weight_decay,
                            q.clip_norm, p.cost,  p.bound, p.step_seconds};
  for (device_kind const& k : p.cluster.kinds) {
    reals.insert(reals.end(), {k.flops, k.memory_bandwidth, k.launch});
    for (int f = 0; f < precisions; ++f) reals.push_back(k.rates.in(static_cast<precision>(f)));
    kernel_efficiency const& e = k.efficiency;
    reals.insert(reals.end(), {e.products, e.attention, e.memory, e.half_results, e.half_terms,
                               e.while_communicating, e.sustained});
  }
  for (link_level const& l : p.cluster.links) reals.insert(reals.end(), {l.latency, l.bandwidth});
  if (p.reduction == loss_reduction::as_graph)
    throw error("a plan that leaves the loss's reduction open", p.model, "mean or sum");
  if (p.serial && p.rewrites.empty())
    throw error("a plan with a serial graph and no rewrites", p.model, "both or neither");
  for (double x : reals)
    if (!std::isfinite(x))
      throw error("a plan with a number that is infinite or undefined", p.model, "finite numbers");
  return r;
}
/// The checksum that encode(p) says. O(plan), without the values of the nodes.
inline std::string checksum_of(plan const& p) {
  // no text holds a bare quote, and all other nodes are lists
  constexpr std::string_view place = "\"nodes\":\"\"";
  std::string text = canonical_text(encode_around(p, ""));
  std::string nodes = "\"nodes\":[";
  for (op_strategy const& n : p.nodes) {
    if (&n != p.nodes.data()) nodes += ',';
    put_node(nodes, n);
  }
  nodes += ']';
  text.replace(text.find(place), place.size(), nodes);
  return text_checksum(text);
}

}  // namespace detail

/// The plan as JSON: schema version first, keys in one order, reals with all their digits, hashes as text.
/// Throws `error` where a number is infinite or not a number, or a name is not UTF-8: JSON cannot hold them;
/// and where no plan fits. O(plan).
inline core::json encode(plan const& p) {
  core::json nodes = core::json::array();
  for (op_strategy const& n : p.nodes) nodes.push_back(detail::encode_node(n));
  core::json r = detail::encode_around(p, std::move(nodes));
  r["checksum"] = detail::text_checksum(detail::canonical_text(r));
  return r;
}

namespace detail {

/// The checksum that a file of schema 1 says of this plan.
inline std::string checksum_in_schema_1(plan const& p) {
  core::json r = in_schema(encode(p), true);
  r["checksum"] = "";
  return text_checksum(canonical_text(r));
}

/// decode, but for the checksum and the hash; the nodes are given, or read of "nodes".
inline plan decode_around(core::json const& from, std::string const& where,
                          std::optional<std::vector<op_strategy>> given = std::nullopt) {
  detail::plan_reader const r{from, where, ""};
  if (!from.is_object() || !from.contains("tensorpar_plan"))
    r.fail("not a tensorpar plan", "an object whose first key is \"tensorpar_plan\"");
  if (i64 const v = r["tensorpar_plan"].integer(0, INT64_MAX); v != plan::schema)
    r["tensorpar_plan"].fail(
        "a plan of schema version " + std::to_string(v),
        "version 1 or " + std::to_string(plan::schema) + "; make the plan again with this release");
  r.object({"tensorpar_plan", "hash", "checksum", "model", "batch", "graph", "serial", "rewrites", "cluster",
            "micro_batches", "prefetch", "reduction", "precision", "scalar_bytes", "optimizer", "nodes",
            "node_order", "pipeline", "predicted"});
  plan p;
  p.model = r["model"].text();
  if (from.contains("batch")) p.batch = r["batch"].integer(1, INT64_MAX);
  p.graph = r["graph"].hex();
  if (from.contains("rewrites") != from.contains("serial"))
    r.fail("\"serial\" and \"rewrites\" belong together",
           "both, or neither where the declared graph is run as it is");
  if (from.contains("rewrites")) {
    p.serial = r["serial"].hex();
    p.rewrites = detail::decode_rewrites(r["rewrites"]);
  }
  p.cluster = detail::decode_machine(r["cluster"]);
  p.micro_batches = r["micro_batches"].bounded(1, plan_max_micro_batches);
  if (from.contains("prefetch")) p.prefetch = r["prefetch"].bounded(1, 1 << 20);
  if (from.contains("reduction")) {
    p.reduction = static_cast<loss_reduction>(r["reduction"].one_of(detail::reduction_names));
    if (p.reduction != loss_reduction::sum)
      r["reduction"].fail("says nothing", "sum, or no such key for a mean");
  }
  if (from.contains("precision")) {
    p.precision = static_cast<precision>(r["precision"].one_of(precision_names));
    if (p.precision == precision::f32)
      r["precision"].fail("says nothing", "tf32, bf16, fp8, or no such key for f32");
  }
  p.scalar_bytes = r["scalar_bytes"].integer(1, 64);
  p.optimizer = detail::decode_optimizer(r["optimizer"]);
  detail::plan_reader const nodes = r["nodes"], said = r["predicted"];
  if (given) p.nodes = std::move(*given);
  for (std::size_t i = 0, n = given ? 0 : nodes.array(0, SIZE_MAX); i < n; ++i)
    p.nodes.push_back(detail::decode_node(nodes[i], p.cluster.size()));
  if (from.contains("node_order"))
    p.node_order =
        detail::decode_order(r["node_order"], from.contains("pipeline"), static_cast<int>(p.nodes.size()));
  if (from.contains("pipeline"))
    p.pipeline = detail::decode_pipeline(r["pipeline"], static_cast<int>(p.nodes.size()), p.cluster.size());
  said.object({"cost", "bound", "step_seconds", "peak_bytes", "scratch", "tasks", "offsets"});
  p.cost = said["cost"].real(0);
  p.bound = said["bound"].real(0);
  p.step_seconds = said["step_seconds"].real(0);
  detail::plan_reader const peak = said["peak_bytes"];
  for (std::size_t i = 0, n = peak.array(0, p.cluster.device.size()); i < n; ++i)
    p.peak_bytes.push_back(peak[i].integer(0, INT64_MAX));
  if (said.at.contains("scratch")) {
    p.scratch = said["scratch"].text();
    if (p.scratch.empty())
      said["scratch"].fail("names no compute policy",
                           "the policy whose scratch space is counted, or no such key");
  }
  if (!p.peak_bytes.empty() && p.peak_bytes.size() != p.cluster.device.size())
    peak.fail("not one entry per device", std::to_string(p.cluster.size()) + " entries, or none");
  if (said.at.contains("tasks") != said.at.contains("offsets"))
    said.fail("\"tasks\" and \"offsets\" belong together", "both, or neither");
  if (said.at.contains("tasks")) {
    p.tasks = said["tasks"].hex();
    p.offsets = said["offsets"].hex();
  }
  return p;
}
/// Throws `error` where the checksum or the hash is not what it says it is.
inline void require_said(core::json const& from, std::string const& where, plan const& p,
                         std::string const& checksum) {
  plan_reader const r{from, where, ""};
  if (r["checksum"].hex(); r["checksum"].text() != checksum)
    r["checksum"].fail("the plan was edited or damaged: its content is not what the checksum says",
                       "a plan as it was written; to change one, plan again");
  if (r["hash"].hex() != p.hash())
    r["hash"].fail("the hash is not the plan's", core::detail::hex_of(p.hash()));
}


}  // namespace detail

/// The plan that a JSON value holds. `where` names its source in errors, usually a path. Keys may stand in
/// any order.
/// Throws `error` naming file, key and what is valid. Refused are another schema version, a missing or
/// unknown key, a wrong type, a number out of range and a mesh beyond the cluster. So is a content that its
/// checksum does not match (edited). Law: decode(encode(p)) == p. O(plan).
inline plan decode(core::json const& from, std::string const& where) {
  bool const first = from.is_object() && from.contains("tensorpar_plan") && from["tensorpar_plan"] == 1;
  core::json const now = first ? detail::in_schema(from, false) : core::json();
  plan p = detail::decode_around(first ? now : from, where);
  detail::require_said(from, where, p, first ? detail::checksum_in_schema_1(p) : detail::checksum_of(p));
  return p;
}

}  // namespace tensorpar
