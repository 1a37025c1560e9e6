// tensorpar/exec/files/checkpoint_folder.hpp - the checkpoints in a folder: which are there, which are whole
#pragma once
#include <charconv>
#include <tensorpar/exec/files/files.hpp>
#include <tensorpar/exec/files/manifest.hpp>

namespace tensorpar {

/// A complete checkpoint, and why newer ones were passed over.
struct found_checkpoint {
  std::string path;  // its folder; empty: there is none
  exec::checkpoint_manifest manifest;
  std::vector<std::string> skipped;  // one sentence each, newest first
  explicit operator bool() const { return !path.empty(); }
};

namespace detail {

inline constexpr char const* payload_names[] = {"parameters.safetensors", "optimizer.safetensors"};

/// One folder of checkpoints: "step-<N>", set aside while it is being replaced "step-<N>.old". Names that
/// start with a dot are unfinished.
struct step_folder {
  u64 step = 0;
  bool old = false;
  std::string name() const { return "step-" + std::to_string(step) + (old ? ".old" : ""); }
};
/// Newest first; a replaced one after the one that replaces it.
inline std::vector<step_folder> step_folders(std::string const& dir) {
  std::vector<step_folder> r;
  for (std::string const& n : exec::detail::names_in(dir)) {
    if (!n.starts_with("step-")) continue;
    step_folder s;
    std::string_view const rest = std::string_view(n).substr(5);
    if (std::from_chars(rest.data(), rest.data() + rest.size(), s.step).ec != std::errc()) continue;
    s.old = n.ends_with(".old");
    if (s.name() == n) r.push_back(s);
  }
  std::sort(r.begin(), r.end(), [](step_folder const& a, step_folder const& b) {
    return a.step != b.step ? a.step > b.step : a.old < b.old;
  });
  return r;
}

/// The folder's manifest, once every file has been found to be what it says. Throws `error` otherwise. Reads
/// every byte.
inline exec::checkpoint_manifest sound_manifest(std::string const& folder) {
  std::string const path = folder + "/manifest.json";
  if (!exec::detail::exists(path))
    throw error("the checkpoint is incomplete: it has no manifest", folder,
                "a checkpoint that was saved to the end");
  exec::checkpoint_manifest const m = exec::decode_manifest(exec::input_file(path).text(), path);
  for (exec::checkpoint_part const& p : m.files) {
    exec::input_file const f(folder + "/" + p.name);
    if (f.bytes() != p.bytes)
      throw error("the file has " + std::to_string(f.bytes()) + " bytes", f.path(),
                  std::to_string(p.bytes) + " bytes, by the manifest");
    if (f.hash() != p.hash)
      throw error("the file is damaged: its content is not what the manifest's hash says", f.path(),
                  "the file as it was saved");
  }
  return m;
}
inline bool is_sound(std::string const& folder) {
  try {
    sound_manifest(folder);
    return true;
  } catch (error const&) { return false; }
}

/// Under a name that nobody looks at, then file by file: half of a removal is never taken for a checkpoint.
inline void discard(std::string const& dir, std::string const& name) {
  std::string const away = dir + "/.discarded-" + name;
  exec::detail::remove_folder(away);
  exec::detail::rename_path(dir + "/" + name, away);
  exec::detail::remove_folder(away);
}

}  // namespace detail

/// The newest complete checkpoint in `dir`; damaged and unfinished ones are passed over, and `skipped` says
/// which and why. A folder that is not there holds none; one that cannot be read, or a file, is an `error`:
/// who takes it for empty begins a run anew. Reads every byte of the one that it returns.
inline found_checkpoint latest_checkpoint(std::string const& dir) {
  exec::detail::require_folder(dir);
  found_checkpoint r;
  for (detail::step_folder const& s : detail::step_folders(dir)) {
    std::string const path = dir + "/" + s.name();
    try {
      r.manifest = detail::sound_manifest(path);
      if (r.manifest.step != s.step)
        throw error("the manifest speaks of step " + std::to_string(r.manifest.step), path,
                    "step " + std::to_string(s.step));
      r.path = path;
      return r;
    } catch (error const& e) {
      r.manifest = {};
      r.skipped.push_back(e.what());
    }
  }
  return r;
}

}  // namespace tensorpar
