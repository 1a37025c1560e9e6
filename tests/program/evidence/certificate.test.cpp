// tests/program/evidence/certificate.test.cpp - sealed plans are accepted as they are, and after no change of a step, sharding, saving or
// hash
#include <tensorpar/program/evidence/certificate.hpp>
#include <doctest/doctest.h>

#include <map>
#include <plan/random_plan.hpp>
#include <program/rewritten_plan.hpp>
#include <set>
#include <support/effort.hpp>
#include <support/random_pipeline.hpp>
#include <tensorpar/plan/codec.hpp>
#include <tensorpar/program/step_of.hpp>

using namespace tensorpar;

namespace {

struct subject { computation_graph declared; plan p; };

std::string said(std::vector<finding> const& all) {
  std::string r;
  for (finding const& f : all) r += std::string(name_of(f.code)) + ": " + f.text + "\n";
  return r;
}
void save_something(plan& p, std::mt19937& draw) {
  for (op_strategy& c : p.nodes) c = {c.sharding, static_cast<ir::zero_stage>(draw() % 4), draw() % 3 == 0};
}
/// In turn: shardings alone, shardings and savings, rules and shardings, all three, a pipeline.
subject sealed(int turn, std::mt19937& draw) {
  int const devices = 2 + turn % 4;
  bool const rules = turn % 5 == 2 || turn % 5 == 3;
  computation_graph g = rules ? tests::declared() : turn % 2 || turn % 5 == 4 ? tests::residual_mlp() : tests::small_transformer(),
      runs = g;
  subject s{std::move(g), {}};
  if (turn % 5 == 4) s.p = tests::random_pipeline(s.declared, {.devices = devices}, 1, 4, draw);
  else if (rules) {
    s.p = tests::planned(s.declared, draw);
    runs = passes::rewritten(s.declared, s.p);
    plan const sharding = tests::random_plan(runs, devices, draw);
    s.p.cluster = sharding.cluster;
    s.p.nodes = sharding.nodes;
  } else s.p = tests::random_plan(s.declared, devices, draw);
  if (turn % 4 == 1 && s.p.pipeline.empty()) s.p.node_order = tests::random_order(runs, draw);
  s.p.optimizer.kind = static_cast<optimizer_kind>(turn % 3);
  if (turn % 5 == 1 || turn % 5 == 3) save_something(s.p, draw);
  seal(runs, s.p);
  return s;
}

}  // namespace

TEST_CASE("sealed plans are accepted; the program of one device of each kind stands for all devices") {
  std::mt19937 draw(1);
  for (int turn = 0; turn < test_effort::cases(100); ++turn) {
    subject const s = sealed(turn, draw);
    auto const found = check_certificate(s.declared, s.p);
    REQUIRE_MESSAGE(found.empty(), turn << "\n" << said(found));
    CHECK(decode(encode(s.p), "test") == s.p);
    if (!s.p.pipeline.empty()) continue;
    training_options o;
    o.optimizer = s.p.optimizer;
    planned_step const step = passes::memory_pass(differentiate(passes::rewritten(s.declared, s.p), o), s.p);
    program const all = unroll(step.graph, step.plan);
    CHECK(all.arena == s.p.peak_bytes);
    CHECK(check(step.graph, step.plan, all).empty());
    detail::program_seal const whole = detail::seal_of(all, s.p.cluster.size());
    CHECK(whole.tasks == s.p.tasks);
    CHECK(whole.offsets.value() == s.p.offsets);
    std::vector<int> const like = passes::alike_devices(all, s.p.cluster.size());
    for (int d = 0; d < s.p.cluster.size(); ++d) {
      program const one = unroll(step.graph, step.plan, {.device = d});
      CHECK(passes::task_hash(one) == s.p.tasks);
      CHECK(passes::offset_hash(one, d) == passes::offset_hash(all, d));
      CHECK(passes::offset_hash(all, d) == passes::offset_hash(all, like[static_cast<std::size_t>(d)]));
    }
  }
}

