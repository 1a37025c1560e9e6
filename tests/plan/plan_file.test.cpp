// tests/plan/plan_file.test.cpp - plans survive the disk, and a failed write leaves what was there
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <plan/random_plan.hpp>
#include <random>
#include <support/scratch_folder.hpp>
#include <tensorpar/plan/plan_file.hpp>
#include <tensorpar/plan/plan_file_text.hpp>

using namespace tensorpar;

namespace {

struct folder {
  tests::scratch_folder at;
  std::string operator/(char const* name) const { return at / name; }
  std::size_t files() const {
    std::size_t n = 0;
    for (auto const& e : std::filesystem::directory_iterator(at.path())) { (void)e; ++n; }
    return n;
  }
};

}  // namespace

TEST_CASE("a plan written and read is the same, and nothing else is left behind") {
  folder const f;
  std::mt19937 r(1);
  for (int turn = 0; turn < 20; ++turn) {
    plan const p = test::random_plan(r);
    write_plan(p, f / "plan.json");
    CHECK(read_plan(f / "plan.json") == p);
  }
  CHECK(f.files() == 1);
}

TEST_CASE("errors carry the path") {
  folder const f;
  auto where = [](std::string const& path) {
    try {
      read_plan(path);
    } catch (error const& e) {
      return e.where();
    }
    return std::string("accepted");
  };
  CHECK(where(f / "none.json") == f / "none.json");
  CHECK(where(f.at.path()) == f.at.path());
  std::mt19937 r(2);
  write_plan(test::random_plan(r), f / "cut.json");
  auto const size = std::filesystem::file_size(f / "cut.json");
  std::filesystem::resize_file(f / "cut.json", size / 2);
  CHECK(where(f / "cut.json").rfind((f / "cut.json") + ":", 0) == 0);
}

TEST_CASE("a write that fails leaves the old file") {
  folder const f;
  std::mt19937 r(3);
  plan const p = test::random_plan(r);
  std::filesystem::create_directory(f / "taken");                     // a folder stands where the file should go: rename refuses
  CHECK_THROWS_AS(write_plan(p, f / "taken"), error);
  CHECK(std::filesystem::is_directory(f / "taken"));
  CHECK(f.files() == 1);
  CHECK_THROWS_AS(write_plan(p, f / "no_such_folder/plan.json"), error);
  write_plan(p, f / "plan.json");
  plan broken = p;
  broken.cost = -1.0 / 0.0;
  CHECK_THROWS_AS(write_plan(broken, f / "plan.json"), error);
  broken = p;
  broken.optimizer.momentum = 7;                                      // what reading would refuse, writing refuses in the same words
  CHECK_THROWS_WITH_AS(write_plan(broken, f / "plan.json"), doctest::Contains("plan.json: optimizer.momentum); valid: a number from"), error);
  broken = p;
  broken.cluster.links[0].bandwidth = -1e9;
  CHECK_THROWS_WITH_AS(write_plan(broken, f / "plan.json"), doctest::Contains("plan.json: cluster.links[0].bandwidth); valid: "), error);
  CHECK(read_plan(f / "plan.json") == p);
}
