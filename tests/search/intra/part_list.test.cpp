// tests/search/intra/part_list.test.cpp - more devices are never slower, and no plan on any of them is below the bound
#include <tensorpar/search/intra/part_list.hpp>

#include <doctest/doctest.h>
#include <numeric>
#include <random>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/search/intra/with_parts.hpp>
#include <tensorpar/zoo/registry.hpp>

#include "support/effort.hpp"
#include "support/search_once.hpp"

using namespace tensorpar;
using namespace tensorpar::search;

namespace {

device_kind const base{"base", 15.7e12, 900e9, i64{64} << 30, 6e-6};
device_kind slower(double by, char const* name) {
  return {name, base.flops / by, base.memory_bandwidth / by, base.memory, base.launch};
}
machine one_level(std::vector<int> devices, std::vector<device_kind> kinds, double bandwidth = 2.5e9) {
  auto const n = static_cast<i64>(devices.size());
  return {"flat", std::move(kinds), std::move(devices), {{"net", n, 6e-6, bandwidth}}};
}
machine equal(int n, double bandwidth = 2.5e9) {
  return one_level(std::vector<int>(static_cast<std::size_t>(n), 0), {base}, bandwidth);
}
/// So many fast devices, then slow ones.
machine fast_and_slow(int fast, int slow) {
  std::vector<int> d(static_cast<std::size_t>(fast), 0);
  d.resize(static_cast<std::size_t>(fast + slow), 1);
  return one_level(d, {slower(0.25, "A"), slower(1, "B")});
}
machine chosen(machine const& on, std::vector<int> const& which) {
  std::vector<int> d;
  for (int k : which) d.push_back(on.device[static_cast<std::size_t>(k)]);
  return one_level(d, on.kinds, on.links.front().bandwidth);
}
struct drawn_case {
  std::string what;
  computation_graph graph;
  machine on;
  bool crossed;                 // of some two kinds neither is as fast in everything
};
/// Small models with branches and without, on devices that are equal or of two or three kinds in any order, in nodes or not. Kinds are
/// slower in everything, or have less FLOP/s and more bandwidth, or less memory, than others.
drawn_case draw_case(std::mt19937& draw) {
  char const* const models[] = {"dlrm:rows=1000,width=16",
                                "dlrm:tables=2,rows=5000",
                                "xdl:tables=3,rows=1000,layers=1,hidden=64",
                                "candle_uno:layers=1,top=1,hidden=64",
                                "mlp_unify:layers=2,hidden=256,features=64",
                                "split_test:features=48",
                                "mmt:branches=2,layers=1,hidden=64,heads=4,wide=128,seq=16",
                                "vgg19:image=32,width=4,hidden=64,classes=10",
                                "bert_large:layers=1,hidden=64,heads=4,wide=256,seq=24,vocab=96"};
  std::string const model = models[draw() % std::size(models)];
  i64 const batch = 2 * (1 + static_cast<i64>(draw() % 30));
  double const speed = std::pow(10, static_cast<double>(draw() % 5)), by[] = {1.5 + static_cast<double>(draw() % 3), 8};
  std::vector<device_kind> kinds;
  for (double k : {1.0, by[0], by[1]}) {
    kinds.push_back(slower(k * 1e4 / speed, ("kind" + std::to_string(kinds.size())).c_str()));
    kinds.back().launch = base.launch * k / static_cast<double>(1 + draw() % 20);
  }
  bool const cross = draw() % 3 == 0;
  if (cross) {
    for (device_kind& k : kinds) k.memory_bandwidth *= std::pow(4, static_cast<double>(draw() % 4) - 1);
    kinds[draw() % 3].flops *= 5;
    kinds[draw() % 3].memory /= 4;
  }
  int const n = 2 + static_cast<int>(draw() % 6);
  double const net = 1e7 * std::pow(10, static_cast<double>(draw() % 4));
  machine on;
  if (draw() % 3 == 0) {
    int const per = 2 + static_cast<int>(draw() % 3), count = per * 2;
    double const inside = net * static_cast<double>(1 + draw() % 10);
    on = make_cluster("nodes", kinds[0], count, per, {"in", per, 3e-6, inside}, {"out", count, 2e-5, net});
    if (draw() % 2) {
      on.kinds = kinds;
      for (int& d : on.device) d = static_cast<int>(draw() % 3);
    }
  } else {
    std::vector<int> d;
    int const most = 1 + static_cast<int>(draw() % 3);
    for (int k = 0; k < n; ++k) d.push_back(static_cast<int>(draw()) & 7 ? static_cast<int>(draw() % static_cast<unsigned>(most)) : 0);
    on = one_level(d, kinds, net);
  }
  bool apart = false;
  for (int a : on.device)
    for (int b : on.device) {
      auto const &x = on.kinds[static_cast<std::size_t>(a)], &y = on.kinds[static_cast<std::size_t>(b)];
      apart = apart || (!search::detail::as_fast(x, y) && !search::detail::as_fast(y, x));
    }
  return {model + " batch " + std::to_string(batch), zoo::make(model, batch), on, apart};
}
/// Any part of a drawn machine as a machine of its own, of those that its bound is about: of a flat one whose kinds are not crossed any
/// devices in any order, else neighbours; of nodes of equal devices the first ones or equal shares.
machine draw_part(drawn_case const& c, std::mt19937& draw) {
  machine const& on = c.on;
  auto const among = [&](int n) { return static_cast<int>(draw() % static_cast<unsigned>(n)); };
  if (!on.uniform() && (c.crossed || on.links.size() > 1)) {
    int const k = 1 + among(on.size() - 1);
    return search::detail::part_of(on, {among(on.size() - k + 1), k});
  }
  if (on.links.size() > 1) {
    auto shares = search::detail::equal_shares(on);
    if (!shares.empty() && draw() % 2) return shares[draw() % shares.size()];
    return search::detail::part_of(on, {0, 1 + static_cast<int>(draw() % static_cast<unsigned>(on.size() - 1))});
  }
  std::vector<int> all(static_cast<std::size_t>(on.size()));
  std::iota(all.begin(), all.end(), 0);
  std::shuffle(all.begin(), all.end(), draw);
  all.resize(1 + draw() % static_cast<unsigned>(on.size() - 1));
  return chosen(on, all);
}

}  // namespace

