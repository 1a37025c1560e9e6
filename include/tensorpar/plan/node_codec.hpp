// tensorpar/plan/node_codec.hpp - what a plan decides about one operator, as JSON
#pragma once
#include <charconv>
#include <string>
#include <tensorpar/plan/plan.hpp>
#include <tensorpar/plan/plan_reader.hpp>

namespace tensorpar::detail {

constexpr char const* sharding_names[] = {"none", "update", "weights"};

inline json encode_node(node_choice const& n) {
  spread const& s = n.spread;
  json axes = json::array();
  for (grid_axis const& a : s.axes) {
    json x = json_object(3);
    json_append(x, "letter", a.letter ? std::string(1, a.letter) : std::string());
    json_append(x, "degree", a.degree);
    json_append(x, "stride", a.stride);
    axes.push_back(std::move(x));
  }
  json r = json_object(4);
  json_append(r, "start", s.start);
  json_append(r, "axes", std::move(axes));
  if (n.sharding != weight_sharding::none) json_append(r, "sharding", sharding_names[static_cast<int>(n.sharding)]);
  if (n.recompute) json_append(r, "recompute", true);
  return r;
}

inline void put_number(std::string& out, i64 x) {
  char digits[24];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, x).ptr);
}
/// encode_node(n) as it stands in the canonical text, without the values between: a plan may have a million of them.
inline void put_node(std::string& out, node_choice const& n) {
  out += "{\"start\":";
  put_number(out, n.spread.start);
  out += ",\"axes\":[";
  for (grid_axis const& a : n.spread.axes) {
    out += &a == n.spread.axes.data() ? "{\"letter\":\"" : ",{\"letter\":\"";
    if (a.letter) out += a.letter;
    out += "\",\"degree\":";
    put_number(out, a.degree);
    out += ",\"stride\":";
    put_number(out, a.stride);
    out += '}';
  }
  out += ']';
  if (n.sharding != weight_sharding::none) out.append(",\"sharding\":\"").append(sharding_names[static_cast<int>(n.sharding)]).append("\"");
  out += n.recompute ? ",\"recompute\":true}" : "}";
}

inline bool names_loop(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }
inline node_choice decode_node(plan_reader const& r, int devices) {
  r.object({"start", "axes", "sharding", "recompute"});
  node_choice choice;
  spread& s = choice.spread;
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
    grid_axis const g{c, a["degree"].integer(1, devices), a["stride"].integer(1, devices)};
    parts *= g.degree;
    last += (g.degree - 1) * g.stride;
    if (parts > devices) a["degree"].fail("the grid has " + std::to_string(parts) + " devices", "at most " + std::to_string(devices));
    if (last >= devices) a["stride"].fail("the grid reaches device " + std::to_string(last), "devices 0 to " + std::to_string(devices - 1));
    s.axes.push_back(g);
  }
  if (r.at.contains("sharding")) {
    int const k = r["sharding"].one_of(sharding_names);
    if (k == 0) r["sharding"].fail("says nothing", "update, weights, or no such key");
    choice.sharding = static_cast<weight_sharding>(k);
  }
  if (r.at.contains("recompute")) {
    if (r["recompute"].at != true) r["recompute"].fail("not true", "true, or no such key");
    choice.recompute = true;
  }
  return choice;
}

}  // namespace tensorpar::detail
