// tests/exec/eigen_splits.test.cpp - every operator, every loop, every number of parts: the parts make the whole
#include "support/laws/compute.hpp"
#include "each_call.hpp"
#include <set>
#include "support/eigen_once.hpp"

using namespace tensorpar;

TEST_CASE("in the prime field the parts of every split make the whole exactly") {
  std::set<std::string> seen, split;
  int tried = 0, overwriting = 0;
  tests::each_call<compute::eigen<prime_field>>([&](op::any_op const& o, auto const& x, exec::step_state const& state) {
    int const n = tests::check_splits<compute::eigen<prime_field>>(o, x, state, 0);
    tests::check_deterministic<compute::eigen<prime_field>>(o, x, state);
    overwriting += tests::check_overwriting<compute::eigen<prime_field>>(o, x, state);
    seen.insert(std::string(o.op->name));
    if (n) split.insert(std::string(o.op->name));
    tried += n;
  });
  std::set<std::string> all = tests::names_of_all();
  for (std::string const& name : all) CHECK_MESSAGE(seen.count(name), (name + " was never run"));
  all.erase("clip_factor");                                    // scalars have no loop
  for (std::string const& name : all) CHECK_MESSAGE(split.count(name), (name + " was never split"));
  CHECK(tried > 500);
  CHECK(overwriting >= 2);
}

TEST_CASE("over double the parts of every split make the whole up to rounding") {
  tests::each_call<compute::eigen<double>>([&](op::any_op const& o, auto const& x, exec::step_state const& state) {
    tests::check_splits<compute::eigen<double>>(o, x, state, 1e-12);
    tests::check_deterministic<compute::eigen<double>>(o, x, state);
    tests::check_overwriting<compute::eigen<double>>(o, x, state);
  });
}

TEST_CASE("a wrong kernel is noticed: a bias added by every share, and a mean over local rows") {
  using policy = compute::eigen<prime_field>;
  std::mt19937_64 r(1);
  tests::sample const s{linear{6}, {{4, 8}, {6, 8}, {6}}};
  auto const x = tests::operands_of<prime_field>(s, r);
  auto const y = tests::run_whole<policy>(s.op, x);
  auto const space = ir::space_of(s.op, s.in, {shape{4, 6}});
  ir::node_loop wrong = *space.find('i');
  wrong.reduced = false;                                       // so that every part counts as the first
  CHECK_FALSE(tests::run_split<policy>(s.op, wrong, 2, x, {shape{4, 6}}, {}) == y);
  CHECK(tests::run_split<policy>(s.op, *space.find('i'), 2, x, {shape{4, 6}}, {}) == y);
}
