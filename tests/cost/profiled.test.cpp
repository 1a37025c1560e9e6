// tests/cost/profiled.test.cpp - measured operators: keys, file, damage, fall-back and refusal
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/cost/profiled.hpp>
#include <tensorpar/ir/machine/machine_presets.hpp>

#include <filesystem>
#include <random>

#include "support/laws/cost_model.hpp"
#include "support/scratch_folder.hpp"

using namespace tensorpar;

namespace {
cost::profile_table some_profiles() {
  cost::profile_table t;
  std::mt19937_64 random(9);
  for (i64 rows : {8, 64})
    for (auto const& o : laws::some_operators(rows))
      t.add({cost::profile_key_of(o.query(4, kinds::logical())), std::exp(-static_cast<double>(random() % 20000) / 1000),
             1 + static_cast<i64>(random() % 100)});
  return t;
}
std::string complaint_about(std::string const& text) {
  try {
    cost::parse_profiles(text, "p.txt");
  } catch (error const& e) {
    CHECK(e.where().find("p.txt:") == 0);
    return e.what();
  }
  return "accepted";
}
}  // namespace

TEST_CASE("laws, but for those that measurements may break") {
  machine const m = preset("logical-2x2");
  laws::check_cost_model(cost::profiled<cost::analytical>{},
                         m);                                           // nothing measured: the fall-back's
  laws::check_cost_model(cost::profiled<cost::analytical>{some_profiles()}, m, {.monotone = false, .keep_is_a_copy_at_most = false});
}

TEST_CASE("a key tells apart operator, attributes, extents, scalar and device, and nothing else") {
  shape const x{dim(8), dim(4)}, y{dim(4), dim(8)}, named{axis("batch")(8), axis("features")(4)};
  device_kind const a = kinds::logical(), b = kinds::t4();
  op::any_op const o = relu{}, p = scale{2}, q = scale{3};
  auto key = [](op::any_op const& op, shape const& s, i64 bytes, device_kind const& k) {
    return cost::profile_key_of({op, {&s, 1}, {&s, 1}, bytes, k});
  };
  std::set<cost::profile_key> const all{key(o, x, 4, a), key(p, x, 4, a), key(q, x, 4, a), key(o, y, 4, a), key(o, x, 8, a),
                                        key(o, x, 4, b)};
  CHECK(all.size() == 6);
  CHECK(key(o, x, 4, a) == key(relu{}, named, 4, a));
  CHECK(key(o, x, 4, a).shapes == "f32[8,4] -> f32[8,4]");
  auto const two = laws::some_operators(8)[4];                                                 // add
  CHECK(cost::profile_key_of(two.query(4, a)).shapes == "f32[8,64] f32[8,64] -> f32[8,64]");
}

TEST_CASE("a measured operator has its median; others are the fall-back's and noted, or refused") {
  auto const ops = laws::some_operators(8);
  device_kind const k = kinds::logical();
  cost::profile_table t;
  t.add({cost::profile_key_of(ops[0].query(4, k)), 0.125, 7});
  cost::profiled<cost::analytical> const lenient{t};
  CHECK(lenient.seconds(ops[0].query(4, k)) == 0.125);
  CHECK(lenient.misses().empty());
  CHECK(lenient.seconds(ops[1].query(4, k)) == cost::analytical{}.seconds(ops[1].query(4, k)));
  CHECK(lenient.seconds(ops[0].query(8, k)) == cost::analytical{}.seconds(ops[0].query(8, k)));
  lenient.seconds(ops[1].query(4, k));
  CHECK(lenient.misses() == std::set<cost::profile_key>{cost::profile_key_of(ops[1].query(4, k)),
                                                        cost::profile_key_of(ops[0].query(8, k))});
  cost::profiled<cost::analytical> const strict{t, {}, cost::when_missing::refuse};
  CHECK(strict.seconds(ops[0].query(4, k)) == 0.125);
  CHECK_THROWS_AS(strict.seconds(ops[1].query(4, k)), error);
  try {
    strict.seconds(ops[3].query(4, k));
  } catch (error const& e) {
    CHECK(e.problem() == "no measurement of relu on f32[8,64] -> f32[8,64]");
    CHECK(e.where() == "profiles of device \"logical\"");
  }
}

TEST_CASE("the table survives its file to the last bit, and is written the same way twice") {
  cost::profile_table const t = some_profiles();
  CHECK(t.size() == 22);
  std::string const text = cost::write_profiles(t);
  CHECK(cost::parse_profiles(text, "p.txt") == t);
  CHECK(cost::write_profiles(cost::parse_profiles(text, "p.txt")) == text);
  CHECK(cost::parse_profiles(cost::write_profiles({}), "p.txt") == cost::profile_table{});
  tests::scratch_folder const folder;
  std::string const path = folder / "profiles";
  cost::save_profiles(t, path);
  CHECK(cost::read_profiles(path) == t);
  CHECK_FALSE(std::filesystem::exists(path + ".part"));
  std::filesystem::remove(path);
  CHECK_THROWS_AS(cost::read_profiles(path), error);
  CHECK_THROWS_AS(cost::save_profiles(t, path + "/missing/file"), error);
  cost::profile_table odd;
  odd.add({{"relu", 1, 4, "->", "two\nlines"}, 1, 1});
  CHECK_THROWS_AS(cost::write_profiles(odd), error);
}

TEST_CASE("a measurement replaces an older one of the same key") {
  cost::profile_table t;
  cost::profile_key const k{"relu", 1, 4, "f32[1] -> f32[1]", "x"};
  t.add({k, 1, 1});
  t.add({k, 2, 5});
  CHECK(t.size() == 1);
  CHECK(t.find(k)->seconds == 2);
}

TEST_CASE("a damaged or foreign file is refused: every cut, every changed byte") {
  cost::profile_table t;
  auto const ops = laws::some_operators(8);
  for (std::size_t i = 0; i < 3; ++i) t.add({cost::profile_key_of(ops[i].query(4, kinds::t4())), 1e-3 * static_cast<double>(i + 1), 5});
  std::string const text = cost::write_profiles(t);
  for (std::size_t n = 0; n < text.size(); ++n) CHECK(complaint_about(text.substr(0, n)) != "accepted");
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string s = text;
    s[i] = static_cast<char>(s[i] ^ 1);
    CAPTURE(i);
    CHECK(complaint_about(s) != "accepted");
  }
  CHECK(complaint_about("") == "the file is cut short (at p.txt:1); valid: a file that ends with its checksum");
  CHECK(complaint_about("hello\n") == "not a file of operator profiles (at p.txt:1); valid: \"tensorpar-profiles\" and a version");
  CHECK(complaint_about("tensorpar-profiles\t2\n") ==
        "profiles of version 2 (at p.txt:1); valid: version 1; measure again with this release");
  CHECK(complaint_about("tensorpar-profiles\t1\nrelu\t1\t4\t->\tx\t-1\t1\n").find("not a measurement (at p.txt:2)") == 0);
  CHECK(complaint_about("tensorpar-profiles\t1\nrelu\t1\t4\t->\tx\tnan\t1\n").find("not a measurement (at p.txt:2)") == 0);
  CHECK(complaint_about(text + "more\n").find("text after the checksum") == 0);
  std::string twice = text;                                              // an entry doubled: the count no longer fits
  auto const line = twice.find('\n') + 1, next = twice.find('\n', line) + 1;
  twice.insert(line, twice.substr(line, next - line));
  CHECK(complaint_about(twice).find("the profiles were edited or damaged") == 0);
}
