// tensorpar/peers/profiles/pipedream.hpp - profiles in the format of PipeDream (text): one line per layer,
// one per edge
#pragma once
#include <algorithm>
#include <string>
#include <string_view>
#include <tensorpar/core/index.hpp>
#include <tensorpar/peers/profiles/source.hpp>
#include <tensorpar/peers/profiles/text.hpp>
#include <utility>
#include <vector>

namespace tensorpar::peers {

/// A graph of layers measured one after another (Narayanan et al. 2019, "PipeDream: generalized pipeline
/// parallelism for DNN training"). Models `topology`. Times are in milliseconds in the file and in seconds
/// here: the format knows no other unit.
struct pipedream_profile : profile_graph {
  std::vector<std::string> id, description;
  std::vector<double> forward, backward;      ///< seconds of one profiled mini-batch
  std::vector<double> activation, parameter;  ///< bytes; a list of activations is summed
  std::vector<int> stage;                     ///< -1 where the file has none
  friend bool operator==(pipedream_profile const&, pipedream_profile const&) = default;

  /// By node, its successors, ascending. O(V + E).
  std::vector<std::vector<int>> successors_of_all() const {
    std::vector<std::vector<int>> r(inputs.size());
    for (int v = 0; v < node_count(); ++v)
      for (int u : inputs[idx(v)]) r[idx(u)].push_back(v);
    return r;
  }
};

namespace detail {

/// What follows the description: "forward_compute_time=..., backward_compute_time=..., activation_size=...,
/// parameter_size=...".
inline void pipedream_numbers(profile_line& x, pipedream_profile& g) {
  x.expect("forward_compute_time=");
  g.forward.push_back(x.number() / 1000);
  x.expect(", backward_compute_time=");
  g.backward.push_back(x.number() / 1000);
  x.expect(", activation_size=");
  double bytes = 0;
  if (x.take("[")) {
    for (bool more = true; more; more = x.take("; ")) bytes += x.number();
    x.expect("]");
  } else {
    bytes = x.number();
  }
  g.activation.push_back(bytes);
  x.expect(", parameter_size=");
  g.parameter.push_back(x.number());
  g.stage.push_back(x.take(" -- stage_id=") ? static_cast<int>(x.integer(0, core::profile_max_nodes)) : -1);
  x.end();
}

/// Node and position of each id, to find doubled and unknown ones.
inline int pipedream_find(std::vector<std::pair<std::string_view, int>> const& ids, std::string_view id) {
  auto const it = std::lower_bound(ids.begin(), ids.end(), std::pair<std::string_view, int>{id, -1});
  return it != ids.end() && it->first == id ? it->second : -1;
}

}  // namespace detail

/// Reads lines "id -- description -- forward_compute_time=ms, backward_compute_time=ms, activation_size=bytes
/// or [a; b], parameter_size=bytes[ -- stage_id=n]" for nodes and "<tab>id -- id" for edges; empty lines are
/// passed over, a repeated edge counts once. Throws `error` with file, line and column for anything else, for
/// numbers that are negative, infinite or none, for ids that stand twice or name no node, and for cycles. O(n
/// log n + file).
inline pipedream_profile parse_pipedream(std::string_view text, std::string const& where) {
  pipedream_profile g;
  std::vector<detail::profile_line> edges;
  std::vector<std::pair<std::string_view, int>> ids;
  std::vector<int> line_of;
  for (detail::profile_line x : detail::profile_lines(text, where)) {
    if (x.text.find_first_not_of(" \t") == std::string_view::npos) continue;
    if (x.text[0] == '\t') {
      edges.push_back(x);
      continue;
    }
    std::size_t const first = x.text.find(" -- ");
    if (first == std::string_view::npos || first == 0)
      x.fail("no node: " + x.shown(), "id -- description -- numbers");
    std::size_t const numbers = x.text.rfind(" -- forward_compute_time=");
    x.at = first + 4;
    if (numbers == std::string_view::npos || (numbers != first && numbers < first + 4))
      x.fail("the node has no times", "... -- forward_compute_time=...");
    ids.push_back({x.text.substr(0, first), g.node_count()});
    line_of.push_back(x.line);
    g.inputs.emplace_back();
    g.id.emplace_back(x.text.substr(0, first));
    g.description.emplace_back(numbers == first ? std::string_view()
                                                : x.text.substr(first + 4, numbers - first - 4));
    x.at = numbers + 4;
    detail::pipedream_numbers(x, g);
    if (g.node_count() > core::profile_max_nodes)
      x.fail("too many nodes", "at most " + std::to_string(core::profile_max_nodes));
  }
  if (g.inputs.empty()) throw error("the profile has no node", where, "at least one node");
  std::sort(ids.begin(), ids.end());
  using numbered_id = decltype(ids)::value_type;
  if (auto const twice = std::ranges::adjacent_find(ids, {}, &numbered_id::first); twice != ids.end())
    throw error("the id \"" + std::string(twice->first) + "\" stands twice",
                where + ":" + std::to_string(line_of[idx(std::next(twice)->second)]) + ":1",
                "one line per node");
  for (detail::profile_line x : edges) {
    x.at = 1;
    std::size_t const middle = x.text.find(" -- ");
    if (middle == std::string_view::npos) x.fail("no edge: " + x.shown(), "<tab>id -- id");
    std::string_view to = x.text.substr(middle + 4);
    while (to.ends_with(' ') || to.ends_with('\t')) to.remove_suffix(1);
    int const u = detail::pipedream_find(ids, x.text.substr(1, middle - 1)),
              v = detail::pipedream_find(ids, to);
    if (u >= 0) x.at = middle + 4;
    if (u < 0 || v < 0) x.fail("no node has the id " + x.shown(), "the id of a node");
    g.inputs[idx(v)].push_back(u);
  }
  for (auto& list : g.inputs) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  detail::finish_profile_graph(g, where, [&](int v) { return g.id[idx(v)]; });
  return g;
}
inline pipedream_profile read_pipedream(std::string const& path) {
  return parse_pipedream(detail::profile_file(path), path);
}

}  // namespace tensorpar::peers
