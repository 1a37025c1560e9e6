// tests/ir/reshard.test.cpp - reshards lead where they say, by the collectives that the cases call for
#include <tensorpar/ir/held_boxes.hpp>
#include <tensorpar/ir/reshard.hpp>

#include <doctest/doctest.h>
#include <support/effort.hpp>
#include <tensorpar/ir/exchange.hpp>

#include <algorithm>
#include <map>
#include <random>

using namespace tensorpar;

namespace {

ir::layout at(std::vector<ir::layout_axis> a, int start = 0) { return ir::canonical({start, std::move(a)}); }
constexpr auto S = ir::part_kind::shard;
constexpr auto C = ir::part_kind::replicate;
constexpr auto P = ir::part_kind::partial;

std::vector<ir::reshard_kind> kinds(ir::layout const& a, ir::layout const& b, shape const& s) {
  std::vector<ir::reshard_kind> r;
  for (ir::reshard_step const& m : ir::reshard(a, b, s)) r.push_back(m.kind);
  return r;
}

/// A tensor of small integers under a layout: on every device its block; partial sums that add up to the tensor.
using placed = std::map<int, std::vector<i64>>;
placed sharding_out(ir::layout const& l, shape const& s, std::vector<i64> const& whole, std::mt19937& draw) {
  placed p;
  std::map<std::vector<i64>, std::vector<i64>> shares;                       // by block offset: what is still to be given
  i64 const sums = l.degree(P);
  std::map<std::pair<std::vector<i64>, i64>, std::vector<i64>> given;
  for (i64 i = 0; i < l.size(); ++i) {
    int const dev = l.device(i);
    auto const c = l.coordinates(dev);
    op::tensor_block const b = ir::block_of(l, s, c);
    i64 mine = 0;
    for (std::size_t k = 0; k < l.axes.size(); ++k) if (l.axes[k].kind == P) mine = mine * l.axes[k].degree + c[k];
    std::vector<i64> key(b.offset, b.offset + s.rank);
    std::vector<i64> values;
    std::vector<i64> index(static_cast<std::size_t>(s.rank), 0);
    for (i64 e = 0; e < b.elements(); ++e) {
      i64 flat = 0, rest = e;
      for (int d = s.rank - 1; d >= 0; --d) { index[static_cast<std::size_t>(d)] = rest % b.local[d]; rest /= b.local[d]; }
      for (int d = 0; d < s.rank; ++d) flat = flat * s.d[d].n + b.offset[d] + index[static_cast<std::size_t>(d)];
      values.push_back(whole[static_cast<std::size_t>(flat)]);
    }
    auto& g = given[{key, mine}];
    if (g.empty()) {
      if (!shares.count(key)) shares[key] = values;
      auto& left = shares[key];
      bool last = true;
      for (i64 q = 0; q < sums; ++q) if (q != mine && !given.count({key, q})) last = false;
      for (i64& x : left) { i64 const part = last ? x : static_cast<i64>(draw() % 100) - 50; g.push_back(part); x -= part; }
    }
    p[dev] = g;
  }
  return p;
}

/// What a reshard step means, element by element, without packing or groups: each part from the sum of all that hold a share of it.
placed carry_out(ir::reshard_step const& m, shape const& s, placed const& from) {
  placed to;
  for (i64 j = 0; j < m.after.size(); ++j) {
    int const dev = m.after.device(j);
    op::tensor_block const want = ir::block_of(m.after, s, dev);
    std::vector<i64> mine(static_cast<std::size_t>(want.elements()), 0);
    // a remaining partial sum stays within those devices that differ in the other digits only: here every test reduces all or nothing
    bool const reduces = m.before.degree(P) != m.after.degree(P);
    auto const ca = m.after.coordinates(dev);
    for (i64 e = 0; e < want.elements(); ++e) {
      i64 index[shape::max_rank], rest = e;
      for (int d = s.rank - 1; d >= 0; --d) { index[d] = want.offset[d] + rest % want.local[d]; rest /= want.local[d]; }
      std::map<i64, i64> by_share;
      for (i64 i = 0; i < m.before.size(); ++i) {
        int const src = m.before.device(i);
        auto const c = m.before.coordinates(src);
        op::tensor_block const b = ir::block_of(m.before, s, c);
        i64 flat = 0, share = 0;
        bool inside = true;
        for (int d = 0; d < s.rank; ++d) {
          inside = inside && index[d] >= b.offset[d] && index[d] < b.offset[d] + b.local[d];
          flat = flat * b.local[d] + index[d] - b.offset[d];
        }
        if (!inside) continue;
        for (std::size_t k = 0; k < m.before.axes.size(); ++k)
          if (m.before.axes[k].kind == P) share = share * m.before.axes[k].degree + c[k];
        by_share[share] = from.at(src)[static_cast<std::size_t>(flat)];
      }
      if (reduces) for (auto const& [k, v] : by_share) mine[static_cast<std::size_t>(e)] += v;
      else {
        i64 share = 0;
        for (std::size_t k = 0; k < m.after.axes.size(); ++k) if (m.after.axes[k].kind == P) share = share * m.after.axes[k].degree + ca[k];
        mine[static_cast<std::size_t>(e)] = by_share.at(share);
      }
    }
    to[dev] = mine;
  }
  return to;
}

}  // namespace

