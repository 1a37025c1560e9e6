// tensorpar/core/json.hpp - the only door to nlohmann json: ordered values, and errors that say line and
// column
#pragma once
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <tensorpar/core/error.hpp>
#include <tensorpar/core/read_file.hpp>
#include <vector>

namespace tensorpar::core {

/// A JSON value whose objects keep the order in which keys were written: what is written twice is the same
/// text twice.
using json = nlohmann::ordered_json;

/// Values nested deeper than this are refused: writing and comparing recurse, and no file of ours comes near.
inline constexpr int json_max_depth = 256;

namespace detail {

/// nlohmann's sentence without its own prefix and position: "[json.exception.parse_error.101] parse error at
/// line 1, column 2: ...".
inline std::string json_reason(std::string_view what) {
  if (auto const p = what.find("] "); what.starts_with('[') && p != what.npos) what.remove_prefix(p + 2);
  if (auto const p = what.find(": "); what.starts_with("parse error") && p != what.npos)
    what.remove_prefix(p + 2);
  return printable(what, 400);
}

/// Position of the first bracket that nests deeper than allowed, or npos. A plain scan, before any recursive
/// code sees the text.
inline std::size_t json_too_deep(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char const c = text[i];
    if (quoted) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        quoted = false;
      }
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      if (++depth > json_max_depth) return i;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return text.npos;
}

/// An empty object with room for so many members.
inline json json_object(std::size_t members) {
  json r = json::object();
  r.get_ref<json::object_t&>().reserve(members);
  return r;
}
/// Puts a member at the end of an object that has none of this key; operator[] would look through all that
/// are there.
inline void json_append(json& object, std::string key, json value) {
  static_cast<json::object_t::Container&>(object.get_ref<json::object_t&>())
      .emplace_back(std::move(key), std::move(value));
}

/// Makes the value of what nlohmann's parser reads. Values wait in one stack until what holds them ends, so
/// all takes linear time but the search for keys that stand twice.
class json_builder {
  struct open { std::size_t first, keys; bool object; };
  std::string_view text_;
  std::string const& where_;
  std::vector<json> values_;
  std::vector<std::string> keys_;
  std::vector<open> open_;

  bool value(json v) {
    values_.push_back(std::move(v));
    return true;
  }
  bool begin(bool object) {
    open_.push_back({values_.size(), keys_.size(), object});
    return true;
  }
  /// The way to the value that is being read: "links[0].bandwidth".
  std::string path() const {
    std::string r;
    for (std::size_t i = 0; i < open_.size(); ++i) {
      open const& o = open_[i];
      std::size_t const end = i + 1 < open_.size() ? open_[i + 1].first : values_.size(),
                        last = i + 1 < open_.size() ? open_[i + 1].keys : keys_.size();
      if (!o.object) r += "[" + std::to_string(end - o.first) + "]";
      else if (last > o.keys) r += (r.empty() ? "" : ".") + printable(keys_[last - 1], 80);
    }
    return r;
  }
  void require_each_once(std::size_t from) const {
    auto const twice = [&](std::string_view key) {
      throw error("JSON key " + json(printable(key, 200)).dump() + " stands twice in one object", where_,
                  "each key once");
    };
    if (keys_.size() - from <= 8) {
      for (std::size_t i = from; i < keys_.size(); ++i)
        for (std::size_t j = from; j < i; ++j)
          if (keys_[i] == keys_[j]) twice(keys_[i]);
      return;
    }
    std::vector<std::string_view> sorted(keys_.begin() + static_cast<std::ptrdiff_t>(from), keys_.end());
    std::sort(sorted.begin(), sorted.end());
    if (auto const x = std::adjacent_find(sorted.begin(), sorted.end()); x != sorted.end()) twice(*x);
  }

 public:
  json_builder(std::string_view text, std::string const& where) : text_(text), where_(where) {}
  json result() { return std::move(values_.at(0)); }

  bool null() { return value(nullptr); }
  bool boolean(bool x) { return value(x); }
  bool number_integer(json::number_integer_t x) { return value(x); }
  bool number_unsigned(json::number_unsigned_t x) { return value(x); }
  bool number_float(json::number_float_t x, std::string const&) { return value(x); }
  bool string(std::string& x) { return value(std::move(x)); }
  bool binary(json::binary_t&) { return false; }                           // no text holds any
  bool key(std::string& x) {
    keys_.push_back(std::move(x));
    return true;
  }
  bool start_object(std::size_t) { return begin(true); }
  bool start_array(std::size_t) { return begin(false); }
  bool end_object() {
    open const o = open_.back();
    require_each_once(o.keys);
    json r = json::object();
    auto& members = static_cast<json::object_t::Container&>(r.get_ref<json::object_t&>());
    members.reserve(keys_.size() - o.keys);
    for (std::size_t i = 0; o.keys + i < keys_.size(); ++i)
      members.emplace_back(std::move(keys_[o.keys + i]), std::move(values_[o.first + i]));
    keys_.resize(o.keys);
    return end(std::move(r));
  }
  bool end_array() {
    auto const first = values_.begin() + static_cast<std::ptrdiff_t>(open_.back().first);
    return end(json::array_t(std::make_move_iterator(first), std::make_move_iterator(values_.end())));
  }
  bool end(json r) {
    values_.resize(open_.back().first);
    open_.pop_back();
    return value(std::move(r));
  }
  /// Throws `error`.
  bool parse_error(std::size_t byte, std::string const&, nlohmann::detail::exception const& e) {
    std::string place = place_in_text(text_, byte == 0 ? 0 : byte - 1, where_);
    if (e.id != 406) throw error("malformed JSON: " + json_reason(e.what()), place, "");
    std::string const at = path();
    throw error("malformed JSON: " + json_reason(e.what()), place + (at.empty() ? "" : ": " + at),
                "numbers that a double can hold");
  }
};

}  // namespace detail

/// The value written in `text`. `where` is the name that errors show, usually the file's.
/// Refused: anything that is not JSON (comments, zero bytes and trailing text included), nesting deeper than
/// `json_max_depth`, a key that stands twice in one object, a number beyond double.
/// Throws `error` with where() == "name:line:column"; for a number beyond double "name:line:column: key", for
/// a doubled key "name". Complexity: O(n log k), k the keys of the largest object.
inline json parse_json(std::string_view text, std::string const& where) {
  require_text(text, where);
  if (std::size_t const at = detail::json_too_deep(text); at != text.npos)
    throw error("JSON is nested too deeply", place_in_text(text, at, where),
                std::to_string(json_max_depth) + " levels");
  detail::json_builder builder(text, where);
  json::sax_parse(text.begin(), text.end(), &builder);
  return builder.result();
}

/// The value in the file. Throws `error` if it is no regular file or cannot be read, and as `parse_json`
/// does, with the path as the name.
inline json read_json(std::string const& path) {
  return parse_json(read_file(path, "a readable JSON file"), path);
}

}  // namespace tensorpar::core
