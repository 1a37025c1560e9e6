// tensorpar/tool/diff_command.hpp - `tensorpar diff`: in what two plans differ
#pragma once
#include <map>
#include <string>
#include <tensorpar/report/choices.hpp>
#include <tensorpar/tool/file_commands.hpp>
#include <utility>
#include <vector>

namespace tensorpar::tools {

/// One difference of two plans: what it is about, and what either says.
struct plan_difference {
  std::string what, first, second;
  int operators = 0;  // that differ so; 0: it is no operator's
};

namespace detail {

/// "b /4, o /2, ZeRO: updates in parts": of an operator, whose graph gives axes their names.
inline std::string choice_text(std::optional<computation_graph> const& g, int v, op_strategy const& n) {
  std::string r;
  if (g)
    r = report::sharding_text(*g, v, n.sharding);
  else
    for (ir::mesh_axis const& a : n.sharding.axes)
      r += (r.empty() ? "" : ", ") + (a.letter ? std::string(1, a.letter) + " /" : std::string("copies ")) +
           std::to_string(a.degree);
  if (r.empty()) r = "one device";
  r += " from device " + std::to_string(n.sharding.start);
  for (std::string const& w : report::choice_words({n.zero, n.recompute, false})) r += ", " + w;
  return r;
}
inline std::string operator_kind(std::optional<computation_graph> const& g, int v) {
  if (!g) return "operators";
  graph_node const& n = g->node(v);
  if (n.block < 0 && !n.name.empty()) return n.name;
  return n.op.op ? std::string(n.op.op->name) : "operators";
}
inline std::string pipeline_differs(pipeline const& a, pipeline const& b) {
  if (a.stages.size() != b.stages.size() || a.groups.size() != b.groups.size()) return "";
  return a == b ? "" : "stages, sizes or order";
}

}  // namespace detail

/// Settings, cluster, degrees, operators (alike ones together), steps and memory in which two plans differ;
/// none for equal plans. Operators are compared by number, where both plans have as many. O(operators log).
inline std::vector<plan_difference> differences(stored_plan const& a, stored_plan const& b) {
  std::vector<plan_difference> r;
  auto const first = detail::plan_facts(a.plan), second = detail::plan_facts(b.plan);
  std::map<std::string, std::string> const others(second.begin(), second.end());
  for (auto const& [name, value] : first)
    if (auto const at = others.find(name); at == others.end() || at->second != value)
      r.push_back({name, value, at == others.end() ? "none" : at->second, 0});
  if (a.plan.cluster.name == b.plan.cluster.name && !(a.plan.cluster == b.plan.cluster))
    r.push_back({"cluster", "kinds, links or rates of its own", "others", 0});
  if (!(a.plan.optimizer == b.plan.optimizer) && a.plan.optimizer.kind == b.plan.optimizer.kind)
    r.push_back({"optimizer's numbers", "its own", "others", 0});
  if (std::string const p = detail::pipeline_differs(a.plan.pipeline, b.plan.pipeline); !p.empty())
    r.push_back({"pipeline's " + p, "its own", "others", 0});
  if (a.forward && b.forward) {
    std::string const x = report::strategy_text(*a.forward, a.plan),
                      y = report::strategy_text(*b.forward, b.plan);
    if (x != y) r.push_back({"strategy", x, y, 0});
  }
  if (a.plan.nodes.size() != b.plan.nodes.size()) {
    r.push_back({"operators", std::to_string(a.plan.nodes.size()), std::to_string(b.plan.nodes.size()), 0});
    return r;
  }
  std::vector<plan_difference> alike;  // in order of their first operators
  for (std::size_t v = 0; v < a.plan.nodes.size(); ++v) {
    if (a.plan.nodes[v] == b.plan.nodes[v]) continue;
    int const node = static_cast<int>(v);
    plan_difference d{detail::operator_kind(a.forward, node),
                      detail::choice_text(a.forward, node, a.plan.nodes[v]),
                      detail::choice_text(b.forward, node, b.plan.nodes[v]), 1};
    bool found = false;
    for (plan_difference& k : alike)
      if (k.what == d.what && k.first == d.first && k.second == d.second) found = ++k.operators > 0;
    if (!found) alike.push_back(std::move(d));
  }
  r.insert(r.end(), alike.begin(), alike.end());
  if (a.plan.node_order != b.plan.node_order) r.push_back({"order of operators", "its own", "another", 0});
  if (r.empty() && !(a.plan == b.plan)) r.push_back({"predictions or evidence", "its own", "others", 0});
  return r;
}

/// Tells the differences of two plan files, one per line. Throws `error` for files that cannot be read.
inline exit_code diff_command(settings const& s, console const& io, std::optional<own_model> const& own) {
  stored_plan const a = read_stored(s.files[0], s, own), b = read_stored(s.files[1], s, own);
  std::vector<plan_difference> const all = differences(a, b);
  if (s.json) {
    for (plan_difference const& d : all)
      io.out << report::event_line(
          "difference",
          {{"what", d.what}, {"first", d.first}, {"second", d.second}, {"operators", d.operators}});
    io.out << report::event_line("diff", {{"first", a.file},
                                          {"second", b.file},
                                          {"differences", all.size()},
                                          {"first_step_s", a.plan.step_seconds},
                                          {"second_step_s", b.plan.step_seconds}});
    return exit_code::fine;
  }
  if (all.empty()) {
    io.out << "no differences\n";
    return exit_code::fine;
  }
  std::vector<std::vector<std::string>> rows{{"", a.file, b.file}};
  std::string apart;  // what is too long for columns
  for (plan_difference const& d : all) {
    std::string const what = (d.operators > 1 ? std::to_string(d.operators) + " x " : "") + d.what;
    constexpr std::size_t wide = 60;
    if (d.first.size() <= wide)
      rows.push_back({what, d.first, d.second});
    else
      apart += "  " + what + "\n  - " + d.first + "\n  + " + d.second + "\n";
  }
  io.out << report::columns(rows, {true, true, true}, "  ") << apart;
  double const x = a.plan.step_seconds, y = b.plan.step_seconds;
  if (x > 0 && y > 0) io.out << "the second takes " << detail::change_text(y, x) << "\n";
  return exit_code::fine;
}

}  // namespace tensorpar::tools
