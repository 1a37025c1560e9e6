// tests/support/packed_heads.hpp - queries, keys and values as the one tensor that packed attention takes
#pragma once
#include <tensorpar/core/config.hpp>
#include <vector>

namespace tests {

/// Head by head: `head` columns of q, then of k, then of v. All three have the same number of elements.
template <class T>
std::vector<T> packed_heads(std::vector<T> const& q, std::vector<T> const& k, std::vector<T> const& v, tensorpar::i64 head) {
  std::vector<T> all;
  auto const width = static_cast<std::size_t>(head);
  for (std::size_t at = 0; at < q.size(); at += width)
    for (auto const* x : {&q, &k, &v}) for (std::size_t e = 0; e < width; ++e) all.push_back((*x)[at + e]);
  return all;
}

}  // namespace tests
