// tests/exec/files/manifest.test.cpp - a manifest reads back as it was written, and no change of it goes unnoticed
#include <doctest/doctest.h>
#include <tensorpar/exec/files/manifest.hpp>

using namespace tensorpar;

namespace {
exec::checkpoint_manifest sample() {
  return {7, ~u64{0}, "a model", 0x1234, optimizer_kind::adamw, "F32", {{"parameters.safetensors", 4096, 1}, {"state-1.bin", 0, ~u64{0}}}};
}
void refuses(core::json const& x, char const* why) {
  CHECK_THROWS_WITH_AS(exec::decode_manifest(x.dump(), "here.json"), doctest::Contains(why), error);
}
}  // namespace

TEST_CASE("a manifest reads back as it was written") {
  exec::checkpoint_manifest const m = sample();
  CHECK(exec::decode_manifest(exec::encode(m).dump(), "here.json") == m);
  CHECK(exec::decode_manifest(exec::encode(exec::checkpoint_manifest{}).dump(), "here.json") == exec::checkpoint_manifest{});
}

TEST_CASE("every changed value is noticed: the checksum covers all") {
  core::json const good = exec::encode(sample());
  for (char const* key : {"step", "seed"}) {
    core::json x = good;
    x[key] = 1;
    refuses(x, "not what the checksum says");
  }
  for (auto [key, value] : {std::pair("model", "b"), std::pair("graph", "0000000000000001"), std::pair("optimizer", "sgd"),
                            std::pair("scalar", "F64")}) {
    core::json x = good;
    CAPTURE(key);
    x[key] = value;
    CHECK_THROWS_AS(exec::decode_manifest(x.dump(), "here.json"), error);
  }
  core::json x = good;
  x["files"][0]["bytes"] = 4097;
  refuses(x, "not what the checksum says");
}

TEST_CASE("what is no manifest is refused with file and key") {
  core::json const good = exec::encode(sample());
  CHECK_THROWS_WITH_AS(exec::decode_manifest("{", "here.json"), doctest::Contains("here.json"), error);
  CHECK_THROWS_WITH_AS(exec::decode_manifest("[]", "here.json"), doctest::Contains("not a checkpoint's manifest"), error);
  auto with = [&](auto&& change) { core::json x = good; change(x); return x; };
  refuses(with([](core::json& x) { x["tensorpar_checkpoint"] = 2; }), "schema version 2");
  refuses(with([](core::json& x) { x.erase("seed"); }), "seed");
  refuses(with([](core::json& x) { x["extra"] = 1; }), "extra");
  refuses(with([](core::json& x) { x["step"] = -1; }), "not a whole number");
  refuses(with([](core::json& x) { x["optimizer"] = "lion"; }), "unknown optimizer");
  refuses(with([](core::json& x) { x["files"][1]["name"] = "../escape"; }), "not a plain file's name");
  refuses(with([](core::json& x) { x["files"][1]["name"] = "parameters.safetensors"; }), "a file that stands twice");
  exec::checkpoint_manifest bad = sample();
  bad.model = "\xff";
  CHECK_THROWS_WITH_AS(exec::encode(bad), doctest::Contains("UTF-8"), error);
}

TEST_CASE("plain names cannot leave their folder") {
  for (char const* s : {"a", "a.b", "a-1_b"}) CHECK(exec::detail::is_plain_name(s));
  for (char const* s : {"", ".", "..", ".a", "a/b", "A", "a b", "a\\b"}) CHECK(!exec::detail::is_plain_name(s));
  CHECK(!exec::detail::is_plain_name(std::string(101, 'a')));
}