TEST_CASE("parts: all of a small machine, each once, most devices first") {
  std::vector<double> const alone{1, 2};
  search::detail::part_list const of = search::detail::parts_of(equal(5), {1});
  REQUIRE(of.parts.size() == 4);
  for (int k = 0; k < 4; ++k) CHECK(of.parts[static_cast<std::size_t>(k)].at == device_range{0, 4 - k});
  CHECK(of.every);
  CHECK_FALSE(of.reordered);
  machine const mixed = one_level({1, 0, 1}, {slower(1, "A"), slower(2, "B")});
  machine const sorted = search::detail::fastest_first(mixed, alone);
  CHECK(sorted.device == std::vector<int>{0, 1, 1});
  search::detail::part_list const some = search::detail::parts_of(mixed, alone);
  CHECK(some.reordered);
  int counts = 0;
  for (search::detail::machine_part const& p : some.parts) {
    counts += p.counts;
    if (p.at.count) CHECK(p.as == search::detail::part_of(mixed, p.at));
  }
  CHECK(counts == 0);                                                        // what counts are those of the sorted machine
  search::detail::part_list const sorted_parts = search::detail::parts_of(sorted, alone);
  CHECK_FALSE(sorted_parts.reordered);
  for (search::detail::machine_part const& p : sorted_parts.parts) CHECK(p.counts == (p.at.first == 0));
  CHECK(search::detail::parts_of(equal(40), {1}).every == false);
  machine const nodes = make_cluster("nodes", base, 10, 5, {"in", 5, 3e-6, 50e9}, {"out", 10, 2e-5, 1e9});
  std::vector<std::string> shares;
  for (machine const& m : search::detail::equal_shares(nodes))
    shares.push_back(std::to_string(m.size()) + "/" + std::to_string(m.links.front().group));
  CHECK(shares == std::vector<std::string>{"2/2", "3/3", "4/4", "5/5", "4/2", "6/3", "8/4"});
}

