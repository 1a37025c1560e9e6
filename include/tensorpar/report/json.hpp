// tensorpar/report/json.hpp - events for programs: one JSON object per line, always complete, always valid
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/json.hpp>
#include <tensorpar/report/text.hpp>

namespace tensorpar::report {

/// One line, newline included: {"event":name, ...fields}. Text that is not UTF-8 is replaced, numbers that
/// JSON lacks become null. Precondition: fields is an object. Law: parse_json of the line gives the fields
/// back, after "event".
inline std::string event_line(std::string const& name, core::json const& fields = core::json::object()) {
  core::json line = core::json::object();
  line["event"] = name;
  for (auto const& [key, value] : fields.items())
    if (key != "event") line[key] = value;
  return line.dump(-1, ' ', false, core::json::error_handler_t::replace) + "\n";
}

/// Of a summary: times, bytes by collective, memory by device, and how every operator is sharded.
inline core::json to_json(plan_summary const& s) {
  core::json bytes = core::json::object(), peaks = core::json::array(), ops = core::json::array();
  for (int k = 0; k < move_kinds; ++k)
    if (static_cast<ir::reshard_kind>(k) != ir::reshard_kind::slice)
      bytes[ir::name_of(static_cast<ir::reshard_kind>(k))] = s.bytes[idx(k)];
  for (device_summary const& d : s.devices) peaks.push_back(d.peak);
  for (operator_summary const& o : s.operators) {
    core::json x = core::json::object();
    x["node"] = o.node;
    x["name"] = o.name;
    x["op"] = o.op;
    x["sharding"] = o.sharding;
    x["devices"] = o.devices;
    x["saves"] = choice_words(o.choice);
    x["compute_s"] = o.compute;
    x["move_s"] = o.move;
    x["bytes"] = o.sent();
    ops.push_back(std::move(x));
  }
  core::json r = core::json::object();
  r["name"] = s.name;
  r["model"] = s.model;
  r["cluster"] = s.cluster;
  r["numbers"] = s.numbers;
  r["devices"] = s.devices.size();
  r["micro_batches"] = s.micro_batches;
  r["settings"] = settings_text(s);
  r["reduction"] = s.summed ? "sum" : "mean";
  r["ordered"] = s.ordered;
  r["predicted_step_s"] = s.seconds;
  r["samples_per_s"] = s.rate.samples;
  r["tokens_per_s"] = s.rate.tokens;
  r["model_flops"] = s.rate.model_flops;
  r["mfu"] = s.rate.mfu;
  r["exposed_communication_s"] = s.communication.exposed;
  r["cost_s"] = s.cost;
  r["bound_s"] = s.bound;
  r["bytes"] = std::move(bytes);
  r["predicted_peak_bytes"] = std::move(peaks);
  r["scratch"] = s.scratch;
  r["dominated"] = s.dominated;
  r["operators"] = std::move(ops);
  return r;
}
inline core::json to_json(progress const& p) {
  core::json r = core::json::object();
  r["epoch"] = p.epoch;
  r["epochs"] = p.epochs;
  r["loss"] = p.loss;
  if (p.accuracy >= 0) r["accuracy"] = p.accuracy;
  r["samples_per_s"] = p.samples_per_second;
  r["measured_step_s"] = p.measured_step;
  r["predicted_step_s"] = p.predicted_step;
  return r;
}

}  // namespace tensorpar::report
