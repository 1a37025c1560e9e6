// tests/support/laws/communicator.hpp - the laws of collectives, run by every member of one group
#pragma once
#include "../dense.hpp"
#include <tensorpar/exec/device/concepts.hpp>

namespace tests {

/// What member `index` contributes: a fixed function of (seed, index, position), so every member knows everybody's data.
template <class Element> Element contribution(u64 seed, int index, i64 at) {
  u64 const x = tensorpar::core::mix(seed ^ tensorpar::core::mix(static_cast<u64>(index) << 32 ^ static_cast<u64>(at)));
  if constexpr (std::same_as<Element, prime_field>) return prime_field::raw(x % prime_field::modulus);
  else if constexpr (std::floating_point<Element>) return static_cast<Element>(static_cast<double>(x >> 11) * 0x1p-53 - 0.5);
  else return static_cast<Element>(x % 1000);
}
template <class Element> std::vector<Element> contributions(u64 seed, int index, i64 n) {
  std::vector<Element> r;
  for (i64 i = 0; i < n; ++i) r.push_back(contribution<Element>(seed, index, i));
  return r;
}
template <class Element> std::vector<Element> summed(u64 seed, int members, i64 n) {
  std::vector<Element> r;
  for (i64 i = 0; i < n; ++i) {
    Element s = contribution<Element>(seed, 0, i);
    for (int j = 1; j < members; ++j) s += contribution<Element>(seed, j, i);
    r.push_back(s);
  }
  return r;
}

/// Called by every member of g with the same n and seed. Returns the laws that failed (empty: none); checks nothing by itself, so it may
/// run on any thread.
template <class Element, tensorpar::exec::full_communicator<Element> Comm>
std::string broken_collective_laws(Comm& c, typename Comm::group const& g, i64 n, u64 seed) {
  std::string broken;
  auto law = [&](bool holds, char const* name) { if (!holds) broken += std::string(broken.empty() ? "" : ", ") + name; };
  int const members = g.size(), me = g.index();
  i64 const all = n * members;
  std::size_t const chunk = static_cast<std::size_t>(n), whole = static_cast<std::size_t>(all);
  auto const mine = contributions<Element>(seed, me, all), total = summed<Element>(seed, members, all);

  std::vector<Element> reduced(whole), in_place = mine, part(chunk), gathered(whole);
  c.all_reduce(g, mine.data(), reduced.data(), all);
  law(reduced == total, "all_reduce is the sum in group order, to the bit");
  c.all_reduce(g, in_place.data(), in_place.data(), all);
  law(in_place == total, "all_reduce works in place");
  c.reduce_scatter(g, mine.data(), part.data(), n);
  law(std::equal(part.begin(), part.end(), total.begin() + me * n), "reduce_scatter leaves this member's chunk of the sum");
  c.all_gather(g, part.data(), gathered.data(), n);
  law(gathered == reduced, "all_gather after reduce_scatter is all_reduce");
  std::vector<Element> within = mine;
  c.reduce_scatter(g, within.data(), within.data() + me * n, n);
  law(std::equal(part.begin(), part.end(), within.begin() + me * n), "reduce_scatter may write its own chunk of the operand");
  std::vector<Element> sharding(whole);
  std::copy(mine.begin(), mine.begin() + n, sharding.begin() + me * n);
  c.all_gather(g, sharding.data() + me * n, sharding.data(), n);
  for (int j = 0; j < members; ++j) {
    auto const theirs = contributions<Element>(seed, j, n);
    law(std::equal(theirs.begin(), theirs.end(), sharding.begin() + j * n), "all_gather lays contributions side by side, in place");
  }

  std::vector<Element> turned(whole), back(whole);
  c.all_to_all(g, mine.data(), turned.data(), n);
  for (int j = 0; j < members; ++j) {
    auto const theirs = contributions<Element>(seed, j, all);
    law(std::equal(turned.begin() + j * n, turned.begin() + (j + 1) * n, theirs.begin() + me * n),
        "all_to_all brings chunk `index` of every member");
  }
  c.all_to_all(g, turned.data(), back.data(), n);
  law(back == mine, "all_to_all twice is the identity");

  for (int root = 0; root < members; ++root) {
    std::vector<Element> data = mine;
    c.broadcast(g, root, data.data(), all);
    law(data == contributions<Element>(seed, root, all), "broadcast gives everybody the root's data");
  }
  c.barrier(g);
  return broken;
}

/// Everybody sends to everybody first, then receives, in the opposite order; two tags and two messages per tag.
template <class Element, tensorpar::exec::has_send_receive<Element> Comm> std::string broken_message_laws(Comm& c, i64 n, u64 seed) {
  std::string broken;
  for (int to = 0; to < c.size(); ++to)
    for (int turn = 0; turn < 2; ++turn)
      for (int tag : {7, 9}) {
        auto const data = contributions<Element>(seed + static_cast<u64>(100 * turn + tag), c.rank(), n);
        c.send(to, tag, data.data(), n);
      }
  for (int from = c.size(); from-- > 0;)
    for (int tag : {9, 7})
      for (int turn = 0; turn < 2; ++turn) {
        std::vector<Element> data(static_cast<std::size_t>(n));
        c.receive(from, tag, data.data(), n);
        if (data != contributions<Element>(seed + static_cast<u64>(100 * turn + tag), from, n))
          broken = "messages arrive whole, in order, by sender and tag";
      }
  return broken;
}

}  // namespace tests
