// fuzz/checkpoint.cpp - any bytes as a safetensors file and as a checkpoint's manifest: a value that survives, or tensorpar::error
#include <concepts>
#include <cstdint>
#include <cstdlib>
#include <tensorpar/exec/files/manifest.hpp>
#include <tensorpar/exec/files/safetensors.hpp>

namespace {

template <class Element>
void read_all(std::string_view file, tensorpar::exec::stored_tensors const& h, tensorpar::exec::stored_tensor const& t) {
  if (std::floating_point<Element> ? !tensorpar::exec::is_real(t.type) : t.type != tensorpar::exec::stored_as<Element>::type) return;
  try {
    if (static_cast<tensorpar::i64>(tensorpar::exec::read_tensor<Element>(file, h, t.name, "input").size()) != t.elements()) std::abort();
  } catch (tensorpar::error const&) {  // a field element that is none
    if (t.type != tensorpar::exec::stored_type::field) std::abort();
  }
}

void as_safetensors(std::string_view file) {
  tensorpar::exec::stored_tensors h;
  try {
    h = tensorpar::exec::read_safetensors(file, "input");
  } catch (tensorpar::error const&) { return; }
  tensorpar::u64 at = 0;
  for (tensorpar::exec::stored_tensor const& t : h.tensors) {
    if (t.begin != at) std::abort();
    at = t.end;
    read_all<float>(file, h, t);
    read_all<double>(file, h, t);
    read_all<std::int32_t>(file, h, t);
    read_all<tensorpar::prime_field>(file, h, t);
  }
  if (h.header_bytes + at != file.size()) std::abort();
  tensorpar::exec::stored_tensors again = h;
  std::string const text = tensorpar::exec::safetensors_header(again, "again") + std::string(file.substr(h.header_bytes));
  tensorpar::exec::stored_tensors const back = tensorpar::exec::read_safetensors(text, "again");
  if (back.tensors != h.tensors || back.notes != h.notes) std::abort();
}

void as_manifest(std::string_view text) {
  try {
    tensorpar::exec::checkpoint_manifest const m = tensorpar::exec::decode_manifest(text, "input");
    if (!(tensorpar::exec::decode_manifest(tensorpar::exec::encode(m).dump(), "again") == m)) std::abort();
  } catch (tensorpar::error const&) {}
}

/// A manifest whose checksum is set right, so that the reader is reached behind it.
void as_mended_manifest(std::string_view text) {
  try {
    tensorpar::core::json body = tensorpar::core::parse_json(text, "input");
    if (!body.is_object() || !body.contains("checksum")) return;
    body["checksum"] = "";
    body["checksum"] = tensorpar::detail::plan_checksum(body);
    as_manifest(body.dump());
  } catch (tensorpar::error const&) {}
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  std::string_view const bytes(reinterpret_cast<char const*>(data), size);
  as_safetensors(bytes);
  as_manifest(bytes);
  as_mended_manifest(bytes);
  // and as a header whose length is right, over as much data as its last number says, so that mutations of the text alone go deep
  std::size_t const cut = bytes.rfind('}');
  if (cut != bytes.npos && !bytes.empty() && bytes[0] == '{') {
    try {
      tensorpar::exec::parse_safetensors_header(bytes.substr(0, cut + 1), size - cut - 1, "header");
    } catch (tensorpar::error const&) {}
  }
  return 0;
}