TEST_CASE("parts: of crossed kinds none counts for another, nor do faster devices with less memory count for slower ones") {
  device_kind const fast = slower(0.5, "fast"), slow = slower(1, "slow");
  CHECK(search::detail::as_fast(fast, slow));
  CHECK_FALSE(search::detail::as_fast(slow, fast));
  auto const changed = [&](auto change) { device_kind k = fast; change(k); return k; };
  for (device_kind const& k : {changed([](device_kind& x) { x.memory = slower(1, "").memory - 1; }),
                               changed([](device_kind& x) { x.flops /= 4; }),
                               changed([](device_kind& x) { x.memory_bandwidth /= 4; }), changed([](device_kind& x) { x.launch *= 4; })}) {
    CHECK_FALSE(search::detail::as_fast(k, slow));
    for (std::vector<int> const& d : {std::vector<int>{0, 1, 1}, std::vector<int>{1, 0, 1}, std::vector<int>{1, 1, 0}}) {
      search::detail::part_list const all = search::detail::parts_of(one_level(d, {k, slow}), {1, 2});
      CHECK_FALSE(all.every);
      CHECK(all.neighbours);
      for (search::detail::machine_part const& p : all.parts) CHECK(p.counts);
    }
  }
  // whatever they cut: a part of a part is a part
  machine nodes = make_cluster("nodes", slow, 8, 4, {"in", 4, 3e-6, 50e9}, {"out", 8, 2e-5, 1e9});
  nodes.kinds = {fast, slow};
  nodes.device = {0, 1, 0, 1, 1, 0, 0};
  auto const parts = search::detail::parts_of(nodes, {1, 2}).parts;
  for (int k = 1; k < nodes.size(); ++k)
    for (int first = 0; first + k <= nodes.size(); ++first) {
      machine const part = search::detail::part_of(nodes, {first, k});
      CHECK(std::any_of(parts.begin(), parts.end(), [&](search::detail::machine_part const& p) { return p.as == part; }));
    }
}

TEST_CASE("search: the slower devices' plan is not below the bound where the faster ones lack memory") {
  computation_graph const g = zoo::make("mlp_unify:layers=2,hidden=256,features=64", 32);
  for (bool less_flops : {false, true}) {
    device_kind fast = slower(0.5, "fast"), slow = slower(1, "slow");
    if (less_flops) fast.flops /= 64;
    fast.memory = 1000;
    machine const on = one_level({0, 1, 0, 1}, {fast, slow}), second = search::detail::part_of(on, {1, 1});
    search_result const r = optimize(g, on, cost::analytical{}), s = optimize(g, second, cost::analytical{});
    REQUIRE(r.feasible());
    REQUIRE(s.feasible());
    CHECK(r.cost.seconds <= s.cost.seconds * (1 + 1e-9));
    CHECK(r.bound <= s.cost.seconds * (1 + 1e-9));
  }
}

TEST_CASE("parts: renumbered machines are the same, fastest first") {
  std::mt19937 draw(3);
  for (int turn = 0; turn < test_effort::cases(200); ++turn) {
    int const per = 1 + static_cast<int>(draw() % 4), nodes = 1 + static_cast<int>(draw() % 4);
    machine m = make_cluster("nodes", base, per * nodes, per, {"in", per, 3e-6, 50e9}, {"out", per * nodes, 2e-5, 1e9});
    m.kinds = {slower(4, "slow"), slower(1, "fast"), slower(2, "middle")};
    for (int& d : m.device) d = static_cast<int>(draw() % 3);
    machine other = m;                                                       // nodes in another order, devices of a node too
    std::vector<int> order(static_cast<std::size_t>(nodes));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), draw);
    other.device.clear();
    for (int k : order) {
      std::vector<int> node(m.device.begin() + k * per, m.device.begin() + (k + 1) * per);
      std::shuffle(node.begin(), node.end(), draw);
      other.device.insert(other.device.end(), node.begin(), node.end());
    }
    std::vector<double> const alone{4, 1, 2};
    machine const a = search::detail::fastest_first(m, alone);
    CHECK(a == search::detail::fastest_first(other, alone));
    CHECK(a == search::detail::fastest_first(a, alone));
    std::vector<int> had = m.device, has = a.device;
    std::sort(had.begin(), had.end());
    std::sort(has.begin(), has.end());
    CHECK(had == has);
  }
}

TEST_CASE("search: a slow device more, and a device that divides nothing, do not make plans slower") {
  computation_graph const xdl = zoo::make("xdl", 1024);
  joint_result const less = optimize_jointly(xdl, fast_and_slow(4, 4), cost::analytical{}),
                     more = optimize_jointly(xdl, fast_and_slow(4, 5), cost::analytical{});
  CHECK(more.cost.seconds <= less.cost.seconds * (1 + 1e-9));
  CHECK(more.bound <= less.cost.seconds);
  computation_graph const tables = zoo::make("dlrm_criteo:tables=6", 105);
  search_result const few = optimize(tables, equal(14), cost::analytical{}), many = optimize(tables, equal(15), cost::analytical{});
  CHECK(many.cost.seconds <= few.cost.seconds * (1 + 1e-9));
  CHECK(many.bound <= few.cost.seconds);
  CHECK(many.space.every_part);
  CHECK(many.plan.bound == many.bound);
}