TEST_CASE("two hundred and more different mutations of plans are all refused") {
  std::mt19937 draw(2);
  std::map<std::string, int> tried;
  std::set<std::string> texts;
  auto any = [&](auto& all) -> auto& { return all[draw() % all.size()]; };
  auto split = [&](plan& q) -> tensorpar::ir::sharding* {                       // some operator's mesh that has an axis
    for (int k = 0; k < 50; ++k) if (ir::sharding& s = any(q.nodes).sharding; !s.axes.empty()) return &s;
    return nullptr;
  };
  for (int turn = 0; turn < test_effort::cases(200); ++turn) {
    subject const s = sealed(turn, draw);
    for (int k = 0; k < 8; ++k) {
      plan q = s.p;
      std::string kind;
      std::size_t const i = q.rewrites.empty() ? 0 : draw() % q.rewrites.size();
      bool const rules = !q.rewrites.empty();
      switch (static_cast<unsigned>(turn * 8 + k) % 23) {
        case 0: kind = "degree"; if (ir::sharding* x = split(q)) any(x->axes).degree += draw() % 2 ? 1 : -1; break;
        case 1: kind = "stride"; if (ir::sharding* x = split(q)) any(x->axes).stride += draw() % 2 ? 1 : -1; break;
        case 2: kind = "loop"; if (ir::sharding* x = split(q)) any(x->axes).letter = "bo0\0is"[draw() % 6]; break;
        case 3: kind = "start"; any(q.nodes).sharding.start += draw() % 2 ? 1 : -1; break;
        case 4: kind = "an axis less"; if (ir::sharding* x = split(q)) x->axes.pop_back(); break;
        case 5: kind = "an axis more"; any(q.nodes).sharding.axes.push_back({'\0', 1 + static_cast<i64>(draw() % 2), 1}); break;
        case 6: kind = "another's sharding"; any(q.nodes).sharding = any(q.nodes).sharding; break;
        case 7: kind = "an operator less"; q.nodes.pop_back(); break;
        case 8: kind = "recompute"; { op_strategy& c = any(q.nodes); c.recompute = !c.recompute; } break;
        case 9: kind = "sharding"; any(q.nodes).zero = static_cast<ir::zero_stage>(draw() % 4); break;
        case 10: kind = "graph"; q.graph ^= u64{1} << (draw() % 64); break;
        case 11: kind = "serial graph"; if (rules) q.serial ^= u64{1} << (draw() % 64); break;
        case 12: kind = "step left out"; if (rules) q.rewrites.erase(q.rewrites.begin() + static_cast<std::ptrdiff_t>(i)); break;
        case 13: kind = "another rule"; if (rules) q.rewrites[i].rule = any(rewrite::rules_both_ways()).name; break;
        case 14: kind = "another site"; if (rules) any(q.rewrites[i].nodes) += 1; break;
        case 15: kind = "another tensor"; if (rules) any(q.rewrites[i].tensors) += 1; break;
        case 16: kind = "tasks"; q.tasks ^= u64{1} << (draw() % 64); break;
        case 17: kind = "offsets"; q.offsets ^= u64{1} << (draw() % 64); break;
        case 18: kind = "peak"; any(q.peak_bytes) += draw() % 2 ? 64 : -64; break;
        case 19: kind = "less memory"; q.cluster.kinds[0].memory = *std::max_element(q.peak_bytes.begin(), q.peak_bytes.end()) - 1; break;
        case 20: kind = "micro-batches"; q.micro_batches += 1; break;
        case 21: kind = "optimizer"; q.optimizer.kind = static_cast<optimizer_kind>((static_cast<int>(q.optimizer.kind) + 1) % 3); break;
        case 22: kind = "scalar"; q.scalar_bytes *= 2; break;
      }
      if (q == s.p) continue;
      std::vector<finding> const found = check_certificate(s.declared, q);
      // an operator without a result that the backward pass reads, or without weights, has nothing to save: the program is the same
      bool const saving = kind == "recompute" || kind == "sharding";
      if (saving && found.empty()) continue;
      REQUIRE_MESSAGE(!found.empty(), kind << " in turn " << turn);
      CHECK(!found.front().text.empty());
      if (texts.insert(kind + encode([&] { plan x = q; x.model = std::to_string(turn); return x; }()).dump()).second) ++tried[kind];
    }
  }
  int different = 0;
  for (auto const& [kind, n] : tried) {
    MESSAGE(kind << ": " << n);
    different += n;
  }
  MESSAGE(different << " different mutations refused");
  CHECK(tried.size() == 23);
  CHECK(different >= test_effort::cases(800));
}

