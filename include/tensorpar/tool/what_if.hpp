// tensorpar/tool/what_if.hpp - "what if": changes of the machine and of the problem, read from text
#pragma once
#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/machine/machine_check.hpp>
#include <tensorpar/plan/step_fit.hpp>
#include <tensorpar/search/intra/machine_parts.hpp>
#include <tensorpar/tool/subject.hpp>
#include <vector>

namespace tensorpar::tools {

/// One change: "link:NDR*2", "memory=40GiB", "batch=512".
struct one_change {
  std::string key, name;  // "link", "NDR"; "batch", ""
  char how = '=';         // '=', '*' or '/'
  std::string word;       // behind it
  double value = 0;       // of a number, its unit counted; of a word 0
  /// Does the plan have to be searched for anew? Else its tasks stay the same, and only take longer or
  /// shorter.
  bool needs_search() const {
    for (char const* k : {"gpus", "batch", "micro-batches", "precision", "optimizer"})
      if (key == k) return true;
    return false;
  }
};
/// Changes that hold together.
struct what_if {
  std::string text;
  std::vector<one_change> changes;
  bool needs_search() const {
    for (one_change const& c : changes)
      if (c.needs_search()) return true;
    return false;
  }
};

/// What may be changed. Links and latencies are those of levels by the beginning of their names, without one
/// of all levels. Memory, FLOP/s and memory bandwidth are those of every kind of device.
inline std::vector<std::string> what_if_keys() {
  return {"gpus",   "batch", "micro-batches",    "precision", "optimizer",
          "memory", "flops", "memory-bandwidth", "link",      "latency"};
}

namespace detail {

struct unit {
  char const* name;
  double value;
};
inline constexpr unit byte_units[] = {
    {"GiB", 1073741824.0}, {"GB", 1e9}, {"MiB", 1048576.0}, {"MB", 1e6}, {"", 1}};
inline constexpr unit rate_units[] = {
    {"GB/s", 1e9}, {"Gbit/s", 1.25e8}, {"TB/s", 1e12}, {"MB/s", 1e6}, {"", 1}};
inline constexpr unit flop_units[] = {{"TFLOP/s", 1e12}, {"GFLOP/s", 1e9}, {"", 1}};
inline constexpr unit time_units[] = {{"us", 1e-6}, {"ms", 1e-3}, {"ns", 1e-9}, {"s", 1}, {"", 1}};
inline constexpr unit no_units[] = {{"", 1}};

/// A number from above 0 with its unit. Throws `usage_error`.
template <std::size_t N>
double number_in(std::string const& word, unit const (&units)[N], std::string const& where) {
  double x = 0;
  auto const [end, why] = std::from_chars(word.data(), word.data() + word.size(), x);
  std::string const rest(end, word.data() + word.size());
  std::string valid = "a number above 0";
  for (unit const& u : units) {
    if (why == std::errc{} && x > 0 && std::isfinite(x) && lower_case(rest) == lower_case(u.name))
      return x * u.value;
    if (*u.name) valid += std::string(valid.find(':') == valid.npos ? "; units: " : ", ") + u.name;
  }
  throw usage_error("\"" + word + "\" is no such number", where, valid);
}
inline i64 whole_number(std::string const& word, std::string const& where) {
  double const x = number_in(word, no_units, where);
  if (x != std::floor(x) || x > 1e12) throw usage_error("\"" + word + "\"", where, "a whole number from 1");
  return static_cast<i64>(x);
}
/// The key, a link's name behind a colon, how it changes and by what.
inline one_change change_of(std::string const& item, std::string const& where) {
  std::size_t const at = item.find_first_of("=*/");
  if (at == item.npos || at == 0 || at + 1 == item.size())
    throw usage_error("\"" + item + "\" changes nothing", where, "KEY=VALUE, KEY*FACTOR or KEY/FACTOR");
  one_change c;
  std::string const left = item.substr(0, at);
  c.key = lower_case(left.substr(0, left.find(':')));
  if (left.find(':') != left.npos) c.name = left.substr(left.find(':') + 1);
  c.how = item[at];
  c.word = item.substr(at + 1);
  std::vector<std::string> const keys = what_if_keys();
  if (std::find(keys.begin(), keys.end(), c.key) == keys.end())
    throw usage_error("no key \"" + c.key + "\"" + did_you_mean(c.key, keys), where, listed(keys));
  bool const levels = c.key == "link" || c.key == "latency";
  if (!levels && left.find(':') != left.npos)
    throw usage_error("\"" + c.key + "\" takes no name", where, c.key + "=...");
  if (c.needs_search() && c.how != '=') throw usage_error("\"" + item + "\"", where, c.key + "=VALUE");
  if (c.key == "precision")
    one_of(where, c.word, format_names());
  else if (c.key == "optimizer")
    optimizer_named(c.word, where);
  else if (c.needs_search())
    c.value = static_cast<double>(whole_number(c.word, where));
  else if (c.how != '=')
    c.value = number_in(c.word, no_units, where);
  else if (c.key == "memory")
    c.value = number_in(c.word, byte_units, where);
  else if (c.key == "flops")
    c.value = number_in(c.word, flop_units, where);
  else if (c.key == "latency")
    c.value = number_in(c.word, time_units, where);
  else
    c.value = number_in(c.word, rate_units, where);
  return c;
}
inline double changed(double x, one_change const& c) {
  return c.how == '=' ? c.value : c.how == '*' ? x * c.value : x / c.value;
}

}  // namespace detail

/// Reads "gpus=128,link:NDR*2". Throws `usage_error`.
inline what_if parse_what_if(std::string const& text) {
  what_if r{text, {}};
  std::string const where = "--what-if " + text;
  for (std::size_t at = 0; at <= text.size();) {
    std::size_t const end = std::min(text.find(',', at), text.size());
    r.changes.push_back(detail::change_of(text.substr(at, end - at), where));
    at = end + 1;
  }
  return r;
}

/// The cluster with so many devices: its first ones, or more nodes like those that it has. Throws
/// `usage_error` where it cannot be told what more devices would be. O(devices).
inline machine with_devices(machine const& on, i64 n) {
  std::string const where = "gpus=" + std::to_string(n);
  if (n <= on.size()) return n == on.size() ? on : search::detail::part_of(on, {0, static_cast<int>(n)});
  std::string const base = detail::base_of(on.name);
  std::vector<std::string> const known = preset_names();
  auto const like = [&](std::string const& name) {
    machine m = preset(name);
    m.lane_per_link = on.lane_per_link;
    return m;
  };
  if (std::find(known.begin(), known.end(), detail::lower_case(base)) != known.end() &&
      on.name.find(':') != on.name.npos && like(on.name) == on) {
    i64 const each = preset(base + ":1").size();
    if (n % each) throw usage_error(where, on.name, "a multiple of " + std::to_string(each));
    return like(base + ":" + std::to_string(n / each));
  }
  if (!on.uniform() || on.links.size() < 2)
    throw usage_error(where + " for a cluster of " + std::to_string(on.size()), on.name,
                      "at most as many; or a cluster of several equal nodes, or NAME:COUNT");
  machine r = on;
  i64 const node = on.links[on.links.size() - 2].group;
  if (n % node) throw usage_error(where, on.name, "a multiple of " + std::to_string(node));
  r.device.resize(idx(n), on.device.front());
  r.links.back().group = n;
  return r;
}

/// What the changes make of a machine, gpus first. Rates change in every format of numbers alike. Throws
/// `usage_error` for a link that no level is called, and `error` for what is no machine. O(devices).
inline machine changed_machine(what_if const& w, machine on) {
  std::string const where = "--what-if " + w.text;
  for (one_change const& c : w.changes)
    if (c.key == "gpus") on = with_devices(on, static_cast<i64>(c.value));
  for (one_change const& c : w.changes) {
    if (c.key == "link" || c.key == "latency") {
      bool found = false;
      std::vector<std::string> names;
      for (link_level& l : on.links) {
        names.push_back(l.name);
        if (!detail::lower_case(l.name).starts_with(detail::lower_case(c.name))) continue;
        found = true;
        double& x = c.key == "link" ? l.bandwidth : l.latency;
        x = detail::changed(x, c);
      }
      if (!found)
        throw usage_error("no link \"" + c.name + "\"" + did_you_mean(c.name, names), where, listed(names));
    }
    for (device_kind& k : on.kinds) {
      if (c.key == "memory")
        k.memory = static_cast<i64>(std::clamp(detail::changed(static_cast<double>(k.memory), c), 1.0, 9e18));
      if (c.key == "memory-bandwidth") k.memory_bandwidth = detail::changed(k.memory_bandwidth, c);
      if (c.key == "flops") {
        double const before = k.flops;
        k.flops = detail::changed(k.flops, c);
        for (double* r : {&k.rates.f32, &k.rates.tf32, &k.rates.bf16, &k.rates.fp8}) *r *= k.flops / before;
        for (double* r : {&k.rates.f32, &k.rates.tf32, &k.rates.bf16, &k.rates.fp8})
          if (std::abs(*r - k.flops) <= 1e-9 * k.flops) *r = k.flops;  // it stays the same format
      }
    }
  }
  require_machine(on);
  return on;
}

/// The same for all that is planned. `before`: as the command line has it. Throws as `changed_machine`, and
/// `usage_error` for a batch or micro-batches that do not divide.
inline subject changed_subject(what_if const& w, subject before) {
  subject r = std::move(before);
  r.on = changed_machine(w, r.on);
  i64 const few = samples_of(r.asked.graph);
  for (one_change const& c : w.changes) {
    if (c.key == "batch") r.asked.samples = static_cast<i64>(c.value);
    if (c.key == "micro-batches") r.options.micro_batches = {static_cast<int>(c.value)};
    if (c.key == "precision") r.asked.precision = precision_of(c.word);
    if (c.key == "optimizer") r.asked.optimizer.kind = optimizer_named(c.word);
  }
  bool divides = r.asked.samples % few == 0;
  for (int k : r.options.micro_batches) divides = divides && (r.asked.samples / few) % k == 0;
  if (!divides)
    throw usage_error("a batch of " + std::to_string(r.asked.samples) + " samples", "--what-if " + w.text,
                      "a multiple of the graph's " + std::to_string(few) + " times the micro-batches");
  return r;
}

}  // namespace tensorpar::tools
