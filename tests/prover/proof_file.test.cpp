// tests/prover/proof_file.test.cpp - verdicts are kept, believed for the rule they are of, and an interrupted run goes on
#include <tensorpar/prover/proof_file.hpp>
#include <doctest/doctest.h>

#include <filesystem>
#include <support/faults.hpp>
#include <support/scratch_folder.hpp>
#include <sys/stat.h>
#include <tensorpar/prover/find/make_rules.hpp>

using namespace tensorpar;
using namespace tensorpar::prover;
namespace fs = std::filesystem;

namespace {
struct folder {
  tests::scratch_folder made;
  fs::path path = made.path();
  std::string file() const { return (path / "proofs").string(); }
};
std::vector<family> families() {
  return {make_family("functions", "x:ab y:ab", "d=0,1 k ?f", "?f(_); add(_,_); partition{d,k}(_); transpose{0,1}(_)", 2)};
}
std::string all_of(rule_making const& m) {
  std::string s;
  for (auto const* list : {&m.rules, &m.unproved})
    for (made_rule const& r : *list) {
      s += rewrite::spell(r.what) + (r.implied ? " implied " : " ") + std::to_string(r.proved.cases) + r.proved.open;
      for (int a : r.proved.used) s += " " + std::to_string(a);
      s += "\n";
    }
  return s;
}
/// Counts what is asked for and was known.
struct counting final : proof_store {
  proof_file& file;
  mutable std::atomic<int> known = 0, tried = 0;
  explicit counting(proof_file& f) : file(f) {}
  std::optional<stored_proof> find(u64 key, rewrite::rule const& asked) const override {
    auto p = file.find(key, asked);
    if (p) ++known;
    return p;
  }
  void add(u64 key, rewrite::rule const& asked, stored_proof const& p) override {
    ++tried;
    file.add(key, asked, p);
  }
};
}  // namespace

TEST_CASE("a second run proves nothing and makes the same; a run that was cut off goes on") {
  folder const f;
  std::string const plain = all_of(make_rules(families()));
  making_options o;
  int first = 0;
  {
    proof_file file(f.file());
    counting c(file);
    o.store = &c;
    CHECK(all_of(make_rules(families(), o)) == plain);
    first = c.tried;
    CHECK(first > 10);
  }
  {
    proof_file file(f.file());
    CHECK(file.size() > 10);
    counting c(file);
    o.store = &c;
    CHECK(all_of(make_rules(families(), o)) == plain);
    CHECK(c.tried == 0);
    CHECK(c.known >= first);
  }
  fs::resize_file(f.file(), fs::file_size(f.file()) / 2);        // in the middle of a line
  proof_file file(f.file());
  counting c(file);
  o.store = &c;
  CHECK(all_of(make_rules(families(), o)) == plain);
  CHECK(c.tried > 0);
  CHECK(c.tried < first);
}

TEST_CASE("a verdict is of one rule under one set of axioms and limits") {
  rewrite::rule const r = rewrite::parse_rule("add(x, y) => add(y, x)"), s = rewrite::parse_rule("mul(x, y) => mul(y, x)");
  proof_options few, fewer = few;
  fewer.without.assign(std::size(axioms), false);
  CHECK(proof_key(r, few) == proof_key(r, fewer));
  fewer.without[3] = true;
  CHECK(proof_key(r, few) != proof_key(r, fewer));
  CHECK(proof_key(r, few) != proof_key(s, few));
  folder const f;
  proof_file file(f.file());
  file.add(7, r, {{proof_status::proved, 3, {4}, {}}, r});
  REQUIRE(file.find(7, r));
  CHECK(file.find(7, r)->verdict.cases == 3);
  CHECK(!file.find(7, s));               // two rules with one hash
  CHECK(!file.find(8, r));
}

TEST_CASE("a full disk ends the run with an error, keeps whole lines, and no thread is left behind") {
  folder const f;
  making_options o;
  o.threads = 3;
  {
    proof_file file(f.file());
    o.store = &file;
    tests::small_files const limit(1500);
    CHECK_THROWS_WITH_AS(make_rules(families(), o), doctest::Contains("the file cannot be written: File too large"), error);
  }
  std::string const kept = tests::bytes_of_file(f.file());
  CHECK(kept.size() > 100);
  CHECK(kept.size() <= 1500);
  CHECK(kept.ends_with("}\n"));
  proof_file file(f.file());                                       // and the run goes on
  std::size_t const before = file.size();
  CHECK(before > 0);
  o.store = &file;
  CHECK(all_of(make_rules(families(), o)) == all_of(make_rules(families())));
  CHECK(file.size() > before);
}

TEST_CASE("a process killed at any system call of adding leaves whole lines, or one that is tried again") {
  rewrite::rule const r = rewrite::parse_rule("add(x, y) => add(y, x)");
  if (!tests::may_trace()) {
    MESSAGE("skipped: no process may trace another here, so that none is killed at its system calls");
    return;
  }
  for (int n = 0;; ++n) {
    folder const f;
    auto const add = [&](u64 from, u64 to) {
      proof_file file(f.file());
      for (u64 k = from; k < to; ++k) file.add(k, r, {{proof_status::proved, 3, {4}, {}}, r});
    };
    add(0, 2);
    bool const done = tests::done_despite_kill([&] { add(2, 4); }, n);
    proof_file file(f.file());
    CHECK(file.size() >= 2);
    CHECK(file.size() <= 4);
    if (done) {
      CHECK(file.size() == 4);
      break;
    }
    REQUIRE(n < 200);
  }
}