TEST_CASE("another graph, a plan that is not sealed, and one whose program would differ are told apart") {
  std::mt19937 draw(3);
  subject const s = sealed(0, draw);
  auto code = [&](computation_graph const& g, plan const& p) {
    auto const all = check_certificate(g, p);
    REQUIRE(!all.empty());
    return all.front().code;
  };
  CHECK(code(tests::small_cnn(), s.p) == fault::wrong_graph);
  plan q = s.p;
  q.tasks = 0;
  CHECK(code(s.declared, q) == fault::malformed);
  q = s.p;
  q.peak_bytes.pop_back();
  CHECK(code(s.declared, q) == fault::malformed);
  q = s.p;
  q.tasks ^= 1;
  CHECK(code(s.declared, q) == fault::sealed);
  q = s.p;
  q.offsets ^= 1;
  CHECK(code(s.declared, q) == fault::sealed);
  q = s.p;
  q.cluster.kinds[0].memory = 64;
  CHECK(code(s.declared, q) == fault::memory);
}

TEST_CASE("no plan makes the checker crash") {
  std::mt19937 draw(4);
  int accepted = 0;
  for (int turn = 0; turn < test_effort::cases(1500); ++turn) {
    subject const s = sealed(turn % 20, draw);
    plan p = s.p;
    plan const wild = tensorpar::test::random_plan(draw);
    auto node = [&]() -> op_strategy& { return p.nodes[draw() % p.nodes.size()]; };
    for (int n = 1 + static_cast<int>(draw() % 5); n > 0; --n)
      switch (draw() % 13) {
        case 0: p.cluster = wild.cluster; p.peak_bytes.assign(wild.cluster.device.size(), 64); break;
        case 1: if (!wild.nodes.empty()) for (op_strategy& c : p.nodes) c = wild.nodes[draw() % wild.nodes.size()]; break;
        case 2: if (!wild.nodes.empty()) node() = wild.nodes[draw() % wild.nodes.size()]; break;
        case 3: node().sharding.axes.push_back({static_cast<char>(draw()), static_cast<i64>(draw()) - (1 << 30),
                                                static_cast<i64>(draw()) - (1 << 30)}); break;
        case 4: node().sharding.start = static_cast<int>(draw()); break;
        case 5: p.nodes.resize(draw() % 30); if (p.nodes.empty()) p.nodes.resize(1); break;
        case 6: p.micro_batches = static_cast<int>(draw() % 6) - 1; break;
        case 7: p.scalar_bytes = static_cast<i64>(draw() % 12) - 2; break;
        case 8: p.cluster.device.clear(); p.peak_bytes.clear(); break;
        case 9: p.cluster.kinds.clear(); break;
        case 10: if (!p.rewrites.empty()) p.rewrites[draw() % p.rewrites.size()].nodes.assign(draw() % 4, static_cast<int>(draw())); break;
        case 11:
          p.node_order = draw() % 2 ? wild.node_order : p.node_order;
          if (!p.node_order.empty()) p.node_order[draw() % p.node_order.size()] = static_cast<int>(draw() % 40) - 10;
          break;
        default: p.graph = draw() % 2 ? s.declared.hash() : p.graph; p.rewrites.clear(); break;
      }
    if (p == s.p) continue;
    accepted += check_certificate(s.declared, p).empty();
  }
  // only clusters of other names, links or more memory, which are no part of what a program does
  CHECK(accepted < test_effort::cases(75));
}

TEST_CASE("a seal is the same whether a program lists all devices or one of those that do the same") {
  std::mt19937 draw(11);
  int listed = 0;
  for (int i = 0; i < test_effort::cases(40); ++i) {
    CAPTURE(i);
    bool const staged = i % 2;
    computation_graph const g = staged || i % 4 ? tests::residual_mlp() : tests::small_transformer();
    plan p = staged ? tests::random_pipeline(g, {.devices = 2 + i % 5}, 1, 4, draw) : tests::random_plan(g, 4, draw);
    if (!staged && i % 3)
      for (op_strategy& n : p.nodes) n.sharding = {0, {{'\0', 4, 1}}};
    planned_step const all = step_of(g, p), some = step_to_simulate(g, p);
    listed += !some.program.listed_for.empty() && some.program.listed_for != all.program.listed_for;
    plan a = p, b = p;
    tensorpar::detail::seal_of(all.program, p.cluster.size()).write(a);
    tensorpar::detail::seal_of(some.program, p.cluster.size()).write(b);
    CHECK(a == b);
    CHECK(a.tasks != 0);
  }
  CHECK(listed > test_effort::cases(10));
}
