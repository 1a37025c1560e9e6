// tests/exec/files/files.test.cpp - files come back as they were written; what cannot be read or written is one clear error
#include <doctest/doctest.h>
#include <support/scratch_folder.hpp>
#include <tensorpar/exec/files/files.hpp>

using namespace tensorpar;

TEST_CASE("what is written is read, with the same size and hash") {
  tests::scratch_folder const dir;
  exec::detail::make_folders(dir / "a/b");
  REQUIRE(exec::detail::is_folder(dir / "a/b"));
  exec::output_file out(dir / "a/b/x");
  out.write("one, ");
  out.write("two");
  out.finish();
  exec::input_file const in(dir / "a/b/x");
  CHECK(in.text() == "one, two");
  CHECK(in.bytes() == out.bytes());
  CHECK(in.hash() == out.hash());
  char piece[3];
  in.read_at(5, piece, 3);
  CHECK(std::string(piece, 3) == "two");
  CHECK_THROWS_AS(in.read_at(6, piece, 3), error);
  exec::detail::rename_path(dir / "a/b/x", dir / "a/b/y");
  CHECK(exec::detail::names_in(dir / "a/b") == std::vector<std::string>{"y"});
  exec::detail::remove_folder(dir / "a/b");
  CHECK(!exec::detail::exists(dir / "a/b"));
}

TEST_CASE("refusals") {
  tests::scratch_folder const dir;
  CHECK_THROWS_AS(exec::input_file(dir / "none"), error);
  CHECK_THROWS_AS(exec::input_file{dir.path()}, error);
  CHECK_THROWS_AS(exec::output_file(dir / "none/x"), error);
  tests::write_bytes(dir / "file", "x");
  CHECK_THROWS_AS(exec::detail::make_folders(dir / "file/below"), error);
  CHECK_THROWS_AS(exec::detail::rename_path(dir / "none", dir / "other"), error);
  CHECK_THROWS_AS(exec::detail::folder_lock{dir / "none"}, error);
  exec::detail::folder_lock const first(dir.path());
  CHECK_THROWS_AS(exec::detail::folder_lock{dir.path()}, error);
}
