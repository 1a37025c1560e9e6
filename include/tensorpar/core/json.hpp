// tensorpar/core/json.hpp - the only door to nlohmann json: ordered values, and errors that say line and column
#pragma once
#include <cstddef>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <tensorpar/core/error.hpp>
#include <vector>

namespace tensorpar {

/// A JSON value whose objects keep the order in which keys were written: what is written twice is the same text twice.
using json = nlohmann::ordered_json;

/// Values nested deeper than this are refused: writing and comparing recurse, and no file of ours comes near.
inline constexpr int json_max_depth = 256;

namespace detail {

/// "name:line:column" of the character with this 0-based index. Columns count bytes from 1.
inline std::string json_position(std::string_view text, std::size_t at, std::string const& where) {
  std::size_t line = 1, start = 0;
  for (std::size_t i = 0; i < at && i < text.size(); ++i)
    if (text[i] == '\n') {
      ++line;
      start = i + 1;
    }
  return where + ":" + std::to_string(line) + ":" + std::to_string(at - start + 1);
}

/// nlohmann's sentence without its own prefix and position: "[json.exception.parse_error.101] parse error at line 1, column 2: ...".
inline std::string json_reason(std::string_view what) {
  if (auto const p = what.find("] "); what.starts_with('[') && p != what.npos) what.remove_prefix(p + 2);
  if (auto const p = what.find(": "); what.starts_with("parse error") && p != what.npos) what.remove_prefix(p + 2);
  return std::string(what);
}

/// Position of the first bracket that nests deeper than allowed, or npos. A plain scan, before any recursive code sees the text.
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

}  // namespace detail

/// The value written in `text`. `where` is the name that errors show, usually the file's.
/// Refused: anything that is not JSON (comments and trailing text included), nesting deeper than `json_max_depth`, a key that stands twice
/// in one object, a number beyond double.
/// Throws `error` with where() == "name:line:column"; for a doubled key, "name". Complexity: O(n log k), k the keys of the largest object,
/// plus the ordered object's own linear look-up per key.
inline json parse_json(std::string_view text, std::string const& where) {
  if (std::size_t const at = detail::json_too_deep(text); at != text.npos)
    throw error("JSON is nested too deeply", detail::json_position(text, at, where), std::to_string(json_max_depth) + " levels");
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  auto const watch = [&](int, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second)
      throw error("JSON key \"" + value.get<std::string>() + "\" stands twice in one object", where, "each key once");
    return true;
  };
  try {
    return json::parse(text.begin(), text.end(), watch);
  } catch (json::parse_error const& e) {
    std::size_t const at = e.byte == 0 ? 0 : e.byte - 1;
    throw error("malformed JSON: " + detail::json_reason(e.what()), detail::json_position(text, at, where), "");
  } catch (json::exception const& e) {
    throw error("malformed JSON: " + detail::json_reason(e.what()), where, "numbers that a double can hold");
  }
}

/// The value in the file. Throws `error` if it cannot be read, and as `parse_json` does, with the path as the name.
inline json read_json(std::string const& path) {
  std::ifstream file(path, std::ios::binary);
  file.peek();  // a folder opens, but does not read
  std::ostringstream text;
  if (file.good()) text << file.rdbuf();
  if (!file.is_open() || file.bad() || text.bad()) throw error("cannot read the file", path, "a readable JSON file");
  return parse_json(text.str(), path);
}

}  // namespace tensorpar