TEST_CASE("collectives are recognised from what changes") {
  shape const s{64, 64};
  using k = ir::reshard_kind;
  CHECK(kinds(at({{P, -1, 8, 1}}), at({{C, -1, 8, 1}}), s) == std::vector{k::all_reduce});
  CHECK(kinds(at({{P, -1, 8, 1}}), at({{S, 0, 8, 1}}), s) == std::vector{k::reduce_scatter});
  CHECK(kinds(at({{S, 0, 8, 1}}), at({{C, -1, 8, 1}}), s) == std::vector{k::all_gather});
  CHECK(kinds(at({{S, 0, 8, 1}}), at({{S, 1, 8, 1}}), s) == std::vector{k::all_to_all});
  CHECK(kinds(at({{C, -1, 8, 1}}), at({{S, 1, 8, 1}}), s) == std::vector{k::slice});
  CHECK(kinds(at({{S, 0, 2, 4}, {P, -1, 4, 1}}), at({{S, 0, 8, 1}}), s) == std::vector{k::reduce_scatter});
  CHECK(kinds(at({{S, 0, 2, 4}, {S, 1, 4, 1}}), at({{S, 0, 8, 1}}), s) == std::vector{k::all_to_all});
  CHECK(kinds(at({{S, 0, 2, 4}, {P, -1, 4, 1}}), at({{C, -1, 2, 4}, {S, 1, 4, 1}}), s) == std::vector{k::reduce_scatter, k::all_gather});
  CHECK(kinds(at({{S, 0, 4, 1}}), at({{S, 0, 4, 1}}, 4), s) == std::vector{k::exchange});
  CHECK(kinds(at({{C, -1, 4, 1}}), at({}), s) == std::vector{k::slice});            // one of the copies is already there
  CHECK(ir::reshard(at({{S, 0, 4, 1}}), at({{S, 0, 4, 1}}), s).empty());
}

TEST_CASE("to as many other devices each sends to one: sums are reduced before, and what is wanted larger is gathered behind") {
  shape const s{64, 64};
  using k = ir::reshard_kind;
  auto const other = [](std::vector<ir::layout_axis> a) { return at(std::move(a), 8); };
  CHECK(kinds(at({{S, 0, 8, 1}}), other({{C, -1, 8, 1}}), s) == std::vector{k::exchange, k::all_gather});
  CHECK(kinds(at({{S, 0, 2, 4}, {C, -1, 4, 1}}), other({{C, -1, 8, 1}}), s) == std::vector{k::exchange, k::all_gather});
  CHECK(kinds(at({{P, -1, 8, 1}}), other({{C, -1, 8, 1}}), s) == std::vector{k::all_reduce, k::exchange});
  CHECK(kinds(at({{P, -1, 8, 1}}), other({{S, 0, 8, 1}}), s) == std::vector{k::reduce_scatter, k::exchange});
  CHECK(kinds(at({{S, 0, 8, 1}}), other({{S, 0, 8, 1}}), s) == std::vector{k::exchange});
  CHECK(kinds(at({{C, -1, 8, 1}}), other({{S, 0, 8, 1}}), s) == std::vector{k::exchange});           // sends less as it is
  CHECK(kinds(at({{S, 0, 8, 1}}), at({{C, -1, 8, 1}}, 4), s) == std::vector{k::exchange});              // some are the same
  CHECK(kinds(at({{S, 0, 8, 1}}), at({{C, -1, 4, 1}}, 8), s) == std::vector{k::exchange});              // fewer
  auto const steps = ir::reshard(at({{S, 0, 8, 1}}), other({{C, -1, 8, 1}}), s);
  CHECK(ir::bytes_sent(steps[0], s, 4) == 64 * 64 * 4 / 8);
}

