// tensorpar/exec/files/different_tensors.hpp - the first tensors by which a file and a model differ, in words
// for an error
#pragma once
#include <tensorpar/core/json.hpp>
#include <tensorpar/exec/files/safetensors.hpp>

namespace tensorpar::exec::detail {

/// ""w" is [8,7] in the file and [8,9] in the model", for up to three tensors, by name; then how many more.
/// Element types are not looked at. Empty: the same names and shapes. O(tensors log).
inline std::string different_tensors(stored_tensors const& there, std::vector<stored_tensor> const& ours) {
  auto const by_name = [](std::vector<stored_tensor> const& all) {
    std::map<std::string, std::string> r;
    for (stored_tensor const& t : all) r[t.name] = core::json(t.extents).dump();
    return r;
  };
  std::map<std::string, std::string> const a = by_name(there.tensors), b = by_name(ours);
  std::map<std::string, std::string> found;
  for (auto const& [name, extents] : a) {
    auto const at = b.find(name);
    if (at == b.end()) found[name] = extents + " in the file and nothing in the model";
    else if (at->second != extents)
      found[name] = extents + " in the file and " + at->second + " in the model";
  }
  for (auto const& [name, extents] : b)
    if (!a.contains(name)) found[name] = "nothing in the file and " + extents + " in the model";
  std::string r;
  std::size_t told = 0;
  for (auto const& [name, how] : found) {
    if (told++ == 3) break;
    r += (told > 1 ? ", " : "") + core::json(name).dump(-1, ' ', false, core::json::error_handler_t::replace)
        + " is " + how;
  }
  return found.size() > 3 ? r + ", and " + std::to_string(found.size() - 3) + " more" : r;
}

}  // namespace tensorpar::exec::detail
