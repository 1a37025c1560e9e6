// tests/exec/every_file.test.cpp - every file that the library and its examples write, under every fault: the old one whole or the new one
#include "../../examples/tokens.hpp"
#include "support/effort.hpp"
#include "support/faults.hpp"
#include "support/scratch_folder.hpp"
#include "support/small_run.hpp"
#include <doctest/doctest.h>
#include <functional>
#include <sys/stat.h>
#include <tensorpar/cost/profiled.hpp>
#include <tensorpar/exec/files/parameters_file.hpp>
#include <tensorpar/ir/machine/machine_presets.hpp>
#include <tensorpar/plan/cluster_file.hpp>
#include <tensorpar/plan/plan_file.hpp>
#include <tensorpar/report/chrome_trace.hpp>
#include <tensorpar/report/dot.hpp>

using namespace tests;

namespace {

/// A kind of file. What it holds says which version it is of.
struct kind_of_file {
  char const* name;
  std::function<void(std::string const& path, int version)> write;
  std::function<bool(std::string const& path, int version)> holds;       // may throw
  bool folder = false;
};

/// Of texts that others make, the pages and traces among them: write_whole_file.
kind_of_file of_text(char const* name, std::function<std::string(int)> const& text) {
  return {name, [text](std::string const& path, int version) { tensorpar::core::write_whole_file(path, text(version)); },
          [text](std::string const& path, int version) { return bytes_of_file(path) == text(version); }};
}
std::vector<kind_of_file> every_kind() {
  small_run const run(optimizer_kind::momentum);
  auto const of = [](int version) {
    small_run r(optimizer_kind::momentum);
    r.set(static_cast<u64>(version));
    return r;
  };
  auto const plan_of = [run](int version) {
    plan p = run.p;
    p.model = "version " + std::to_string(version);
    return p;
  };
  auto const cluster_of = [](int version) { return preset(version % 2 ? "summit:1" : "dgx-h100:2"); };
  auto const profiles_of = [](int version) {
    tensorpar::cost::profile_table t;
    for (int i = 0; i < 100; ++i) t.add({{"relu", 7, 4, "f32[" + std::to_string(i) + "] -> f32[1]", "core"}, 1.5 * version, 3});
    return t;
  };
  auto const tokens_of = [](int version) { return std::vector<std::uint16_t>(1000, static_cast<std::uint16_t>(version)); };
  auto const trace_of = [](int version) {
    timeline t;
    for (int i = 0; i < 100; ++i) t.spans.push_back({0, lane::compute, i, "version " + std::to_string(version), 1.0 * i, 1.0 * i + 1});
    return tensorpar::report::chrome_trace(t);
  };
  return {
      {"plan", [=](auto const& path, int v) { write_plan(plan_of(v), path); },
       [=](auto const& path, int v) { return read_plan(path) == plan_of(v); }},
      {"cluster", [=](auto const& path, int v) { write_cluster(cluster_of(v), path); },
       [=](auto const& path, int v) { return read_cluster(path) == cluster_of(v); }},
      {"profiles", [=](auto const& path, int v) { tensorpar::cost::save_profiles(profiles_of(v), path); },
       [=](auto const& path, int v) { return tensorpar::cost::read_profiles(path) == profiles_of(v); }},
      {"parameters", [=](auto const& path, int v) { save_parameters(of(v), path); },
       [=](auto const& path, int v) {
         small_run back = of(0);
         load_parameters(back, path);
         small_run const wanted = of(v);
         for (int x : detail::saved_values(back, 0))
           if (back.at.at(x) != wanted.at.at(x)) return false;
         return true;
       }},
      {"tokens", [=](auto const& path, int v) { tokens::write(tokens_of(v), path); },
       [=](auto const& path, int v) { return tokens::read(path) == tokens_of(v); }},
      of_text("trace", trace_of),
      of_text("picture", [run](int v) { return tensorpar::report::to_dot(run.graph().graph) + "// version " + std::to_string(v) + "\n"; }),
      of_text("page", [](int v) { return "<!DOCTYPE html>" + std::string(20000, static_cast<char>('a' + v)); }),
      {"checkpoint", [=](auto const& path, int v) { save_checkpoint(of(v), path, 1); },
       [=](auto const& path, int v) {
         small_run back = of(0);
         CHECK(load_checkpoint(back, path).skipped.empty());
         return back.step == static_cast<u64>(v) && back.whole();
       },
       true},
  };
}
std::string refusal(std::function<void()> const& work) {
  try {
    work();
  } catch (error const& e) { return e.what(); }
  return "";
}
/// What is in a folder and in those below, byte for byte.
std::map<std::string, std::string> content(std::string const& folder) {
  std::map<std::string, std::string> r;
  for (std::string const& e : entries(folder))
    r[e] = std::filesystem::is_regular_file(folder + "/" + e) ? bytes_of_file(folder + "/" + e) : "";
  return r;
}

}  // namespace