TEST_CASE("the members of a group differ in the group's digits alone") {
  ir::reshard_step const m{ir::reshard_kind::all_reduce,
                    -1,
                    -1,
                    {{2, 4}},
                    at({{S, 0, 2, 2}, {P, -1, 2, 4}, {S, 1, 2, 1}}),
                    at({{S, 0, 2, 2}, {C, -1, 2, 4}, {S, 1, 2, 1}})};
  CHECK(m.members(0) == std::vector{0, 4});
  CHECK(m.members(4) == std::vector{0, 4});
  CHECK(m.members(7) == std::vector{3, 7});
}

TEST_CASE("every reshard keeps the logical tensor, whatever the layouts") {
  std::mt19937 draw(11);
  shape const s{24, 12, 8};
  std::vector<i64> whole(static_cast<std::size_t>(s.elements()));
  for (i64& x : whole) x = static_cast<i64>(draw() % 1000);
  auto random_layout = [&](bool sums, int devices) {
    std::vector<ir::layout_axis> a;
    i64 size = 1;
    i64 used[3] = {1, 1, 1};
    for (int tries = 0; tries < 4; ++tries) {
      i64 const k = 2 + static_cast<i64>(draw() % 2);
      if (size * k > devices) continue;
      int const what = static_cast<int>(draw() % 5);
      if (what < 3) { if (s.d[what].n % (used[what] * k)) continue; used[what] *= k; a.push_back({S, what, k, 1}); }
      else if (what == 3 || !sums) a.push_back({C, -1, k, 1});
      else a.push_back({P, -1, k, 1});
      size *= k;
    }
    std::vector<std::size_t> order(a.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), draw);
    i64 stride = 1;
    for (std::size_t i : order) { a[i].stride = stride; stride *= a[i].degree; }
    return at(a, static_cast<int>(draw() % static_cast<unsigned>(devices - static_cast<int>(size) + 1)));
  };
  int collectives = 0;
  for (int trial = 0; trial < test_effort::cases(400); ++trial) {
    CAPTURE(trial);
    ir::layout const a = random_layout(true, 12), b = random_layout(false, 12);
    placed now = sharding_out(a, s, whole, draw);
    ir::layout where = a;
    for (ir::reshard_step const& m : ir::reshard(a, b, s)) {
      REQUIRE(m.before == where);
      collectives += m.kind != ir::reshard_kind::exchange;
      if (m.kind == ir::reshard_kind::exchange) {                       // by its own list of transfers
        placed next;
        for (i64 j = 0; j < m.after.size(); ++j)
          next[m.after.device(j)] = std::vector<i64>(static_cast<std::size_t>(ir::part_of(m.after, s).elements()), -1);
        i64 largest = 0;
        for (ir::transfer const& t : ir::transfers(m, s)) {
          largest = std::max(largest, t.box.elements());
          op::tensor_block const x = ir::block_of(m.before, s, t.from), y = ir::block_of(m.after, s, t.to);
          for (i64 e = 0; e < t.box.elements(); ++e) {
            i64 rest = e, i = 0, j = 0, index[shape::max_rank];
            for (int d = s.rank - 1; d >= 0; --d) { index[d] = t.box.offset[d] + rest % t.box.local[d]; rest /= t.box.local[d]; }
            for (int d = 0; d < s.rank; ++d) { i = i * x.local[d] + index[d] - x.offset[d]; j = j * y.local[d] + index[d] - y.offset[d]; }
            i64& to = next[t.to][static_cast<std::size_t>(j)];
            to = (t.adds ? to : 0) + now.at(t.from)[static_cast<std::size_t>(i)];
          }
        }
        CHECK(ir::packing_scalars(m, s) == largest);
        now = next;
      } else if (m.after.degree(P) == 1 || m.after.degree(P) == m.before.degree(P)) {
        now = carry_out(m, s, now);
      } else {                                                     // some sums stay: compare ends only
        now.clear();
        break;
      }
      where = m.after;
    }
    if (now.empty()) continue;
    REQUIRE(where == b);
    placed const want = sharding_out(b, s, whole, draw);
    CHECK(now == want);
  }
  CHECK(collectives > (test_effort::slow ? 20 : 100));
}

