// tensorpar/exec/files/manifest.hpp - what a checkpoint says about itself: canonical, versioned, checksummed
#pragma once
#include <tensorpar/ir/training_hash.hpp>
#include <tensorpar/plan/codec.hpp>

namespace tensorpar::exec {

/// One file of a checkpoint: its plain name, size and `content_hash`.
struct checkpoint_part {
  std::string name;
  u64 bytes = 0, hash = 0;
  friend bool operator==(checkpoint_part const&, checkpoint_part const&) = default;
};

/// A regular value. `scalar` is the payload's element type ("F32", "F64", "U64"), `graph` the `training_hash`
/// of what was trained.
struct checkpoint_manifest {
  static constexpr int schema = 1;
  u64 step = 0, seed = 0;  // training steps done; seed of the run
  std::string model;       // a label
  u64 graph = 0;
  optimizer_kind optimizer = optimizer_kind::sgd;
  std::string scalar;
  std::vector<checkpoint_part> files;
  friend bool operator==(checkpoint_manifest const&, checkpoint_manifest const&) = default;
};

namespace detail {
inline bool is_plain_name(std::string_view s) {
  if (s.empty() || s[0] == '.' || s.size() > 100) return false;
  for (char c : s)
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.')) return false;
  return true;
}
inline u64 read_u64(tensorpar::detail::plan_reader const& r) {
  if (!r.at.is_number_unsigned()) r.fail("not a whole number from 0", "a whole number below 2^64");
  return r.at.get<u64>();
}
}  // namespace detail

/// The manifest as JSON: schema version first, keys in one order, hashes as text. Throws `error` if the label
/// is not UTF-8.
inline core::json encode(checkpoint_manifest const& m) {
  core::json r = core::json::object();
  r["tensorpar_checkpoint"] = checkpoint_manifest::schema;
  r["checksum"] = "";
  r["step"] = m.step;
  r["seed"] = m.seed;
  r["model"] = m.model;
  r["graph"] = core::detail::hex_of(m.graph);
  r["optimizer"] = tensorpar::detail::optimizer_names[static_cast<int>(m.optimizer)];
  r["scalar"] = m.scalar;
  core::json files = core::json::array();
  for (checkpoint_part const& p : m.files) {
    core::json x = core::json::object();
    x["name"] = p.name;
    x["bytes"] = p.bytes;
    x["hash"] = core::detail::hex_of(p.hash);
    files.push_back(std::move(x));
  }
  r["files"] = std::move(files);
  try {
    r["checksum"] = tensorpar::detail::plan_checksum(r);
  } catch (core::json::exception const&) {
    throw error("a model's label that is not UTF-8", "checkpoint", "UTF-8");
  }
  return r;
}

/// The manifest written in `text`; `where` names it in errors, usually its path. Keys may stand in any order.
/// Throws `error` naming file, key and what is valid. Refused are no JSON, another schema version, a missing
/// or unknown key, a wrong type, a name that is none of a plain file, or a content that is not what its
/// checksum says. Law: decode_manifest(encode(m).dump()) == m. O(text).
inline checkpoint_manifest decode_manifest(std::string_view text, std::string const& where) {
  core::json const from = core::parse_json(text, where);
  tensorpar::detail::plan_reader const r{from, where, ""};
  if (!from.is_object() || !from.contains("tensorpar_checkpoint"))
    r.fail("not a checkpoint's manifest", "an object with \"tensorpar_checkpoint\"");
  if (i64 const v = r["tensorpar_checkpoint"].integer(0, INT64_MAX); v != checkpoint_manifest::schema)
    r["tensorpar_checkpoint"].fail("a checkpoint of schema version " + std::to_string(v),
                                   "version " + std::to_string(checkpoint_manifest::schema));
  r.object(
      {"tensorpar_checkpoint", "checksum", "step", "seed", "model", "graph", "optimizer", "scalar", "files"});
  checkpoint_manifest m;
  m.step = detail::read_u64(r["step"]);
  m.seed = detail::read_u64(r["seed"]);
  m.model = r["model"].text();
  m.graph = r["graph"].hex();
  std::string const kind = r["optimizer"].text();
  int k = 0;
  while (k < 3 && kind != tensorpar::detail::optimizer_names[k]) ++k;
  if (k == 3) r["optimizer"].fail("unknown optimizer", "sgd, momentum, adamw");
  m.optimizer = static_cast<optimizer_kind>(k);
  m.scalar = r["scalar"].text();
  tensorpar::detail::plan_reader const files = r["files"];
  for (std::size_t i = 0, n = files.array(0, 1000); i < n; ++i) {
    tensorpar::detail::plan_reader const f = files[i];
    f.object({"name", "bytes", "hash"});
    m.files.push_back({f["name"].text(), detail::read_u64(f["bytes"]), f["hash"].hex()});
    if (!detail::is_plain_name(m.files.back().name))
      f["name"].fail("not a plain file's name", "lower-case letters, digits, '_', '-' and '.'");
    for (std::size_t j = 0; j < i; ++j)
      if (m.files[j].name == m.files[i].name) f["name"].fail("a file that stands twice", "each file once");
  }
  core::json const again = encode(m);
  if (r["checksum"].hex() != tensorpar::detail::plan_reader{again, where, ""}["checksum"].hex())
    r["checksum"].fail("the manifest was edited or damaged: its content is not what the checksum says",
                       "a manifest as it was written");
  return m;
}

}  // namespace tensorpar::exec
