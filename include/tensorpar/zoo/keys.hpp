// tensorpar/zoo/keys.hpp - which sizes of a model a text may set, and within what range
#pragma once
#include <charconv>
#include <string>
#include <string_view>
#include <tensorpar/zoo/bert.hpp>
#include <tensorpar/zoo/candle.hpp>
#include <tensorpar/zoo/classic.hpp>
#include <tensorpar/zoo/gpt.hpp>
#include <tensorpar/zoo/graphpipe.hpp>
#include <tensorpar/zoo/inception.hpp>
#include <tensorpar/zoo/llama.hpp>
#include <tensorpar/zoo/mixture.hpp>
#include <tensorpar/zoo/mlp.hpp>
#include <tensorpar/zoo/nasnet.hpp>
#include <tensorpar/zoo/recommenders.hpp>
#include <tensorpar/zoo/resnext.hpp>
#include <utility>
#include <vector>

namespace tensorpar::zoo {

/// A size that a command line may set: its key, what it is without, and the largest value (the least is 1,
/// for a switch 0).
struct parameter {
  std::string key;
  i64 value, least, most;
};
namespace detail {

inline constexpr i64 narrow = i64{1} << 10, wide = i64{1} << 20, rows = i64{1} << 36;   // largest values

/// A key and the member that it sets.
template <class S> struct size_key {
  char const* name;
  i64 S::*number;
  i64 most;
  int S::*whole = nullptr;
  bool S::*flag = nullptr;
  constexpr size_key(char const* k, i64 S::*m, i64 n) : name(k), number(m), most(n) {}
  constexpr size_key(char const* k, int S::*m, i64 n) : name(k), number(nullptr), most(n), whole(m) {}
  constexpr size_key(char const* k, bool S::*m) : name(k), number(nullptr), most(1), flag(m) {}
  i64 least() const { return flag ? 0 : 1; }
  i64 get(S const& s) const { return flag ? i64{s.*flag} : whole ? i64{s.*whole} : s.*number; }
  void set(S& s, i64 v) const {
    if (flag) s.*flag = v != 0;
    else if (whole) s.*whole = static_cast<int>(v);
    else s.*number = v;
  }
};

template <class S> struct keys_of;
#define TENSORPAR_KEYS(SIZES, ...)                             \
  template <> struct keys_of<SIZES> {                          \
    using S = SIZES;                                           \
    static constexpr size_key<S> list[] = {__VA_ARGS__};       \
  }
TENSORPAR_KEYS(resnext_sizes, {"image", &S::image, narrow}, {"width", &S::width, wide},
               {"groups", &S::groups, wide}, {"classes", &S::classes, wide});
TENSORPAR_KEYS(inception_sizes, {"image", &S::image, narrow}, {"thin", &S::thin, narrow},
               {"classes", &S::classes, wide}, {"auxiliary", &S::auxiliary});
TENSORPAR_KEYS(bert_sizes, {"layers", &S::layers, narrow}, {"hidden", &S::hidden, wide},
               {"heads", &S::heads, wide}, {"wide", &S::wide, wide}, {"seq", &S::seq, wide},
               {"vocab", &S::vocab, rows});
TENSORPAR_KEYS(bert_artifact_sizes, {"layers", &S::layers, narrow}, {"hidden", &S::hidden, wide},
               {"heads", &S::heads, wide}, {"seq", &S::seq, wide});
TENSORPAR_KEYS(dlrm_sizes, {"tables", &S::tables, bundle::max - 1}, {"rows", &S::rows, rows},
               {"width", &S::width, wide}, {"bag", &S::bag, wide});
TENSORPAR_KEYS(xdl_sizes, {"tables", &S::tables, bundle::max}, {"rows", &S::rows, rows},
               {"width", &S::width, wide}, {"bag", &S::bag, wide}, {"layers", &S::layers, narrow},
               {"hidden", &S::hidden, wide});
TENSORPAR_KEYS(candle_uno_sizes, {"layers", &S::layers, narrow}, {"top", &S::top, narrow},
               {"hidden", &S::hidden, wide});
TENSORPAR_KEYS(mlp_unify_sizes, {"layers", &S::layers, narrow}, {"hidden", &S::hidden, wide},
               {"features", &S::features, wide});
TENSORPAR_KEYS(split_test_sizes, {"features", &S::features, wide});
TENSORPAR_KEYS(gpt_sizes, {"layers", &S::layers, narrow}, {"hidden", &S::hidden, wide},
               {"heads", &S::heads, wide}, {"wide", &S::wide, wide}, {"seq", &S::seq, wide},
               {"vocab", &S::vocab, rows}, {"packed", &S::packed});
TENSORPAR_KEYS(llama_sizes, {"layers", &S::layers, narrow}, {"hidden", &S::hidden, wide},
               {"heads", &S::heads, wide}, {"kv_heads", &S::kv_heads, wide}, {"wide", &S::wide, wide},
               {"seq", &S::seq, wide}, {"vocab", &S::vocab, rows});
TENSORPAR_KEYS(mixture_sizes, {"layers", &S::layers, narrow}, {"hidden", &S::hidden, wide},
               {"heads", &S::heads, wide}, {"wide", &S::wide, wide}, {"seq", &S::seq, wide},
               {"vocab", &S::vocab, rows}, {"experts", &S::experts, narrow}, {"group", &S::group, wide},
               {"capacity", &S::capacity, wide});
TENSORPAR_KEYS(nasnet_sizes, {"image", &S::image, narrow}, {"filters", &S::filters, wide},
               {"cells", &S::cells, narrow}, {"stages", &S::stages, 10}, {"classes", &S::classes, wide});
TENSORPAR_KEYS(mmt_sizes, {"branches", &S::branches, bundle::max}, {"layers", &S::layers, narrow},
               {"hidden", &S::hidden, wide}, {"heads", &S::heads, wide}, {"wide", &S::wide, wide},
               {"seq", &S::tokens, wide});
TENSORPAR_KEYS(vgg_sizes, {"image", &S::image, narrow}, {"width", &S::width, wide},
               {"hidden", &S::hidden, wide}, {"classes", &S::classes, wide});
TENSORPAR_KEYS(resnet_sizes, {"image", &S::image, narrow}, {"width", &S::width, wide},
               {"classes", &S::classes, wide});
#undef TENSORPAR_KEYS

/// What "key=value,key=value" sets: of every size its place among `known`, and its value. Knows no model, so
/// that it is compiled once.
inline std::vector<std::pair<std::size_t, i64>> given_sizes(std::vector<parameter> const& known,
                                                            std::string_view text, std::string const& where) {
  std::vector<std::pair<std::size_t, i64>> r;
  for (bool more = true; more;) {
    std::size_t const end = text.find(',');
    std::string_view const item = text.substr(0, end);
    more = end != text.npos;
    text.remove_prefix(more ? end + 1 : text.size());
    std::size_t const eq = item.find('=');
    if (eq == item.npos)
      throw error("'" + std::string(item) + "' is no size", where, "NAME or NAME:key=value,key=value");
    std::string const key(item.substr(0, eq)), value(item.substr(eq + 1));
    std::size_t k = 0;
    while (k < known.size() && known[k].key != key) ++k;
    if (k == known.size()) {
      std::string keys;
      for (parameter const& x : known) keys += (keys.empty() ? "" : ", ") + x.key;
      throw error("no size '" + key + "'", where, keys);
    }
    for (auto const& [before, _] : r)
      if (before == k) throw error("'" + key + "' is given twice", where, "every size once");
    i64 v = -1;
    char const* const last = value.data() + value.size();
    auto const [p, why] = std::from_chars(value.data(), last, v);
    if (why != std::errc{} || p != last || v < known[k].least || v > known[k].most)
      throw error(
          "'" + value + "' for '" + key + "'", where,
          "a whole number from " + std::to_string(known[k].least) + " to " + std::to_string(known[k].most));
    r.emplace_back(k, v);
  }
  return r;
}
/// The sizes that a model has, as they stand in `s`.
template <class S> std::vector<parameter> sizes_in(S const& s) {
  std::vector<parameter> r;
  for (size_key<S> const& k : keys_of<S>::list) r.push_back({k.name, k.get(s), k.least(), k.most});
  return r;
}
template <class S> void set_sizes(S& s, std::string_view text, std::string const& where) {
  for (auto const& [k, v] : given_sizes(sizes_in(s), text, where)) keys_of<S>::list[k].set(s, v);
}

}  // namespace detail

}  // namespace tensorpar::zoo
