// tensorpar/cost/profiled.hpp - operators priced by what was measured: a table of medians, its file, and the
// model that reads it
#pragma once
#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>
#include <tensorpar/core/read_file.hpp>
#include <tensorpar/core/whole_file.hpp>
#include <tensorpar/cost/concepts.hpp>
#include <tensorpar/op/core/spelling.hpp>
#include <tuple>

namespace tensorpar::cost {

/// What a measurement is of: operator and attributes (by stable hash), the extents of the parts, the scalar's
/// size, the kind of device.
struct profile_key {
  std::string op;                       // its name, for people
  u64 op_hash = 0;
  i64 scalar_bytes = 4;
  std::string shapes;                   // "f32[32,64] f32[10,64] -> f32[32,10]"
  std::string device;
  friend bool operator==(profile_key const&, profile_key const&) = default;
  friend bool operator<(profile_key const& a, profile_key const& b) {
    return std::tie(a.op, a.op_hash, a.scalar_bytes, a.shapes, a.device) <
           std::tie(b.op, b.op_hash, b.scalar_bytes, b.shapes, b.device);
  }
};
/// One measured operator: the median of so many runs.
struct operator_profile {
  profile_key key;
  double seconds = 0;
  i64 samples = 0;
  friend bool operator==(operator_profile const&, operator_profile const&) = default;
};

/// The key of a query. O(operands).
inline profile_key profile_key_of(compute_query const& q) {
  profile_key k{std::string(q.op.op->name), q.op.hash(), q.scalar_bytes, {}, q.device.name};
  auto put = [&](shapes s) {
    for (shape const& x : s) {
      k.shapes += tensorpar::name_of(x.type);
      k.shapes += '[';
      for (int i = 0; i < x.rank; ++i) k.shapes.append(i ? "," : "").append(std::to_string(x.d[i].n));
      k.shapes += "] ";
    }
  };
  put(q.in);
  k.shapes += "->";
  for (shape const& x : q.out) { k.shapes += ' '; put({&x, 1}); k.shapes.pop_back(); }
  return k;
}

/// A set of measurements, at most one per key (the latest). A regular value.
class profile_table {
  std::map<profile_key, operator_profile> all_;

