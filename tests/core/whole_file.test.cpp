// tests/core/whole_file.test.cpp - whatever fails, the old file or all of the new is there, and nothing beside it
#include <doctest/doctest.h>
#include <signal.h>
#include <set>
#include <support/effort.hpp>
#include <support/faults.hpp>
#include <support/scratch_folder.hpp>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <tensorpar/core/descriptor.hpp>
#include <tensorpar/core/hash.hpp>
#include <tensorpar/core/whole_file.hpp>
#include <thread>

using namespace tensorpar;
using tests::bytes_of_file;
using tests::entries;

namespace {

/// What goes wrong next in this program's calls of the system.
struct { bool folders_unsynced = false, interrupted = false, short_writes = false; long calls = 0; } system_faults;

::mode_t kind_of(std::string const& path) {
  struct ::stat s;
  return ::lstat(path.c_str(), &s) == 0 ? s.st_mode & S_IFMT : 0;
}
unsigned permissions_of(std::string const& path) {
  struct ::stat s;
  return ::stat(path.c_str(), &s) == 0 ? s.st_mode & 07777 : 0;
}
std::string refused(std::string const& path, std::string const& text = "text") {
  try {
    core::write_whole_file(path, text);
  } catch (error const& e) {
    CHECK(e.where() == path);
    CHECK(!e.valid().empty());
    return e.problem();
  }
  return "written";
}

}  // namespace

// The program's own fsync and write stand before the library's.
extern "C" int fsync(int fd) {
  struct ::stat s;
  bool const folder = ::fstat(fd, &s) == 0 && S_ISDIR(s.st_mode);
  if (folder && system_faults.folders_unsynced) return errno = EINVAL, -1;
  if (system_faults.interrupted && system_faults.calls++ % 2 == 0) return errno = EINTR, -1;
  return static_cast<int>(::syscall(SYS_fsync, fd));
}
extern "C" ssize_t write(int fd, void const* from, std::size_t n) {
  if (system_faults.interrupted && system_faults.calls++ % 2 == 0) return errno = EINTR, -1;
  return ::syscall(SYS_write, fd, from, system_faults.short_writes && n > 3 ? 3 : n);
}

TEST_CASE("a file is new or replaced, and there is nothing beside it") {
  tests::scratch_folder const dir;
  for (std::string const& text : {std::string("first"), std::string(), std::string(100000, 'x') + '\0' + "y"}) {
    core::write_whole_file(dir / "file", text);
    CHECK(bytes_of_file(dir / "file") == text);
    CHECK(entries(dir.path()) == std::vector<std::string>{"file"});
  }
  std::string const longest(255, 'n');
  core::write_whole_file(dir / longest, "long");
  CHECK(bytes_of_file(dir / longest) == "long");
  CHECK(refused(dir / std::string(256, 'n')).starts_with("cannot write the file: File name too long"));
  CHECK(entries(dir.path()) == std::vector<std::string>{"file", longest});
  std::string deep = dir.path();                                  // a path to the system's limit: that of what is made beside it is longer
  while (deep.size() + 250 < 4090) deep += "/" + std::string(200, 'd');
  deep += "/" + std::string(4093 - deep.size() - 1, 'e');
  for (std::size_t i = dir.path().size(); i != deep.npos; i = deep.find('/', i + 1)) ::mkdir(deep.substr(0, i).c_str(), 0777);
  ::mkdir(deep.c_str(), 0777);
  core::write_whole_file(deep + "/x", "deep");
  CHECK(bytes_of_file(deep + "/x") == "deep");
}

