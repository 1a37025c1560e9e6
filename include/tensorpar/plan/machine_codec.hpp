// tensorpar/plan/machine_codec.hpp - a cluster as it stands in plans and cluster files
#pragma once
#include <tensorpar/core/json.hpp>
#include <tensorpar/ir/machine/machine_check.hpp>
#include <tensorpar/ir/machine/precision.hpp>
#include <tensorpar/plan/plan_reader.hpp>

namespace tensorpar::detail {

/// Of formats that a kind has none in, nothing is said.
inline core::json encode_rates(format_rates const& rates) {
  core::json r = core::json::object();
  for (int f = 0; f < precisions; ++f)
    if (double const x = rates.in(static_cast<precision>(f)); x > 0) r[precision_names[f]] = x;
  return r;
}
inline format_rates decode_rates(plan_reader const& r) {
  r.object({"f32", "tf32", "bf16", "fp8"});
  auto const rate = [&](char const* f) { return r.at.contains(f) ? r[f].real() : 0; };
  return {rate("f32"), rate("tf32"), rate("bf16"), rate("fp8")};
}
inline core::json encode_efficiency(kernel_efficiency const& e) {
  return {{"products", e.products},
          {"attention", e.attention},
          {"memory", e.memory},
          {"half_results", e.half_results},
          {"half_terms", e.half_terms},
          {"while_communicating", e.while_communicating},
          {"sustained", e.sustained}};
}
/// What is left out is not known.
inline kernel_efficiency decode_efficiency(plan_reader const& r) {
  r.object({"products", "attention", "memory", "half_results", "half_terms", "while_communicating",
            "sustained"});
  auto const part = [&](char const* name) { return r.at.contains(name) ? r[name].real() : 0; };
  return {part("products"),   part("attention"),           part("memory"),   part("half_results"),
          part("half_terms"), part("while_communicating"), part("sustained")};
}
inline core::json encode_machine(machine const& m) {
  core::json kinds = core::json::array(), links = core::json::array();
  for (device_kind const& k : m.kinds) {
    kinds.push_back({{"name", k.name}, {"flops", k.flops}, {"memory_bandwidth", k.memory_bandwidth}});
    kinds.back()["memory"] = k.memory;
    kinds.back()["launch"] = k.launch;
    if (k.rates != format_rates()) kinds.back()["rates"] = encode_rates(k.rates);
    if (k.efficiency != kernel_efficiency()) kinds.back()["efficiency"] = encode_efficiency(k.efficiency);
  }
  for (link_level const& l : m.links)
    links.push_back(
        {{"name", l.name}, {"group", l.group}, {"latency", l.latency}, {"bandwidth", l.bandwidth}});
  core::json r = core::json::object();
  r["name"] = m.name;
  r["kinds"] = std::move(kinds);
  r["device"] = m.device;
  r["links"] = std::move(links);
  if (m.lane_per_link) r["lane_per_link"] = true;
  return r;
}

// Whether numbers are in range is for require_machine to say (ir/machine/machine_check.hpp), once all are
// there.
inline device_kind decode_kind(plan_reader const& k) {
  k.object({"name", "flops", "memory_bandwidth", "memory", "launch", "rates", "efficiency"});
  device_kind r{k["name"].text(), k["flops"].real(), k["memory_bandwidth"].real(), k["memory"].integer(),
                k["launch"].real()};
  if (k.at.contains("rates")) r.rates = decode_rates(k["rates"]);
  if (k.at.contains("efficiency")) r.efficiency = decode_efficiency(k["efficiency"]);
  return r;
}
inline std::vector<link_level> decode_links(plan_reader const& links) {
  std::vector<link_level> r;
  for (std::size_t i = 0, n = links.array(0, 64); i < n; ++i) {
    plan_reader const l = links[i];
    l.object({"name", "group", "latency", "bandwidth"});
    r.push_back({l["name"].text(), l["group"].integer(), l["latency"].real(), l["bandwidth"].real()});
  }
  return r;
}
/// Left out where one lane serves all links.
inline bool decode_lanes(plan_reader const& r) {
  return r.at.contains("lane_per_link") && r["lane_per_link"].boolean();
}
inline machine decode_machine(plan_reader const& r) {
  r.object({"name", "kinds", "device", "links", "lane_per_link"});
  machine m;
  m.name = r["name"].text();
  plan_reader const kinds = r["kinds"], device = r["device"], links = r["links"];
  for (std::size_t i = 0, n = kinds.array(1, plan_max_devices); i < n; ++i)
    m.kinds.push_back(decode_kind(kinds[i]));
  for (std::size_t i = 0, n = device.array(1, plan_max_devices); i < n; ++i)
    m.device.push_back(device[i].bounded(INT32_MIN, INT32_MAX));
  m.links = decode_links(links);
  m.lane_per_link = decode_lanes(r);
  require_machine(m, std::string(r.file) + ": " + r.child(""));
  return m;
}

}  // namespace tensorpar::detail
