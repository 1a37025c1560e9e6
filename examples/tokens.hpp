// examples/tokens.hpp - token files in llm.c's format, and batches of them
#pragma once
#include <cstdint>
#include <fstream>
#include <string>
#include <tensorpar/core/error.hpp>
#include <tensorpar/exec/host.hpp>
#include <vector>

namespace tokens {

using namespace tensorpar;

/// llm.c's .bin: 256 little-endian 32-bit numbers (20240520, version 1, the count of tokens, zeros), then the tokens, 16 bits each.
inline constexpr std::int32_t magic = 20240520, version = 1;
inline constexpr std::size_t header_numbers = 256;

/// Throws `error` for anything else than such a file.
inline std::vector<std::uint16_t> read(std::string const& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw error("cannot read the file", path, "a token file, or --text FILE");
  std::vector<std::int32_t> header(header_numbers);
  in.read(reinterpret_cast<char*>(header.data()), static_cast<std::streamsize>(header_numbers * 4));
  if (!in || header[0] != magic) throw error("not a token file", path, "256 numbers, the first 20240520, and tokens of 16 bits");
  if (header[1] != version) throw error("a token file of version " + std::to_string(header[1]), path, "version 1");
  if (header[2] < 1) throw error("a token file of " + std::to_string(header[2]) + " tokens", path, "at least 1");
  std::vector<std::uint16_t> all(static_cast<std::size_t>(header[2]));
  in.read(reinterpret_cast<char*>(all.data()), static_cast<std::streamsize>(all.size() * 2));
  if (!in || in.get() != std::ifstream::traits_type::eof())
    throw error("the file's length is not that of its " + std::to_string(header[2]) + " tokens", path, "1024 bytes and 2 for each token");
  return all;
}
/// Throws `error` if the system refuses, or there are more than 2^31 - 1.
inline void write(std::vector<std::uint16_t> const& all, std::string const& path) {
  if (all.empty() || all.size() > 0x7fffffff) throw error(std::to_string(all.size()) + " tokens", path, "1 to 2147483647");
  std::vector<std::int32_t> header(header_numbers, 0);
  header[0] = magic;
  header[1] = version;
  header[2] = static_cast<std::int32_t>(all.size());
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<char const*>(header.data()), static_cast<std::streamsize>(header_numbers * 4));
  out.write(reinterpret_cast<char const*>(all.data()), static_cast<std::streamsize>(all.size() * 2));
  out.close();
  if (!out) throw error("cannot write the file", path, "a folder that may be written to");
}
/// A token for each byte.
inline std::vector<std::uint16_t> of_text(std::string const& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw error("cannot read the file", path, "a text");
  std::vector<std::uint16_t> all;
  for (int c; (c = in.get()) != std::ifstream::traits_type::eof();) all.push_back(static_cast<std::uint16_t>(c));
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