TEST_CASE("a disk that is full, and a folder or a disk that may not be written: an error, and all is as it was") {
  for (kind_of_file const& k : every_kind()) {
    CAPTURE(k.name);
    scratch_folder const dir;
    k.write(dir / "it", 1);
    CHECK(k.holds(dir / "it", 1));
    auto const before = content(dir.path());
    {
      small_files const limit(100);
      CHECK(refusal([&] { k.write(dir / "it", 2); }).find("File too large") != std::string::npos);
      if (!k.folder) CHECK(refusal([&] { k.write(dir / "other", 2); }).find("File too large") != std::string::npos);
    }
    CHECK(content(dir.path()) == before);
    auto const permissions = [&](unsigned mode) {
      if (k.folder) ::chmod((dir / "it").c_str(), mode);
      ::chmod(dir.path().c_str(), mode);
    };
    permissions(0555);                                                     // all may be read, nothing written
    if (!has_users(dir.path())) MESSAGE("skipped: no process of an ordinary user can be had here, so that permissions forbid nothing");
    else CHECK(as_user([&] { return k.holds(dir / "it", 1) &&
                            refusal([&] { k.write(dir / "it", 2); }).find("Permission denied") != std::string::npos; }));
    permissions(0755);
    CHECK(content(dir.path()) == before);
    if (!k.folder) {
      CHECK(refusal([&] { k.write("/dev/full", 2); }).find("No space left on device (at /dev/full)") != std::string::npos);
      CHECK(refusal([&] { k.write("/dev/null", 2); }).empty());
      CHECK(std::filesystem::is_character_file("/dev/null"));
      CHECK(refusal([&] { k.write(dir.path(), 2); }).find("it is a folder") != std::string::npos);
      std::filesystem::create_symlink("it", dir / "link");
      k.write(dir / "link", 3);
      CHECK(std::filesystem::is_symlink(dir / "link"));
      CHECK(k.holds(dir / "it", 3));
      CHECK(entries(dir.path()) == std::vector<std::string>{"it", "link"});
    }
    small_disk const disk(dir / "disk");
    if (!disk) {
      MESSAGE("no file system can be mounted here: full and read-only disks were not tried with ", k.name);
      continue;
    }
    k.write(dir / "disk/it", 1);
    disk.fill();
    auto const full = content(dir / "disk");
    CHECK(refusal([&] { k.write(dir / "disk/it", 2); }).find("No space left on device") != std::string::npos);
    CHECK(content(dir / "disk") == full);
    CHECK(k.holds(dir / "disk/it", 1));
    if (!disk.make_read_only()) continue;
    CHECK(refusal([&] { k.write(dir / "disk/it", 2); }).find("Read-only file system") != std::string::npos);
    CHECK(content(dir / "disk") == full);
  }
}

TEST_CASE("a writer killed at any system call leaves the old file or the new one, and the next writer is not in its way") {
  if (!may_trace()) {
    MESSAGE("skipped: no process may trace another here, so that none is killed at its system calls");
    return;
  }
  int kills = 0;
  for (kind_of_file const& k : every_kind()) {
    CAPTURE(k.name);
    scratch_folder const dir;
    int old = 0, fresh = 0, every = test_effort::wanted() > 1 ? 1 : 5;
    for (int n = 0;; n += every) {
      CAPTURE(n);
      std::filesystem::remove_all(dir / "it");
      k.write(dir / "it", 1);
      bool const done = done_despite_kill([&] { k.write(dir / "it", 2); }, n);
      bool const is_new = k.holds(dir / "it", 2);
      CHECK((is_new || k.holds(dir / "it", 1)));
      ++(is_new ? fresh : old);
      if (done) {
        CHECK(is_new);
        break;
      }
      REQUIRE(n < 2000);
    }
    kills += old + fresh - 1;
    CHECK(old > 0);
    CHECK(fresh > 0);
    k.write(dir / "it", 3);
    CHECK(k.holds(dir / "it", 3));
  }
  MESSAGE(kills << " writers killed");
}

TEST_CASE("two writers of one path: one of them has the last word, whole, and nothing else is left") {
  for (kind_of_file const& k : every_kind()) {
    CAPTURE(k.name);
    scratch_folder const dir;
    k.write(dir / "it", 1);
    auto const names = entries(dir.path());
    for (int turn = 0; turn < test_effort::cases(2); ++turn) {
      pid_t child[2];
      for (int c : {0, 1})
        if ((child[c] = ::fork()) == 0) {
          for (int i = 0; i < 5; ++i)
            if (std::string const why = refusal([&] { k.write(dir / "it", 2 + c); }); !why.empty() && !k.folder) ::_exit(1);
          ::_exit(0);                                                    // of a checkpoint one may say that the other is saving
        }
      for (pid_t c : child) {
        int status = 0;
        ::waitpid(c, &status, 0);
        CHECK(status == 0);
      }
      CHECK((k.holds(dir / "it", 2) || k.holds(dir / "it", 3)));
      if (!k.folder) CHECK(entries(dir.path()) == names);
      if (k.folder)
        for (std::string const& n : entries(dir.path())) CHECK(n.find("/.") == n.npos);
    }
  }
}

TEST_CASE("files that are read: a pipe, a device and a folder are refused at once, and so is a zero byte in what is text") {
  scratch_folder const dir;
  REQUIRE(::mkfifo((dir / "pipe").c_str(), 0666) == 0);
  for (kind_of_file const& k : every_kind()) {
    if (k.folder || k.name == std::string("trace") || k.name == std::string("picture") || k.name == std::string("page")) continue;
    CAPTURE(k.name);
    CHECK(refusal([&] { k.holds(dir / "pipe", 1); }).find("cannot read the file: it is a pipe") == 0);
    CHECK(refusal([&] { k.holds("/dev/zero", 1); }).find("cannot read the file: it is a device") == 0);
    CHECK(refusal([&] { k.holds(dir.path(), 1); }).find("cannot read the file: it is a folder") == 0);
    if (k.name == std::string("parameters") || k.name == std::string("tokens")) continue;
    k.write(dir / "it", 1);
    std::string text = bytes_of_file(dir / "it");
    for (std::size_t at : {std::size_t{0}, text.size() / 2, text.size()}) {
      std::string with = text;
      write_bytes(dir / "it", with.insert(at, 1, '\0'));
      CHECK(refusal([&] { k.holds(dir / "it", 1); }).find("a zero byte in a text (at " + (dir / "it:")) == 0);
    }
  }
}