TEST_CASE("what an exchange packs is found without going through all pairs of devices") {
  ir::reshard_step m;
  m.before = at({{S, 0, 12288, 1}});
  m.after = at({{S, 1, 4096, 3}, {C, -1, 3, 1}});
  CHECK(ir::packing_scalars(m, shape{24576, 12288}) == 2 * 3);
  m.after = at({{S, 0, 8192, 1}});                                 // parts of two and of three: of one axis, so they meet in two at most
  CHECK(ir::packing_scalars(m, shape{24576, 12288}) == 2 * 12288);
}

TEST_CASE("nothing moves where every device that needs a box has it: device by device") {
  std::mt19937 draw(9);
  shape const s{8, 12};
  auto const some_layout = [&] {
    ir::layout l{static_cast<int>(draw() % 7), {}};
    i64 stride = 1;
    i64 left[2] = {8, 12};
    for (int k = static_cast<int>(draw() % 4); k > 0; --k) {
      i64 const degree = 2 + static_cast<i64>(draw() % 3);
      int const dim = static_cast<int>(draw() % 2);
      bool const shard = draw() % 2 && left[dim] % degree == 0;
      if (shard) left[dim] /= degree;
      l.axes.push_back({shard ? S : C, shard ? dim : -1, degree, stride});
      stride *= degree << (draw() % 4 == 0);
    }
    if (draw() % 2) std::reverse(l.axes.begin(), l.axes.end());
    return ir::canonical(std::move(l));
  };
  int held = 0, whole = 0, told[2] = {0, 0};
  for (int k = 0; k < test_effort::cases(4000); ++k) {
    ir::layout const from = some_layout();
    ir::layout to = some_layout();
    if (draw() % 2) to.start = from.start + static_cast<int>(draw() % 3) * 4;
    bool all = true;
    for (i64 i = 0; i < to.size() && all; ++i) {
      int const d = to.device(i);
      all = from.holds(d);
      if (!all) break;
      op::tensor_block const have = ir::block_of(from, s, d), want = ir::block_of(to, s, d);
      for (int a = 0; a < 2; ++a)
        all = all && want.offset[a] >= have.offset[a] && want.offset[a] + want.local[a] <= have.offset[a] + have.local[a];
    }
    CHECK(ir::detail::holds_already(from, to, s) == all);
    CHECK(ir::detail::holds_by_devices(from, to, s) == all);
    ir::detail::answer const digits = ir::detail::holds_by_digits(from, to, 2);
    if (digits != ir::detail::answer::unknown) {
      CHECK((digits == ir::detail::answer::yes) == all);
      ++told[all];
    }
    held += all;
    whole += all && from.axes.size() == 1 && from.axes[0].kind == C;
  }
  CHECK(held > test_effort::cases(4000) / 80);
  CHECK(whole > test_effort::cases(4000) / 400);
  for (int n : told) CHECK(n > test_effort::cases(4000) / 40);
}

TEST_CASE("bytes sent follow the ring formulas") {
  shape const s{64, 64};
  auto one = [&](ir::layout const& a, ir::layout const& b) { return ir::bytes_sent(ir::reshard(a, b, s).at(0), s, 4); };
  double const all = 64 * 64 * 4;
  CHECK(one(at({{P, -1, 8, 1}}), at({{C, -1, 8, 1}})) == doctest::Approx(2 * all * 7 / 8));
  CHECK(one(at({{P, -1, 8, 1}}), at({{S, 0, 8, 1}})) == doctest::Approx(all * 7 / 8));
  CHECK(one(at({{S, 0, 8, 1}}), at({{C, -1, 8, 1}})) == doctest::Approx(all * 7 / 8));
  CHECK(one(at({{S, 0, 8, 1}}), at({{S, 1, 8, 1}})) == doctest::Approx(all / 8 * 7 / 8));
  CHECK(one(at({{C, -1, 8, 1}}), at({{S, 1, 8, 1}})) == 0);
}