TEST_CASE("a file, a folder and a disk that may not be written, and a disk that is full: an error, and the verdicts are as they were") {
  rewrite::rule const r = rewrite::parse_rule("add(x, y) => add(y, x)");
  auto const add = [&](std::string const& path, u64 from, u64 to) -> std::string {
    try {
      proof_file file(path);
      for (u64 k = from; k < to; ++k) file.add(k, r, {{proof_status::proved, 3, {4}, {}}, r});
    } catch (error const& e) { return e.what(); }
    return "added";
  };
  auto const says = [](std::string const& said, char const* words) { return said.find(words) != std::string::npos; };
  folder const f;
  CHECK(add(f.file(), 0, 2) == "added");
  std::string const kept = tests::bytes_of_file(f.file());
  fs::permissions(f.path, fs::perms{0777});
  if (tests::has_users(f.path.string())) {
    fs::permissions(f.file(), fs::perms{0666});
    CHECK(tests::as_user([&] { return add(f.file(), 0, 2) == "added"; }));
    std::string const twice = tests::bytes_of_file(f.file());
    fs::permissions(f.file(), fs::perms{0444});
    CHECK(tests::as_user([&] { return says(add(f.file(), 2, 3), "Permission denied"); }));
    fs::permissions(f.path, fs::perms{0555});
    CHECK(tests::as_user([&] { return says(add((f.path / "new").string(), 0, 1), "Permission denied"); }));
    fs::permissions(f.path, fs::perms{0755});
    CHECK(tests::bytes_of_file(f.file()) == twice);
    CHECK(tests::entries(f.path.string()) == std::vector<std::string>{"proofs"});
  } else {
    MESSAGE("skipped: no process of an ordinary user can be had here, so that permissions forbid nothing");
  }
  std::string const at = (f.path / "disk").string(), on_disk = at + "/proofs";
  tests::small_disk const disk(at);
  if (!disk) {
    MESSAGE("skipped: no file system can be mounted here, so that full and read-only disks were not tried");
    return;
  }
  CHECK(add(on_disk, 0, 2) == "added");
  disk.fill();
  CHECK(says(add(on_disk, 2, 200), "No space left on device"));        // some fit into the last page
  std::string const full = tests::bytes_of_file(on_disk);
  CHECK(full.starts_with(kept));
  CHECK(full.ends_with("}\n"));
  CHECK(proof_file(on_disk).size() >= 2);
  if (!disk.make_read_only()) return;
  CHECK(says(add(on_disk, 2, 3), "Read-only file system"));
  CHECK(tests::bytes_of_file(on_disk) == full);
}

TEST_CASE("one process at a time has the file; pipes, devices and folders are none") {
  folder const f;
  proof_file const first(f.file());
  CHECK_THROWS_WITH_AS(proof_file(f.file()), doctest::Contains("another process keeps its verdicts here"), error);
  REQUIRE(::mkfifo((f.path / "pipe").c_str(), 0666) == 0);
  CHECK_THROWS_WITH_AS(proof_file((f.path / "pipe").string()), doctest::Contains("it is a pipe"), error);
  CHECK_THROWS_WITH_AS(proof_file("/dev/null"), doctest::Contains("it is a device"), error);
  CHECK_THROWS_WITH_AS(proof_file(f.path.string()), doctest::Contains("cannot be written: Is a directory"), error);
}

TEST_CASE("a file of something else is refused with its line") {
  folder const f;
  auto refused = [&](std::string const& text, char const* where) {
    std::ofstream(f.file(), std::ios::binary) << text;
    CHECK_THROWS_WITH_AS(proof_file{f.file()}, doctest::Contains(where), error);
    std::ifstream in(f.file(), std::ios::binary);
    CHECK(std::string(std::istreambuf_iterator<char>(in), {}) == text);   // and left as it was
  };
  std::string const good =
      R"_({"key":"7","rule":"add(x, y) => add(y, x)","status":"proved","cases":1,"axioms":["add commutes"],)_"
      R"_("proved":"add(x, y) => add(y, x)","open":""})_";
  refused("{}\n", ":1");
  refused(good + "\nnonsense\n", ":2");
  refused(good + "\n[1]\n", ":2");
  refused(std::string(good).replace(good.find("add commutes"), 12, "no such one") + "\n", ":1");
  refused(std::string(good).replace(good.find("\"proved\",\"cases"), 8, "\"maybe\"") + "\n", ":1");
  std::ofstream(f.file(), std::ios::binary) << good << "\n";
  CHECK(proof_file(f.file()).size() == 1);
  CHECK_THROWS_WITH_AS(proof_file{(f.path / "none" / "proofs").string()}, doctest::Contains("cannot be written"), error);
}
