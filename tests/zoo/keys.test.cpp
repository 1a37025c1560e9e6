// tests/zoo/keys.test.cpp - texts set sizes, and what they must not say is refused
#include <tensorpar/zoo/keys.hpp>
#include <doctest/doctest.h>

#include <tensorpar/core/error.hpp>

using namespace tensorpar;

namespace {
template <class S> std::string complaint_about(S s, std::string_view text) {
  try {
    zoo::detail::set_sizes(s, text, "here");
    return {};
  } catch (error const& e) {
    return e.what();
  }
}
}  // namespace

TEST_CASE("every key sets its own size and no other") {
  zoo::llama_sizes const usual;
  for (auto const& k : zoo::detail::keys_of<zoo::llama_sizes>::list) {
    zoo::llama_sizes s = usual;
    zoo::detail::set_sizes(s, std::string(k.name) + "=3", "here");
    CHECK(k.get(s) == 3);
    for (auto const& other : zoo::detail::keys_of<zoo::llama_sizes>::list)
      if (std::string_view(other.name) != k.name) CHECK(other.get(s) == other.get(usual));
  }
  zoo::llama_sizes s;
  zoo::detail::set_sizes(s, "layers=2,hidden=64,heads=4", "here");
  CHECK(s.layers == 2);
  CHECK(s.hidden == 64);
  CHECK(s.heads == 4);
}

TEST_CASE("errors name the key and what is valid") {
  for (char const* bad : {"depth=3", "layers", "layers=", "layers=x", "layers=0", "layers=-1", "layers=1e3", "layers=99999999999999999999",
                          "layers=2,", "=2", ",", "layers=2,,hidden=4"}) {
    CAPTURE(bad);
    CHECK(complaint_about(zoo::llama_sizes{}, bad).find("here") != std::string::npos);
  }
  CHECK(complaint_about(zoo::llama_sizes{}, "depth=3").find("layers") != std::string::npos);
  CHECK(complaint_about(zoo::llama_sizes{}, "layers=2") == "");
}