TEST_CASE("links are followed and stay; what is no file is written in place or refused, never replaced") {
  tests::scratch_folder const dir;
  ::mkdir((dir / "folder").c_str(), 0777);
  tests::write_bytes(dir / "folder/target", "old");
  REQUIRE(::symlink("folder/target", (dir / "relative").c_str()) == 0);
  REQUIRE(::symlink((dir / "folder/target").c_str(), (dir / "absolute").c_str()) == 0);
  REQUIRE(::symlink("../chain", (dir / "folder/back").c_str()) == 0);
  REQUIRE(::symlink("relative", (dir / "chain").c_str()) == 0);
  REQUIRE(::symlink("folder/made", (dir / "dangling").c_str()) == 0);
  REQUIRE(::symlink("nowhere/made", (dir / "lost").c_str()) == 0);
  REQUIRE(::symlink("loop", (dir / "loop").c_str()) == 0);
  REQUIRE(::symlink("folder", (dir / "to-folder").c_str()) == 0);
  REQUIRE(::symlink("/dev/null", (dir / "to-null").c_str()) == 0);
  REQUIRE(::mkfifo((dir / "pipe").c_str(), 0666) == 0);
  auto const before = entries(dir.path());
  for (char const* name : {"relative", "absolute", "folder/back", "chain"}) {
    CAPTURE(name);
    core::write_whole_file(dir / name, name);
    CHECK(kind_of(dir / name) == S_IFLNK);
    CHECK(bytes_of_file(dir / "folder/target") == name);
  }
  core::write_whole_file(dir / "dangling", "made");
  CHECK(bytes_of_file(dir / "folder/made") == "made");
  core::write_whole_file(dir / "to-folder/in-it", "in it");
  CHECK(bytes_of_file(dir / "folder/in-it") == "in it");
  for (char const* name : {"folder", "folder/", "to-folder", "to-folder/", "loop", "lost", "pipe", "none/file", "folder/target/below",
                           "new/", ".", "folder/.."}) {
    CAPTURE(name);
    auto const kind = kind_of(dir / name);
    CHECK(refused(dir / name).starts_with("cannot write"));
    CHECK(kind_of(dir / name) == kind);
  }
  CHECK(refused("") == "cannot write a file without a name");
  CHECK(refused(dir / "pipe") == "cannot write the file: it is a pipe that nobody reads");
  CHECK(refused(dir / "folder") == "cannot write the file: it is a folder");
  core::write_whole_file(dir / "to-null", "gone");
  CHECK(kind_of(dir / "to-null") == S_IFLNK);
  CHECK(kind_of("/dev/null") == S_IFCHR);
  CHECK(refused("/dev/full") == "cannot write the file: No space left on device");

  core::detail::descriptor const reader = core::detail::open_at(AT_FDCWD, (dir / "pipe").c_str(), O_RDONLY | O_NONBLOCK);
  core::write_whole_file(dir / "pipe", "through");
  char got[16];
  CHECK(std::string(got, static_cast<std::size_t>(::read(reader.get(), got, sizeof got))) == "through");
  CHECK(kind_of(dir / "pipe") == S_IFIFO);
  std::string const open_file = "/dev/fd/" + std::to_string(reader.get());
  CHECK(refused(open_file) == "written");                         // a name of the pipe
  auto with_new = before;
  with_new.insert(with_new.end(), {"folder/in-it", "folder/made"});
  std::sort(with_new.begin(), with_new.end());
  CHECK(entries(dir.path()) == with_new);

  tests::write_bytes(dir / "printed", "printed before\n");        // the shell's: program --plan /dev/stdout > printed
  core::detail::descriptor const out = core::detail::open_at(AT_FDCWD, (dir / "printed").c_str(), O_WRONLY | O_APPEND);
  core::write_whole_file("/dev/fd/" + std::to_string(out.get()), "plan\n");
  CHECK(core::detail::write_all(out.get(), "printed after\n", 14));
  CHECK(bytes_of_file(dir / "printed") == "printed before\nplan\nprinted after\n");

  if (::mknod((dir / "device").c_str(), S_IFCHR | 0666, makedev(1, 3)) != 0) {
    MESSAGE("no device can be made here: /dev/null alone was tried");
    return;
  }
  core::write_whole_file(dir / "device", "gone");
  CHECK(kind_of(dir / "device") == S_IFCHR);
  if (::mknod((dir / "disk").c_str(), S_IFBLK | 0600, makedev(7, 250)) == 0)
    CHECK(refused(dir / "disk") == "cannot write the file: it is a device");
}

TEST_CASE("permissions: those of the file that is replaced, else what the process's mask gives") {
  tests::scratch_folder const dir;
  for (unsigned mask : {0u, 022u, 027u, 077u}) {
    std::string const path = dir / std::to_string(mask);
    tests::file_mask const lacking(mask);
    core::write_whole_file(path, "new");
    CHECK(permissions_of(path) == (0666 & ~mask));
    for (unsigned mode : {0600u, 0640u, 0666u, 0755u}) {
      ::chmod(path.c_str(), mode);
      core::write_whole_file(path, "again");
      CHECK(permissions_of(path) == mode);
    }
  }
  core::write_whole_file(dir / "fixed", "old");
  ::chmod((dir / "fixed").c_str(), 0444);
  core::write_whole_file(dir / "open", "old");
  ::chmod((dir / "open").c_str(), 0666);
  ::chmod(dir.path().c_str(), 0777);                              // nothing but the file's own permissions can forbid it
  if (!tests::has_users(dir.path())) {
    MESSAGE("skipped: no process of an ordinary user can be had here, so that permissions forbid nothing");
    return;
  }
  auto const before = entries(dir.path());
  CHECK(tests::as_user([&] { return refused(dir / "open") == "written"; }));
  CHECK(tests::as_user([&] { return refused(dir / "fixed") == "cannot write the file: Permission denied"; }));
  ::chmod(dir.path().c_str(), 0555);
  CHECK(tests::as_user([&] { return refused(dir / "none") == "cannot write the file: Permission denied"; }));
  ::chmod(dir.path().c_str(), 0333);                              // may be used, not read
  CHECK(tests::as_user([&] { return refused(dir / "unread") == "written"; }));
  ::chmod(dir.path().c_str(), 0777);
  CHECK(bytes_of_file(dir / "fixed") == "old");
  ::unlink((dir / "unread").c_str());
  CHECK(entries(dir.path()) == before);
}

