// tests/check/findings.test.cpp - faults have names, sentences are joined, a full list stops listening
#include <tensorpar/check/findings.hpp>
#include <doctest/doctest.h>

#include <set>
#include <string>

using namespace tensorpar;

TEST_CASE("every fault has a name of its own") {
  std::set<std::string> names;
  int const count = static_cast<int>(fault::peak) + 1;
  for (int i = 0; i < count; ++i) names.insert(name_of(static_cast<fault>(i)));
  CHECK(static_cast<int>(names.size()) == count);
  CHECK(std::string(name_of(fault::wrong_graph)) == "wrong_graph");
  CHECK(std::string(name_of(fault::overlap)) == "overlap");
  CHECK(std::string(name_of(fault::peak)) == "peak");
}

TEST_CASE("findings keep their order up to the limit") {
  for (std::size_t limit : {0u, 1u, 3u}) {
    findings all(limit);
    CHECK(all.empty());
    CHECK(all.full() == (limit == 0));
    for (int i = 0; i < 5; ++i) all.add({fault::block, i, -1, -1, -1, "finding " + std::to_string(i)});
    CHECK(all.full());
    auto const kept = all.take();
    REQUIRE(kept.size() == limit);
    for (std::size_t i = 0; i < limit; ++i) CHECK(kept[i].task == static_cast<int>(i));
  }
}

TEST_CASE("sentences are words and numbers side by side") {
  using tensorpar::detail::check::sentence;
  CHECK(sentence("degree ", i64{3}, " on ", 2u, " devices") == "degree 3 on 2 devices");
  CHECK(sentence() == "");
  CHECK(sentence(std::string("x"), -1) == "x-1");
}
