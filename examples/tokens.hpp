// examples/tokens.hpp - token files in llm.c's format, and batches of them
#pragma once
#include <cstdint>
#include <string>
#include <tensorpar/core/read_file.hpp>
#include <tensorpar/core/whole_file.hpp>
#include <tensorpar/exec/device/host.hpp>
#include <vector>

namespace tokens {

using namespace tensorpar;

/// llm.c's .bin: 256 little-endian 32-bit numbers (20240520, version 1, the count of tokens, zeros), then the tokens, 16 bits each. Its
/// files for other vocabularies (20240801, version 7) have tokens of 32 bits.
inline constexpr std::int32_t magic = 20240520, version = 1, magic_of_32_bits = 20240801;
inline constexpr std::size_t header_numbers = 256, header_bytes = 4 * header_numbers;

/// Throws `error` for anything else than such a file, before room is made for its tokens.
inline std::vector<std::uint16_t> read(std::string const& path) {
  core::readable_file const in(path, "a token file, or --text FILE");
  std::int32_t header[header_numbers]{};
  if (in.bytes() >= header_bytes) in.read_at(0, header, header_bytes);
  u64 const tokens = in.bytes() >= header_bytes ? in.bytes() - header_bytes : 0;              // their bytes
  char const* const of_16_bits = "256 numbers, the first 20240520, and tokens of 16 bits";
  if (header[0] == magic_of_32_bits) throw error("a token file of 32-bit tokens", path, of_16_bits);
  if (header[0] != magic) throw error("not a token file", path, of_16_bits);
  if (header[1] != version) throw error("a token file of version " + std::to_string(header[1]), path, "version 1");
  if (header[2] < 1) throw error("a token file of " + std::to_string(header[2]) + " tokens", path, "at least 1");
  auto const n = static_cast<u64>(header[2]);
  if (tokens == 4 * n) throw error("a token file of 32-bit tokens", path, of_16_bits);
  if (tokens != 2 * n)
    throw error("the file's length of " + std::to_string(in.bytes()) + " bytes is not that of its " + std::to_string(n) + " tokens", path,
                "1024 bytes and 2 for each token");
  std::vector<std::uint16_t> all(static_cast<std::size_t>(n));
  in.read_at(header_bytes, all.data(), 2 * n);
  return all;
}
/// Throws `error` if the system refuses, or there are more than 2^31 - 1.
inline void write(std::vector<std::uint16_t> const& all, std::string const& path) {
  if (all.empty() || all.size() > 0x7fffffff) throw error(std::to_string(all.size()) + " tokens", path, "1 to 2147483647");
  std::int32_t const header[header_numbers]{magic, version, static_cast<std::int32_t>(all.size())};
  core::whole_file out(path);
  out.write(header, header_bytes);
  out.write(all.data(), all.size() * 2);
  out.finish();
}
/// A token for each byte.
inline std::vector<std::uint16_t> of_text(std::string const& path) {
  std::vector<std::uint16_t> all;
  for (char c : core::read_file(path, "a text")) all.push_back(static_cast<unsigned char>(c));
  return all;
}

/// The step-th batch of `rows` sequences, one after another through the text and round again, each with the token that follows each token.
/// What it holds follows from the step alone, so a resumed run goes on as it would have. Precondition: all.size() > seq.
inline host_batch batch_of(std::vector<std::uint16_t> const& all, u64 step, i64 rows, i64 seq) {
  shape const s{dim(rows), dim(seq)};
  host_tensor token{s, {}, {}}, position{s, {}, {}}, label{s, {}, {}};
  u64 const n = all.size(), first = step * static_cast<u64>(rows * seq);
  for (i64 i = 0; i < rows * seq; ++i) {
    token.index.push_back(all[(first + static_cast<u64>(i)) % n]);
    label.index.push_back(all[(first + static_cast<u64>(i) + 1) % n]);
    position.index.push_back(static_cast<std::int32_t>(i % seq));
  }
  return {{"tokens", std::move(token)}, {"positions", std::move(position)}, {"labels", std::move(label)}};
}

}  // namespace tokens