TEST_CASE("interrupted calls and short writes are repeated, folders that cannot be synced are no failure") {
  tests::scratch_folder const dir;
  for (int k = 0; k < 8; ++k) {
    system_faults = {(k & 1) != 0, (k & 2) != 0, (k & 4) != 0, 0};
    std::string const text = std::to_string(k) + std::string(1000, 'x');
    core::write_whole_file(dir / "file", text);
    system_faults = {};
    CHECK(bytes_of_file(dir / "file") == text);
  }
  CHECK(entries(dir.path()).size() == 1);
}

TEST_CASE("a full disk and an exception leave the old file and nothing else") {
  tests::scratch_folder const dir;
  core::write_whole_file(dir / "file", "old");
  {
    tests::small_files const limit(4096);
    CHECK(refused(dir / "file", std::string(10000, 'x')) == "cannot write the file: File too large");
    CHECK(refused(dir / "other", std::string(10000, 'x')) == "cannot write the file: File too large");
    core::whole_file out(dir / "file");
    CHECK_THROWS_AS(out.write(std::string(10000, 'x')), error);
    CHECK(entries(dir.path()) == std::vector<std::string>{"file"});        // at once, not when the writer goes
    CHECK_THROWS_AS(out.write("x"), error);
    CHECK_THROWS_AS(out.finish(), error);
  }
  try {
    core::whole_file out(dir / "file");
    out.write("new");
    throw 1;
  } catch (int) {}
  core::whole_file moved(dir / "file");
  moved.write("half");
  core::whole_file(std::move(moved)).write("more");
  CHECK(bytes_of_file(dir / "file") == "old");
  CHECK(entries(dir.path()) == std::vector<std::string>{"file"});
  tests::small_disk const disk(dir / "disk");
  if (!disk) {
    MESSAGE("no file system can be mounted here: a full disk was not tried");
    return;
  }
  core::write_whole_file(dir / "disk/file", "old");
  CHECK(refused(dir / "disk/file", std::string(1 << 20, 'x')) == "cannot write the file: No space left on device");
  CHECK(bytes_of_file(dir / "disk/file") == "old");
  CHECK(entries(dir / "disk") == std::vector<std::string>{"file"});
}

TEST_CASE("a writer in another folder by the time it finishes still writes where it began") {
  tests::scratch_folder const dir, elsewhere;
  std::string const here = std::filesystem::current_path();
  REQUIRE(::chdir(dir.path().c_str()) == 0);
  core::whole_file out("file");
  REQUIRE(::chdir(elsewhere.path().c_str()) == 0);
  out.write("text");
  out.finish();
  REQUIRE(::chdir(here.c_str()) == 0);
  CHECK(bytes_of_file(dir / "file") == "text");
  CHECK(entries(elsewhere.path()).empty());
}

TEST_CASE("who prints to a standard output that is closed does not print into the file") {
  tests::scratch_folder const dir;
  pid_t const child = ::fork();
  if (child == 0) {
    ::close(0), ::close(1), ::close(2);
    try {
      core::whole_file out(dir / "file");
      core::detail::write_all(1, "printed", 7);
      core::detail::write_all(2, "printed", 7);
      out.write("text");
      out.finish();
    } catch (...) { ::_exit(1); }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
  CHECK(bytes_of_file(dir / "file") == "text");
}

TEST_CASE("threads and processes that write one file at once: one of them has the last word, whole") {
  tests::scratch_folder const dir;
  auto const text_of = [](int writer) { return std::string(30000, static_cast<char>('a' + writer)); };
  auto const write = [&](int writer) {
    for (int k = 0; k < 10; ++k) core::write_whole_file(dir / "file", text_of(writer));
  };
  for (int turn = 0; turn < test_effort::cases(4); ++turn) {
    std::vector<pid_t> children;
    for (int c = 0; c < 3; ++c)
      if (pid_t const child = ::fork(); child == 0) {
        try {
          write(c);
        } catch (...) { ::_exit(1); }
        ::_exit(0);
      } else {
        children.push_back(child);
      }
    std::vector<std::thread> team;
    for (int t = 3; t < 6; ++t) team.emplace_back(write, t);
    for (std::thread& t : team) t.join();
    for (pid_t c : children) {
      int status = 0;
      ::waitpid(c, &status, 0);
      CHECK(status == 0);
    }
    std::string const got = bytes_of_file(dir / "file");
    REQUIRE(!got.empty());
    CHECK(got == text_of(got[0] - 'a'));
    CHECK(entries(dir.path()) == std::vector<std::string>{"file"});
  }
}

TEST_CASE("names come from the system's randomness: a copy of a process draws others") {
  std::set<u64> seen;
  int pipes[2];
  REQUIRE(::pipe(pipes) == 0);
  for (int c = 0; c < 4; ++c)
    if (::fork() == 0) {
      for (int k = 0; k < 8; ++k) {
        u64 const x = core::detail::random_bits();
        core::detail::write_all(pipes[1], &x, sizeof x);
      }
      ::_exit(0);
    }
  while (::wait(nullptr) > 0) {}
  for (int k = 0; k < 32; ++k) {
    u64 x = 0;
    REQUIRE(::read(pipes[0], &x, sizeof x) == sizeof x);
    seen.insert(x);
  }
  CHECK(seen.size() == 32);
  ::close(pipes[0]), ::close(pipes[1]);
}
