// tensorpar/exec/files/safetensors.hpp - named tensors as a safetensors payload: header and data, in memory
#pragma once
#include <algorithm>
#include <bit>
#include <concepts>
#include <cstring>
#include <map>
#include <set>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/json.hpp>
#include <tensorpar/exec/device/stored_type.hpp>
#include <vector>

namespace tensorpar::exec {

/// The format (huggingface.co/docs/safetensors): 8 bytes with the header's length, little-endian; the header,
/// a JSON object from names to {"dtype", "shape", "data_offsets"}, maybe with texts under "__metadata__",
/// filled with spaces; then the tensors' elements, little-endian and row-major, without gaps. A header has at
/// most this many bytes.
inline constexpr u64 safetensors_max_header = 100'000'000;

struct stored_tensor {
  std::string name;
  stored_type type = stored_type::f32;
  std::vector<i64> extents;
  u64 begin = 0, end = 0;  // bytes within the data; filled by the writers and by the readers
  // a type that is none of `stored_type`: it stands in the file, and can be neither read nor written
  std::string other_type = {};
  i64 elements() const {
    i64 n = 1;
    for (i64 e : extents) n *= e;
    return n;
  }
  bool is(stored_type t) const { return other_type.empty() && type == t; }
  bool real() const { return other_type.empty() && is_real(type); }
  std::string type_name() const { return other_type.empty() ? name_of(type) : other_type; }
  friend bool operator==(stored_tensor const&, stored_tensor const&) = default;
};

/// What a header says. A regular value; `tensors` stand in the order of their data.
struct stored_tensors {
  std::vector<stored_tensor> tensors;
  std::map<std::string, std::string> notes;  // "__metadata__"
  u64 header_bytes = 8;                      // where the data start in the file
  u64 data_bytes = 0;
  std::vector<std::size_t> by_name;          // `tensors` by name, as `index` leaves it; the readers call that
  void index() {
    by_name.resize(tensors.size());
    for (std::size_t i = 0; i < by_name.size(); ++i) by_name[i] = i;
    std::stable_sort(by_name.begin(), by_name.end(),
                     [&](std::size_t a, std::size_t b) { return tensors[a].name < tensors[b].name; });
  }
  /// O(log tensors) once indexed; without, and for a name that no tensor has, O(tensors).
  stored_tensor const* find(std::string_view name) const {
    if (by_name.size() == tensors.size()) {
      auto const at =
          std::lower_bound(by_name.begin(), by_name.end(), name,
                           [&](std::size_t i, std::string_view x) { return tensors[i].name < x; });
      if (at != by_name.end() && tensors[*at].name == name) return &tensors[*at];
    }
    for (stored_tensor const& t : tensors)
      if (t.name == name) return &t;
    return nullptr;
  }
  friend bool operator==(stored_tensors const& a, stored_tensors const& b) {
    return a.tensors == b.tensors && a.notes == b.notes && a.header_bytes == b.header_bytes &&
           a.data_bytes == b.data_bytes;
  }
};

namespace detail {

/// Errors about one tensor of one file. Names come from outside, hence escaped.
inline std::string tensor_place(std::string const& where, std::string const& name,
                                char const* key = nullptr) {
  return where + ": tensor " + core::json(name).dump(-1, ' ', true, core::json::error_handler_t::replace) +
         (key ? ", " + std::string(key) : std::string());
}

template <class Place> u64 whole_number(core::json const& x, Place const& place) {
  bool const good = x.is_number_unsigned() && x.get<u64>() <= u64{INT64_MAX};
  if (!good)
    throw error("not a whole number", place(), "a whole number from 0 to " + std::to_string(INT64_MAX));
  return x.get<u64>();
}

inline stored_tensor tensor_entry(std::string const& name, core::json const& x, u64 data_bytes,
                                  std::string const& where) {
  stored_tensor t;
  t.name = name;
  if (!x.is_object())
    throw error("not a tensor's entry", tensor_place(where, name),
                "an object with dtype, shape and data_offsets");
  for (char const* key : {"dtype", "shape", "data_offsets"})
    if (!x.contains(key))
      throw error("a key is missing", tensor_place(where, name, key), "dtype, shape and data_offsets");
  if (x.size() != 3)
    throw error("unknown keys", tensor_place(where, name), "dtype, shape and data_offsets alone");
  core::json const &type = x["dtype"], &extents = x["shape"], &offsets = x["data_offsets"];
  int k = 0;
  while (k < stored_types && type != name_of(static_cast<stored_type>(k))) ++k;
  if (!type.is_string() || type.get_ref<std::string const&>().empty())
    throw error("unknown element type", tensor_place(where, name, "dtype"), "the name of a type, as \"F32\"");
  // matters to who asks for this tensor
  if (k == stored_types) t.other_type = type.get<std::string>();
  else t.type = static_cast<stored_type>(k);
  auto const shape_place = [&] { return tensor_place(where, name, "shape"); };
  auto const offsets_place = [&] { return tensor_place(where, name, "data_offsets"); };
  if (!extents.is_array()) throw error("not a list", tensor_place(where, name, "shape"), "a list of extents");
  u64 bytes = t.other_type.empty() ? static_cast<u64>(bytes_of(t.type)) : 1;
  for (core::json const& e : extents) {
    u64 const n = whole_number(e, shape_place);
    if (n && bytes > u64{INT64_MAX} / n)
      throw error("more elements than can be counted", tensor_place(where, name, "shape"),
                  "a tensor below 2^63 bytes");
    bytes *= n;
    t.extents.push_back(static_cast<i64>(n));
  }
  if (!offsets.is_array() || offsets.size() != 2)
    throw error("not a pair", tensor_place(where, name, "data_offsets"), "[begin, end]");
  t.begin = whole_number(offsets[0], offsets_place);
  t.end = whole_number(offsets[1], offsets_place);
  if (t.begin > t.end || t.end > data_bytes)
    throw error("bytes " + std::to_string(t.begin) + " to " + std::to_string(t.end) + " are not in the file",
                tensor_place(where, name, "data_offsets"),
                "0 <= begin <= end <= " + std::to_string(data_bytes));
  if (t.other_type.empty() && t.end - t.begin != bytes)
    throw error(
        std::to_string(t.end - t.begin) + " bytes for " + std::to_string(bytes) + " bytes of elements",
        tensor_place(where, name, "data_offsets"), "end - begin = product of shape * bytes of dtype");
  return t;
}

/// The header's length from the first 8 bytes, checked against the file's size before anything is read or
/// allocated.
inline u64 checked_header(unsigned char const* first, u64 available, u64 file_bytes,
                          std::string const& where) {
  if (available < 8)
    throw error("the file ends within the header's length", where,
                "a safetensors file, of at least 10 bytes");
  u64 n = 0;
  for (int i = 8; i-- > 0;) n = n << 8 | first[i];
  u64 const most = std::min(safetensors_max_header, file_bytes - 8);
  if (n < 2 || n > most)
    throw error("a header of " + std::to_string(n) + " bytes", where,
                most < 2 ? "a file of at least 10 bytes" : "from 2 to " + std::to_string(most) + " here");
  return n;
}

}  // namespace detail

/// The content of a header, with every claim checked: each tensor's bytes are those that its type and extents
/// need, lie within the data, overlap nobody's and leave no gap. Of a tensor whose type is unknown only the
/// bytes' place is. Throws `error` naming file, tensor and key. O(header * log).
inline stored_tensors parse_safetensors_header(std::string_view header, u64 data_bytes,
                                               std::string const& where) {
  if (header.empty() || header[0] != '{')
    throw error("the header is not a JSON object", where, "a safetensors file");
  core::json const all = core::parse_json(header, where);
  stored_tensors r;
  r.header_bytes = 8 + header.size();
  r.data_bytes = data_bytes;
  for (auto const& [name, x] : all.items()) {
    if (name != "__metadata__") {
      r.tensors.push_back(detail::tensor_entry(name, x, data_bytes, where));
      continue;
    }
    if (!x.is_object()) throw error("not an object", where + ": __metadata__", "an object of texts");
    for (auto const& [key, text] : x.items()) {
      if (!text.is_string())
        throw error("not a text", detail::tensor_place(where, name, "metadata"), "an object of texts");
      r.notes[key] = text.get<std::string>();
    }
  }
  std::stable_sort(r.tensors.begin(), r.tensors.end(), [](auto const& a, auto const& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  u64 at = 0;
  for (stored_tensor const& t : r.tensors) {
    if (t.begin != at)
      throw error(t.begin < at ? "the data of two tensors overlap" : "a gap in the data",
                  detail::tensor_place(where, t.name, "data_offsets"), "begin = " + std::to_string(at));
    at = t.end;
  }
  if (at != data_bytes)
    throw error("the data have " + std::to_string(data_bytes) + " bytes", where,
                std::to_string(at) + " bytes, those of all tensors");
  r.index();
  return r;
}

/// The header of a whole file in memory.
inline stored_tensors read_safetensors(std::string_view file, std::string const& where) {
  u64 const n = detail::checked_header(reinterpret_cast<unsigned char const*>(file.data()), file.size(),
                                       file.size(), where);
  return parse_safetensors_header(file.substr(8, idx(n)), file.size() - 8 - n, where);
}

/// Gives the tensors their places, one after another as they stand, and returns the bytes that come before
/// the data.
/// Throws `error` for a name that stands twice, is "__metadata__" or not UTF-8, and for a negative extent.
inline std::string safetensors_header(stored_tensors& t, std::string const& where) {
  core::json all = core::json::object();
  if (!t.notes.empty()) {
    core::json notes = core::json::object();
    for (auto const& [key, text] : t.notes) core::detail::json_append(notes, key, text);
    core::detail::json_append(all, "__metadata__", std::move(notes));
  }
  std::set<std::string_view> names{"__metadata__"};
  u64 at = 0;
  for (stored_tensor& x : t.tensors) {
    if (!names.insert(x.name).second)
      throw error("a name that stands twice", detail::tensor_place(where, x.name),
                  "each name once, and not __metadata__");
    if (!x.other_type.empty())
      throw error("elements of type " + x.other_type, detail::tensor_place(where, x.name, "dtype"),
                  "a type that can be written");
    u64 bytes = static_cast<u64>(bytes_of(x.type));
    for (i64 e : x.extents) {
      if (e < 0 || (e && bytes > u64{INT64_MAX} / static_cast<u64>(e)))
        throw error("no such size: " + std::to_string(e), detail::tensor_place(where, x.name),
                    "extents from 0, below 2^63 bytes");
      bytes *= static_cast<u64>(e);
    }
    x.begin = at;
    x.end = at += bytes;
    core::json entry = core::json::object();
    entry["dtype"] = name_of(x.type);
    entry["shape"] = x.extents;
    entry["data_offsets"] = {x.begin, x.end};
    core::detail::json_append(all, x.name, std::move(entry));
  }
  std::string text;
  try {
    text = all.dump();
  } catch (core::json::exception const&) {
    throw error("a name or a note that is not UTF-8", where, "UTF-8");
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');  // the data start on a multiple of 8 bytes
  if (text.size() > safetensors_max_header)
    throw error("a header of " + std::to_string(text.size()) + " bytes", where,
                "at most " + std::to_string(safetensors_max_header));
  t.header_bytes = 8 + text.size();
  t.data_bytes = at;
  t.index();
  std::string first(8, '\0');
  for (std::size_t i = 0; i < 8; ++i)
    first[i] = static_cast<char>(static_cast<u64>(text.size()) >> 8 * i & 255);
  return first + text;
}

/// The named tensor's elements, row-major. `fetch(at, to, n)` copies n bytes from byte `at` of the data.
/// float and double are read of any real type (exec/device/stored_type.hpp: F64 to float rounds), all else of
/// its own.
/// Throws `error` if there is no such tensor, its elements are stored as another type, or a field element is
/// none.
template <class Element, class Fetch>
std::vector<Element> stored_elements(stored_tensors const& from, std::string const& name,
                                     std::string const& where, Fetch&& fetch) {
  static_assert(std::endian::native == std::endian::little,
                "tensorpar: safetensors are read on little-endian machines only");
  static_assert(sizeof(Element) == idx(bytes_of(stored_as<Element>::type)));
  stored_tensor const* t = from.find(name);
  if (!t)
    throw error("there is no such tensor", detail::tensor_place(where, name),
                "one of its " + std::to_string(from.tensors.size()) + " tensors");
  constexpr bool real = std::floating_point<Element>;
  bool const own = t->is(stored_as<Element>::type);
  if (real ? !t->real() : !own)
    throw error("elements of type " + t->type_name(), detail::tensor_place(where, name, "dtype"),
                real ? real_types : name_of(stored_as<Element>::type));
  std::vector<Element> r(idx(t->elements()));
  if constexpr (real)
    if (!own && !r.empty()) {
      std::vector<unsigned char> bytes(idx(t->end - t->begin));
      fetch(t->begin, bytes.data(), t->end - t->begin);
      detail::reals_of(t->type, bytes.data(), r.size(), r.data());
      return r;
    }
  if (!r.empty()) fetch(t->begin, r.data(), t->end - t->begin);
  if constexpr (std::is_same_v<Element, prime_field>)
    for (std::size_t i = 0; i < r.size(); ++i)
      if (r[i].v >= prime_field::modulus)
        throw error("element " + std::to_string(i) + " is " + std::to_string(r[i].v),
                    detail::tensor_place(where, name), "whole numbers below 2^61 - 1");
  return r;
}
/// From a whole file in memory, whose header this is.
template <class Element>
std::vector<Element> read_tensor(std::string_view file, stored_tensors const& header, std::string const& name,
                                 std::string const& where) {
  return stored_elements<Element>(header, name, where, [&](u64 at, void* to, u64 n) {
    std::memcpy(to, file.data() + header.header_bytes + at, idx(n));
  });
}

}  // namespace tensorpar::exec
