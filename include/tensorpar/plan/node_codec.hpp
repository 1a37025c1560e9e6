// tensorpar/plan/node_codec.hpp - what a plan decides about one operator, as JSON
#pragma once
#include <charconv>
#include <string>
#include <tensorpar/plan/plan.hpp>
#include <tensorpar/plan/plan_reader.hpp>

namespace tensorpar::detail {

constexpr char const* zero_stage_names[] = {"none", "updates", "weights", "gradients"};

inline core::json encode_node(op_strategy const& n) {
  ir::sharding const& s = n.sharding;
  core::json axes = core::json::array();
  for (ir::mesh_axis const& a : s.axes) {
    core::json x = core::detail::json_object(3);
    core::detail::json_append(x, "letter", a.letter ? std::string(1, a.letter) : std::string());
    core::detail::json_append(x, "degree", a.degree);
    core::detail::json_append(x, "stride", a.stride);
    axes.push_back(std::move(x));
  }
  core::json r = core::detail::json_object(4);
  core::detail::json_append(r, "start", s.start);
  core::detail::json_append(r, "axes", std::move(axes));
  if (n.zero != ir::zero_stage::none)
    core::detail::json_append(r, "zero", zero_stage_names[static_cast<int>(n.zero)]);
  if (n.recompute) core::detail::json_append(r, "recompute", true);
  return r;
}

inline void put_number(std::string& out, i64 x) {
  char digits[24];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, x).ptr);
}
/// encode_node(n) as it stands in the canonical text, without the values between: a plan may have a million
/// of them.
inline void put_node(std::string& out, op_strategy const& n) {
  out += "{\"start\":";
  put_number(out, n.sharding.start);
  out += ",\"axes\":[";
  for (ir::mesh_axis const& a : n.sharding.axes) {
    out += &a == n.sharding.axes.data() ? "{\"letter\":\"" : ",{\"letter\":\"";
    if (a.letter) out += a.letter;
    out += "\",\"degree\":";
    put_number(out, a.degree);
    out += ",\"stride\":";
    put_number(out, a.stride);
    out += '}';
  }
  out += ']';
  if (n.zero != ir::zero_stage::none)
    out.append(",\"zero\":\"").append(zero_stage_names[static_cast<int>(n.zero)]).append("\"");
  out += n.recompute ? ",\"recompute\":true}" : "}";
}

inline bool names_loop(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}
inline op_strategy decode_node(plan_reader const& r, int devices) {
  r.object({"start", "axes", "zero", "recompute"});
  op_strategy choice;
  ir::sharding& s = choice.sharding;
  s.start = r["start"].bounded(0, devices - 1);
  plan_reader const axes = r["axes"];
  i64 parts = 1, last = s.start;
  for (std::size_t i = 0, n = axes.array(0, 64); i < n; ++i) {
    plan_reader const a = axes[i];
    a.object({"letter", "degree", "stride"});
    std::string const letter = a["letter"].text();
    char const c = letter.empty() ? '\0' : letter[0];
    bool const fine = letter.empty() || (letter.size() == 1 && names_loop(c));
    if (!fine) a["letter"].fail("not a loop", "one letter or digit, or an empty text for replicas");
    ir::mesh_axis const g{c, a["degree"].integer(1, devices), a["stride"].integer(1, devices)};
    parts *= g.degree;
    last += (g.degree - 1) * g.stride;
    if (parts > devices)
      a["degree"].fail("the mesh has " + std::to_string(parts) + " devices",
                       "at most " + std::to_string(devices));
    if (last >= devices)
      a["stride"].fail("the mesh reaches device " + std::to_string(last),
                       "devices 0 to " + std::to_string(devices - 1));
    s.axes.push_back(g);
  }
  if (r.at.contains("zero")) {
    int const k = r["zero"].one_of(zero_stage_names);
    if (k == 0) r["zero"].fail("says nothing", "updates, gradients, weights, or no such key");
    choice.zero = static_cast<ir::zero_stage>(k);
  }
  if (r.at.contains("recompute")) {
    if (r["recompute"].at != true) r["recompute"].fail("not true", "true, or no such key");
    choice.recompute = true;
  }
  return choice;
}

}  // namespace tensorpar::detail
