// tests/exec/files/different_tensors.test.cpp - the first names and shapes that differ
#include <tensorpar/exec/files/different_tensors.hpp>

#include <doctest/doctest.h>

using namespace tensorpar;

TEST_CASE("names and shapes of both sides, three at most") {
  auto const tensors = [](std::vector<std::pair<std::string, std::vector<i64>>> const& all) {
    std::vector<exec::stored_tensor> r;
    for (auto const& [name, extents] : all) r.push_back({name, exec::stored_type::f32, extents, 0, 0});
    return r;
  };
  auto const differ = [&](auto const& there, auto const& here) {
    exec::stored_tensors h;
    h.tensors = tensors(there);
    return exec::detail::different_tensors(h, tensors(here));
  };
  using list = std::vector<std::pair<std::string, std::vector<i64>>>;
  list const model{{"w", {8, 9}}, {"b", {9}}, {"v", {}}};
  CHECK(differ(model, model) == "");
  CHECK(differ(list{{"v", {}}, {"b", {9}}, {"w", {8, 9}}}, model) == "");
  CHECK(differ(list{{"w", {8, 7}}, {"b", {9}}, {"v", {}}}, model) == "\"w\" is [8,7] in the file and [8,9] in the model");
  CHECK(differ(list{{"b", {9}}, {"v", {}}}, model) == "\"w\" is nothing in the file and [8,9] in the model");
  CHECK(differ(list{{"a", {2}}, {"w", {8, 9}}, {"b", {9}}, {"v", {}}}, model) == "\"a\" is [2] in the file and nothing in the model");
  CHECK(differ(list{{"x", {1}}}, model)
        == "\"b\" is nothing in the file and [9] in the model, \"v\" is nothing in the file and [] in the model, "
                                           "\"w\" is nothing in the file and [8,9] in the model, and 1 more");
}