TEST_CASE("search: plans on parts of a machine are not below its bound, and not faster where a plan may use them") {
  std::mt19937 draw(47);
  int tight = 0, faster = 0, renumbered = 0, differ = 0, crossed = 0, nodes = 0;
  int const cases = test_effort::cases(10);
  for (int turn = 0; turn < cases; ++turn) {
    drawn_case const c = draw_case(draw);
    CAPTURE(turn);
    CAPTURE(c.what);
    search_result const r = optimize(c.graph, c.on, cost::analytical{});
    REQUIRE(r.feasible());
    CHECK(r.bound <= r.cost.seconds);
    tight += r.gap < 1e-6;
    for (int k = 0; k < 3; ++k) {
      machine const part = draw_part(c, draw);
      search_result const s = optimize(c.graph, part, cost::analytical{});
      CHECK(r.bound <= s.cost.seconds * (1 + 1e-9));
      faster += s.cost.seconds < r.cost.seconds;
    }
    machine const fewer = search::detail::part_of(c.on, {0, c.on.size() - 1});
    CHECK(r.cost.seconds <= optimize(c.graph, fewer, cost::analytical{}).cost.seconds * (1 + 1e-9));
    if (turn % 5 == 0) {
      joint_options o;
      o.rewriting.distribute = turn % 10 == 5;
      joint_result const j = optimize_jointly(c.graph, c.on, cost::analytical{}, o);
      machine const part = draw_part(c, draw);
      CHECK(j.bound <= optimize_jointly(c.graph, part, cost::analytical{}, o).cost.seconds * (1 + 1e-9));
      CHECK(j.cost.seconds <= optimize_jointly(c.graph, fewer, cost::analytical{}, o).cost.seconds * (1 + 1e-9));
    }
    crossed += c.crossed;
    nodes += c.on.links.size() > 1 && !c.on.uniform();
    if (c.on.links.size() > 1 || c.crossed) continue;
    std::vector<int> all(static_cast<std::size_t>(c.on.size()));
    std::iota(all.begin(), all.end(), 0);
    std::shuffle(all.begin(), all.end(), draw);
    search_result const other = optimize(c.graph, chosen(c.on, all), cost::analytical{});
    ++renumbered;
    // else branches were left out, or one numbering has neighbours that allow a plan which no other has
    bool const same = std::abs(other.bound - r.bound) <= 1e-8 * r.bound, left = r.statistics.branches_left ||
        other.statistics.branches_left;
    double const bound = std::min(r.bound, other.bound), cost = std::min(r.cost.seconds, other.cost.seconds);
    CHECK((same || left || cost <= bound * (1 + 1e-9)));
    differ += !same;
  }
  CHECK((tight > 0 || test_effort::slow));
  CHECK((renumbered > 0 || test_effort::slow));
  CHECK(differ * 50 <= renumbered);
  MESSAGE(cases << " machines and models: " << tight << " bounds reached, " << faster << " plans on some devices faster than on all; "
                << crossed << " with crossed kinds, " << nodes << " with kinds mixed within nodes, " << renumbered
                    << " numbered otherwise, " << differ << " with another bound then");
}

TEST_CASE("search: fewer devices are never faster where memory is short either") {
  std::mt19937 draw(5);
  int shared = 0;
  for (int turn = 0; turn < test_effort::cases(2); ++turn) {
    i64 const batch = 4 * (1 + static_cast<i64>(draw() % 6));
    char const* const models[] = {"mlp_unify:layers=4,hidden=256,features=64",
                                  "bert_large:layers=2,hidden=64,heads=4,wide=256,seq=24,vocab=96"};
    computation_graph const g = zoo::make(models[turn % 2], batch);
    machine on = equal(2 + static_cast<int>(draw() % 4), 1e9);
    search_options o;
    o.optimizer.kind = optimizer_kind::adamw;
    search_result const roomy = optimize(g, on, cost::analytical{}, o);
    i64 const most = *std::max_element(roomy.cost.bytes.begin(), roomy.cost.bytes.end());
    on.kinds[0].memory = most * static_cast<i64>(50 + draw() % 45) / 100;
    search_result const r = optimize(g, on, cost::analytical{}, o);
    CAPTURE(turn);
    for (int k = 1; k < on.size(); ++k) {
      search_result const part = optimize(g, search::detail::part_of(on, {0, k}), cost::analytical{}, o);
      if (!part.feasible()) continue;
      REQUIRE(r.feasible());
      CHECK(r.cost.seconds <= part.cost.seconds * (1 + 1e-9));
      CHECK(r.bound <= part.cost.seconds);
    }
    shared += r.feasible() && r.plan.saves_memory();
  }
  CHECK((shared > 0 || test_effort::slow));
}