 public:
  static constexpr int version = 1;
  void add(operator_profile p) { profile_key k = p.key; all_.insert_or_assign(std::move(k), std::move(p)); }
  operator_profile const* find(profile_key const& k) const {
    auto const it = all_.find(k);
    return it == all_.end() ? nullptr : &it->second;
  }
  std::size_t size() const { return all_.size(); }
  std::map<profile_key, operator_profile> const& all() const { return all_; }
  friend bool operator==(profile_table const&, profile_table const&) = default;
};

namespace detail {
inline std::string profile_number(double x) {
  char b[32];
  return std::string(b, std::to_chars(b, b + sizeof b, x).ptr);
}
template <class T> bool read_number(std::string_view s, T& x, int base = 10) {
  std::from_chars_result r{};
  if constexpr (std::is_floating_point_v<T>) r = std::from_chars(s.data(), s.data() + s.size(), x);
  else r = std::from_chars(s.data(), s.data() + s.size(), x, base);
  return r.ec == std::errc() && r.ptr == s.data() + s.size() && !s.empty();
}
inline std::string profile_sum(std::string_view body, std::size_t entries) {
  u64 const h = core::hasher().add(body).add(entries).value();
  char b[24];
  return std::string(b, std::to_chars(b, b + sizeof b, h, 16).ptr);
}
}  // namespace detail

/// The table as text: a head line with the version, one line per measurement (fields separated by tabs,
/// ordered), a last line with the number of entries and a checksum of all before it. Throws `error` where a
/// name holds a tab or a line break. Law: parse(write(t)) == t.
inline std::string write_profiles(profile_table const& t) {
  std::string s = "tensorpar-profiles\t" + std::to_string(profile_table::version) + "\n";
  for (auto const& [k, p] : t.all()) {
    for (std::string const* name : {&k.op, &k.device, &k.shapes})
      if (name->find_first_of("\t\r\n") != std::string::npos)
        throw error("a name with a tab or a line break", "profile of " + k.op, "names on one line");
    s += k.op + "\t" + std::to_string(k.op_hash) + "\t" + std::to_string(k.scalar_bytes) + "\t" + k.shapes +
         "\t" + k.device + "\t" + detail::profile_number(p.seconds) + "\t" + std::to_string(p.samples) + "\n";
  }
  return s + "end\t" + std::to_string(t.size()) + "\t" + detail::profile_sum(s, t.size()) + "\n";
}

/// The table that a text holds. Throws `error` naming the file and line: another version, a cut or edited
/// file, a number out of range.
inline profile_table parse_profiles(std::string_view text, std::string const& where) {
  core::require_text(text, where);
  profile_table t;
  std::size_t at = 0, line = 0;
  auto fail = [&](std::string const& what, std::string const& valid) {
    throw error(what, where + ":" + std::to_string(line), valid);
  };
  auto fields = [&] {
    std::vector<std::string_view> r;
    ++line;
    std::size_t const end = text.find('\n', at);
    if (end == text.npos) fail("the file is cut short", "a file that ends with its checksum");
    std::string_view rest = text.substr(at, end - at);
    at = end + 1;
    for (;;) {
      std::size_t const tab = rest.find('\t');
      r.push_back(rest.substr(0, tab));
      if (tab == rest.npos) return r;
      rest.remove_prefix(tab + 1);
    }
  };
  auto const head = fields();
  int version = 0;
  if (head.size() != 2 || head[0] != "tensorpar-profiles" || !detail::read_number(head[1], version))
    fail("not a file of operator profiles", "\"tensorpar-profiles\" and a version");
  if (version != profile_table::version)
    fail("profiles of version " + std::to_string(version),
         "version " + std::to_string(profile_table::version) + "; measure again with this release");
  for (;;) {
    std::size_t const start = at;
    auto const f = fields();
    if (f[0] == "end" && f.size() == 3) {
      std::size_t n = 0;
      if (!detail::read_number(f[1], n) || n != t.size() ||
          f[2] != detail::profile_sum(text.substr(0, start), n))
        fail("the profiles were edited or damaged: their content is not what the checksum says",
             "a file as it was written");
      if (at != text.size()) fail("text after the checksum", "nothing");
      return t;
    }
    operator_profile p;
    bool const good = f.size() == 7 && detail::read_number(f[1], p.key.op_hash) &&
                      detail::read_number(f[2], p.key.scalar_bytes) && detail::read_number(f[5], p.seconds) &&
                      detail::read_number(f[6], p.samples);
    if (!good || !std::isfinite(p.seconds) || p.seconds < 0 || p.samples < 1 || p.key.scalar_bytes < 1)
      fail("not a measurement", "operator, hash, scalar bytes, shapes, device, seconds, samples");
    p.key.op = f[0];
    p.key.shapes = f[3];
    p.key.device = f[4];
    t.add(std::move(p));
  }
}

/// The table in a file. Throws `error` as parse_profiles does, and where the file cannot be read.
inline profile_table read_profiles(std::string const& path) {
  return parse_profiles(core::read_file(path, "a file written by save_profiles"), path);
}
/// Replaces the file as write_whole_file does (core/whole_file.hpp). Throws `error` if the system refuses.
inline void save_profiles(profile_table const& t, std::string const& path) {
  core::write_whole_file(path, write_profiles(t));
}

enum class when_missing : int { ask_fallback, refuse };

/// Operators by their measured median; what was not measured is asked of `Fallback` and noted, or refused
/// with an `error`. Reshards are always the fallback's. May break monotonicity by the noise of its
/// measurements, and "keep costs at most a copy" where the fallback is slower than what was measured; both
/// are the caller's to calibrate.
/// The notes make it unfit for several threads at once: give each a copy. O(log entries + operands).
template <class Fallback> class profiled {
  static_assert(cost_model_lack<Fallback>::value);

 public:
  profiled() = default;
  explicit profiled(profile_table t, Fallback f = {}, when_missing w = when_missing::ask_fallback)
      : table_(std::move(t)), fallback_(std::move(f)), missing_(w) {}

  double seconds(compute_query const& q) const {
    profile_key const k = profile_key_of(q);
    if (operator_profile const* p = table_.find(k)) return p->seconds;
    if (missing_ == when_missing::refuse)
      throw error("no measurement of " + op::spell(q.op) + " on " + k.shapes,
                  "profiles of device \"" + k.device + "\"",
                  std::to_string(table_.size()) + " measured entries; measure this one too");
    notes_.insert(k);
    return fallback_.seconds(q);
  }
  double seconds(reshard_query const& q) const { return fallback_.seconds(q); }

  profile_table const& table() const { return table_; }
  /// What was asked but not measured, in order; the list of what to measure next.
  std::set<profile_key> const& misses() const { return notes_; }

 private:
  profile_table table_;
  Fallback fallback_{};
  when_missing missing_ = when_missing::ask_fallback;
  mutable std::set<profile_key> notes_;
};

}  // namespace tensorpar::cost
