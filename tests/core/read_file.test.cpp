// tests/core/read_file.test.cpp - regular files are read to their end, all else is refused without waiting
#include <doctest/doctest.h>
#include <support/scratch_folder.hpp>
#include <sys/stat.h>
#include <tensorpar/core/read_file.hpp>

using namespace tensorpar;

TEST_CASE("bytes by position and all of them") {
  tests::scratch_folder const dir;
  std::string const all = "one\ntwo\nthr\0ee" + std::string(10000, 'x');
  tests::write_bytes(dir / "file", all);
  core::readable_file const f(dir / "file");
  CHECK(f.bytes() == all.size());
  CHECK(f.text() == all);
  CHECK(core::read_file(dir / "file") == all);
  char two[3];
  f.read_at(4, two, 3);
  CHECK(std::string(two, 3) == "two");
  CHECK_THROWS_AS(f.read_at(all.size() - 1, two, 3), error);
  REQUIRE(::symlink("file", (dir / "link").c_str()) == 0);
  CHECK(core::read_file(dir / "link") == all);
  tests::write_bytes(dir / "empty", "");
  CHECK(core::read_file(dir / "empty").empty());
  if (struct ::stat s; ::stat("/proc/self/status", &s) == 0)
    CHECK(core::read_file("/proc/self/status").size() > 10);   // says that it has 0 bytes
  tests::write_bytes(dir / "file", "less");                     // by now
  CHECK(core::readable_file(f.path()).text() == "less");
  CHECK(f.text() == "less");
}

TEST_CASE("pipes, devices and folders are refused at once, with what they are") {
  tests::scratch_folder const dir;
  REQUIRE(::mkfifo((dir / "pipe").c_str(), 0666) == 0);
  REQUIRE(::symlink("pipe", (dir / "link").c_str()) == 0);
  auto problem = [](std::string const& path) {
    try {
      core::read_file(path, "what would do");
    } catch (error const& e) {
      CHECK(e.where() == path);
      CHECK(e.valid() == "what would do");
      return e.problem();
    }
    return std::string("read");
  };
  CHECK(problem(dir / "pipe") == "cannot read the file: it is a pipe");
  CHECK(problem(dir / "link") == "cannot read the file: it is a pipe");
  CHECK(problem(dir.path()) == "cannot read the file: it is a folder");
  CHECK(problem("/dev/zero") == "cannot read the file: it is a device");
  CHECK(problem("/dev/null") == "cannot read the file: it is a device");
  CHECK(problem(dir / "none").starts_with("cannot read the file: "));
  CHECK(problem(dir / "none/below").starts_with("cannot read the file: "));
}

TEST_CASE("a zero byte in a text is refused with its place") {
  tests::scratch_folder const dir;
  tests::write_bytes(dir / "file", std::string("one\ntw\0o", 8));
  CHECK_THROWS_WITH_AS(core::read_text(dir / "file"), doctest::Contains((dir / "file" + ":2:3").c_str()), error);
  tests::write_bytes(dir / "file", "one\ntwo");
  CHECK(core::read_text(dir / "file") == "one\ntwo");
  CHECK(core::place_in_text("ab\ncd", 4, "f") == "f:2:2");
}
