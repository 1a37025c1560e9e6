// tests/prover/find/candidates.test.cpp - rules from pairs: canonical names, both ways tried, each once
#include <tensorpar/prover/find/candidates.hpp>
#include <doctest/doctest.h>

using namespace tensorpar;
using namespace tensorpar::prover;

TEST_CASE("names follow the order in which things occur, the larger side is the source, each rule is there once") {
  family const f = make_family("small", "p:ab q:ab", "e=0,1 m n ?g",
                               "?g(_); add(_,_); partition{e,m}(_); partition{e,n}(_); combine{e,m}(_)", 2);
  std::vector<std::string> texts;
  for (auto const& [r, from] : candidates(f, enumerate(f, 1))) {
    CHECK(problems(r).empty());
    CHECK(r.source.nodes.size() >= r.target.nodes.size());
    texts.push_back(spell(r));
  }
  auto has = [&](std::string_view t) { return std::count(texts.begin(), texts.end(), t); };
  CHECK(has("combine{dim=d,degree=k}(partition{dim=d,degree=k}(x)) => x") == 1);
  CHECK(has("partition{dim=d,degree=k}(?f(x)) => ?f(partition{dim=d,degree=k}(x))") == 1);
  CHECK(has("partition{dim=d,degree=k}(partition{dim=d,degree=m}(x)) => partition{dim=d,degree=m}(partition{dim=d,degree=k}(x))") == 1);
  std::sort(texts.begin(), texts.end());
  CHECK(std::adjacent_find(texts.begin(), texts.end()) == texts.end());
}

TEST_CASE("what neither direction binds is left out, what only the smaller side binds is turned round") {
  family const f = make_family("two", "x:a y:a", "", "relu(_); add(_,_)", 2);
  enumeration e = enumerate(f, 1);
  auto find = [&](std::string_view text) {
    for (std::size_t i = 0; i < e.terms.size(); ++i)
      if (int const t = static_cast<int>(i); e.terms[i].step >= 0 && spell(candidate(f, e, t, t)).starts_with(text)) return t;
    return -1;
  };
  int const of_x = find("relu(x) =>"), of_both = find("add(x, y) =>"), nested = find("relu(relu(x)) =>");
  REQUIRE((of_x >= 0 && of_both >= 0 && nested >= 0));
  e.pairs = {{of_x, of_x + 1}};          // relu(x) and relu(y)
  CHECK(candidates(f, e).empty());
  e.pairs = {{of_both, nested}, {of_both, nested}};
  auto const all = candidates(f, e);
  REQUIRE(all.size() == 1);
  CHECK(spell(all[0].what) == "add(x, y) => relu(relu(x))");
}
