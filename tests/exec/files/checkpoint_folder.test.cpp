// tests/exec/files/checkpoint_folder.test.cpp - which folders are checkpoints, in which order, and which are passed over
#include <doctest/doctest.h>
#include <support/scratch_folder.hpp>
#include <tensorpar/exec/files/checkpoint_folder.hpp>

using namespace tensorpar;

TEST_CASE("names of checkpoints: newest first, what is being replaced after its replacement, others not at all") {
  tests::scratch_folder const dir;
  for (char const* n : {"step-2", "step-10", "step-10.old", "step-", "step-x", "step-07", "step-3.tmp", ".step-99", "notes"})
    exec::detail::make_folders(dir / n);
  std::vector<std::string> names;
  for (detail::step_folder const& s : detail::step_folders(dir.path())) names.push_back(s.name());
  CHECK(names == std::vector<std::string>{"step-10", "step-10.old", "step-2"});
}

TEST_CASE("unfinished and unreadable checkpoints are passed over, each with its reason") {
  tests::scratch_folder const dir;
  CHECK(!latest_checkpoint(dir / "none"));
  exec::detail::make_folders(dir / "step-1");
  exec::detail::make_folders(dir / "step-2");
  tests::write_bytes(dir / "step-2/manifest.json", "{");
  found_checkpoint const found = latest_checkpoint(dir.path());
  CHECK(!found);
  REQUIRE(found.skipped.size() == 2);
  CHECK(found.skipped[0].find("step-2") != std::string::npos);
  CHECK(found.skipped[1].find("no manifest") != std::string::npos);
  CHECK(!detail::is_sound(dir / "step-1"));
  detail::discard(dir.path(), "step-2");
  CHECK(exec::detail::names_in(dir.path()) == std::vector<std::string>{"step-1"});
}

TEST_CASE("what is no folder holds no checkpoints, and is not taken for an empty one") {
  tests::scratch_folder const folder;
  CHECK_FALSE(latest_checkpoint(folder / "nothing"));
  tests::write_bytes(folder / "file", "x");
  CHECK_THROWS_WITH_AS(latest_checkpoint(folder / "file"), doctest::Contains("cannot read the folder"), error);
  CHECK_THROWS_WITH_AS(latest_checkpoint(folder / "file"), doctest::Contains("a path where there is nothing"), error);
}
