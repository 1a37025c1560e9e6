// tests/check/check.test.cpp - what the unrolling makes is accepted; every mutation of it is found; no program makes the checker crash
#include <doctest/doctest.h>

#include <map>
#include <random>
#include <support/effort.hpp>
#include <check/check_subject.hpp>
#include <tensorpar/check/check.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/program/unroll.hpp>

using namespace tensorpar;
using tests::some_workspace;
using tests::subject;

namespace {

std::string said(std::vector<finding> const& all) {
  std::string r;
  for (finding const& f : all) r += std::string(name_of(f.code)) + ": " + f.text + "\n";
  return r;
}

// Mutations return false where the subject has nothing to spoil in that way.
using mutation = bool (*)(subject&, std::mt19937&);

template <class Fits> int pick(std::mt19937& draw, std::size_t n, Fits fits) {
  std::vector<int> good;
  for (std::size_t i = 0; i < n; ++i) if (fits(i)) good.push_back(static_cast<int>(i));
  return good.empty() ? -1 : good[draw() % good.size()];
}
task* some_task(subject& s, std::mt19937& draw, bool (*fits)(task const&)) {
  int const i = pick(draw, s.q.tasks.size(), [&](std::size_t k) { return fits(s.q.tasks[k]); });
  return i < 0 ? nullptr : &s.q.tasks[static_cast<std::size_t>(i)];
}
bool is_compute(task const& t) { return t.kind == task_kind::compute; }
bool is_move(task const& t) { return t.kind == task_kind::reshard; }
bool has_group(task const& t) { return t.kind == task_kind::reshard && !t.step.group.empty() && t.step.kind != ir::reshard_kind::slice; }
buffer& buf(subject& s, int b) { return s.q.buffers[static_cast<std::size_t>(b)]; }

bool drop_task(subject& s, std::mt19937& draw) {
  int const i = static_cast<int>(draw() % s.q.tasks.size());
  s.q.tasks.erase(s.q.tasks.begin() + i);
  for (buffer& b : s.q.buffers) {                        // lifetimes follow, so that only the meaning is wrong
    if (b.first > i) --b.first;
    if (b.last >= i) --b.last;
    b.last = std::max(b.last, b.first);
  }
  return true;
}
bool swap_dependent_tasks(subject& s, std::mt19937& draw) {
  auto& k = s.q.tasks;
  int const i = pick(draw, k.size() - 1, [&](std::size_t j) {
    for (int o : k[j].out) for (int b : k[j + 1].in) if (o == b) return true;
    return false;
  });
  if (i < 0) return false;
  std::swap(k[static_cast<std::size_t>(i)], k[static_cast<std::size_t>(i) + 1]);
  for (auto at : {i, i + 1})                             // again: only the order is wrong
    for (auto const* side : {&k[static_cast<std::size_t>(at)].in, &k[static_cast<std::size_t>(at)].out})
      for (int b : *side) { buf(s, b).first = std::min(buf(s, b).first, i); buf(s, b).last = std::max(buf(s, b).last, at); }
  return true;
}
bool change_task_degree(subject& s, std::mt19937& draw) {
  task* t = some_task(s, draw, [](task const& k) { return is_compute(k) && !k.mesh.axes.empty(); });
  if (!t) return false;
  t->mesh.axes[draw() % t->mesh.axes.size()].degree += 1;
  return true;
}
bool change_task_stride(subject& s, std::mt19937& draw) {
  task* t = some_task(s, draw, [](task const& k) { return is_compute(k) && k.mesh.size() > 1; });
  if (!t) return false;
  int const a = pick(draw, t->mesh.axes.size(), [&](std::size_t k) { return t->mesh.axes[k].degree > 1; });
  t->mesh.axes[static_cast<std::size_t>(a)].stride += 1;
  return true;
}
bool change_task_letter(subject& s, std::mt19937& draw) {
  task* t = some_task(s, draw, [](task const& k) { return is_compute(k) && !k.mesh.axes.empty() && !k.op.is<add>(); });
  if (!t) return false;
  char& c = t->mesh.axes[0].letter;
  c = c ? '\0' : 'o';
  return true;
}
bool change_plan_degree(subject& s, std::mt19937& draw) {
  int const v = pick(draw, s.p.nodes.size(), [&](std::size_t k) { return !s.p.nodes[k].sharding.axes.empty(); });
  if (v < 0) return false;
  s.p.nodes[static_cast<std::size_t>(v)].sharding.axes[0].degree += 1;
  return true;
}
bool change_plan_start(subject& s, std::mt19937& draw) {
  s.p.nodes[draw() % s.p.nodes.size()].sharding.start += 1;
  return true;
}
bool change_plan_stride(subject& s, std::mt19937& draw) {
  int const v = pick(draw, s.p.nodes.size(), [&](std::size_t k) { return !s.p.nodes[k].sharding.axes.empty(); });
  if (v < 0) return false;
  s.p.nodes[static_cast<std::size_t>(v)].sharding.axes[0].stride = draw() % 2 ? 0 : s.p.cluster.size();
  return true;
}
bool change_kind(subject& s, std::mt19937& draw) {
  task* t = some_task(s, draw, is_move);
  if (!t) return false;
  ir::reshard_kind const old = t->step.kind;
  while (t->step.kind == old || t->step.kind == ir::reshard_kind::exchange)
    t->step.kind = static_cast<ir::reshard_kind>(draw() % 5);  // an exchange can do all
  return true;
}
bool change_group_degree(subject& s, std::mt19937& draw) {
  task* t = some_task(s, draw, has_group);
  if (!t) return false;
  i64& d = t->step.group[draw() % t->step.group.size()].degree;
  d = draw() % 2 ? 1 : d + 1;
  return true;
}
bool change_group_stride(subject& s, std::mt19937& draw) {
  task* t = some_task(s, draw, has_group);
  if (!t) return false;
  t->step.group[draw() % t->step.group.size()].stride += 1;
  return true;
}
bool change_move_dim(subject& s, std::mt19937& draw) {
  task* t = some_task(s, draw, [](task const& k) { return has_group(k) && k.step.kind != ir::reshard_kind::all_reduce; });
  if (!t) return false;
  (t->step.kind == ir::reshard_kind::all_gather ? t->step.from_dim : t->step.to_dim) += 1;
  return true;
}
bool change_move_after(subject& s, std::mt19937& draw) {
  task* t = some_task(s, draw, [](task const& k) { return is_move(k) && !k.step.after.axes.empty(); });
  if (!t) return false;
  ir::layout_axis& a = t->step.after.axes[draw() % t->step.after.axes.size()];
  a.stride += 1;
  return true;
}
bool misstate_layout(subject& s, std::mt19937& draw) {
  int const b =
      pick(draw, s.q.buffers.size(), [&](std::size_t k) { return s.q.buffers[k].value >= 0 && !s.q.buffers[k].where.axes.empty(); });
  if (b < 0) return false;
  ir::layout_axis& a = buf(s, b).where.axes[draw() % buf(s, b).where.axes.size()];
  if (a.kind == ir::part_kind::shard) a.dim += 1;
  else a.kind = a.kind == ir::part_kind::replicate ? ir::part_kind::partial : ir::part_kind::replicate;
  return true;
}
bool change_shape(subject& s, std::mt19937& draw) {
  int const b = pick(draw, s.q.buffers.size(), [&](std::size_t k) { return s.q.buffers[k].value >= 0 && s.q.buffers[k].type.rank > 0; });
  buf(s, b).type.d[0].n *= 2;
  return true;
}
bool change_attribute(subject& s, std::mt19937& draw) {
  task* t = some_task(s, draw, [](task const& k) { return is_compute(k) && k.op.op->attrs > 0; });
  if (!t) return false;
  t->op.attr[0] += 1;
  return true;
}
bool exchange_operand(subject& s, std::mt19937& draw) {
  task* t = some_task(s, draw, [](task const& k) { return !k.in.empty(); });
  int& b = t->in[draw() % t->in.size()];
  int const old = b, other = static_cast<int>(draw() % s.q.buffers.size());
  if (buf(s, other).value == buf(s, old).value) return false;
  b = other;
  return true;
}
bool change_micro_batch(subject& s, std::mt19937& draw) {
  if (s.q.micro_batches == 1) return false;
  task* t = some_task(s, draw,
                      [](task const& k) { return is_compute(k) && !is_update(k.op) && !k.op.is<clip_factor>() && !k.op.is<square_sum>(); });
  t->micro_batch = 1 - t->micro_batch;
  return true;
}
bool lose_device(subject& s, std::mt19937& draw) {
  task* t = some_task(s, draw, [](task const& k) { return k.devices.size() > 1; });
  if (!t) return false;
  t->devices.erase(t->devices.begin() + static_cast<std::ptrdiff_t>(draw() % t->devices.size()));
  return true;
}
bool end_early(subject& s, std::mt19937& draw) {
  int const b = pick(draw, s.q.buffers.size(),
                     [&](std::size_t k) {
                       buffer const& x = s.q.buffers[k];
                       task const& t = s.q.tasks[static_cast<std::size_t>(x.last)];         // prefetched ones may live longer than they are used
                       auto const uses = [&](std::vector<int> const& all) { return std::find(all.begin(), all.end(), static_cast<int>(k)) != all.end(); };
                       bool const used = x.persistent || uses(t.in) || uses(t.out) || t.workspace == static_cast<int>(k);
                       return x.last > x.first && x.value != s.t.loss && used;
                     });
  if (b < 0) return false;
  --buf(s, b).last;
  return true;
}
bool begin_late(subject& s, std::mt19937& draw) {
  int const b = pick(draw, s.q.buffers.size(), [&](std::size_t k) { return s.q.buffers[k].last > s.q.buffers[k].first; });
  if (b < 0) return false;
  ++buf(s, b).first;
  return true;
}
bool move_onto_another(subject& s, std::mt19937& draw) {
  buffer& a = buf(s, static_cast<int>(draw() % s.q.buffers.size()));
  int const other = pick(draw, s.q.buffers.size(), [&](std::size_t k) {
    buffer const& b = s.q.buffers[k];
    return &b != &a && b.bytes && b.first <= a.last && a.first <= b.last && b.devices.front() == a.devices.front() && a.bytes;
  });
  if (other < 0) return false;
  a.offset[0] = buf(s, other).offset[0];
  return true;
}
bool misalign(subject& s, std::mt19937& draw) { buf(s, static_cast<int>(draw() % s.q.buffers.size())).offset.back() += 4; return true; }
bool leave_arena(subject& s, std::mt19937& draw) {
  buffer& b = buf(s, static_cast<int>(draw() % s.q.buffers.size()));
  b.offset.front() = draw() % 2 ? -64 : s.q.arena[static_cast<std::size_t>(b.devices.front())];
  return b.bytes > 0;
}
bool change_bytes(subject& s, std::mt19937& draw) {
  int const b = pick(draw, s.q.buffers.size(), [&](std::size_t k) { return s.q.buffers[k].value >= 0; });
  buf(s, b).bytes -= 4;
  return true;
}
bool lose_packing_space(subject& s, std::mt19937& draw) {
  task* t = some_task(s, draw, [](task const& k) { return is_move(k) && k.workspace >= 0; });
  if (!t) return false;
  bool remote = t->step.kind != ir::reshard_kind::exchange;     // an exchange in which every box stays where it is needs none
  if (!remote)
    for (ir::transfer const& x : ir::transfers(t->step, s.t.graph.type(buf(s, t->in[0]).value))) remote = remote || x.from != x.to;
  t->workspace = -1;
  return remote;
}
bool shrink_arena(subject& s, std::mt19937& draw) {
  i64& a = s.q.arena[draw() % s.q.arena.size()];
  if (a == 0) return false;
  a -= 64;
  s.p.peak_bytes = s.q.arena;
  return true;
}
bool shrink_memory(subject& s, std::mt19937&) {
  s.p.cluster.kinds[0].memory = *std::max_element(s.q.arena.begin(), s.q.arena.end()) - 1;
  return true;
}
bool mispredict(subject& s, std::mt19937& draw) { s.p.peak_bytes[draw() % s.p.peak_bytes.size()] += 64; return true; }
bool other_graph(subject& s, std::mt19937&) { s.p.graph ^= 1; return true; }

}  // namespace

TEST_CASE("what the unrolling makes is accepted") {
  std::mt19937 draw(1);
  for (int turn = 0; turn < 240; ++turn) {
    subject const s = tests::checked_step(turn, draw);
    auto const all = check(s.t, s.p, s.q);
    REQUIRE_MESSAGE(all.empty(), turn << "\n" << said(all));
    plan p = s.p;
    program const forward = unroll(s.t, p, {.workspace = some_workspace, .forward_only = true});
    p.peak_bytes = forward.arena;
    auto const more = check_forward(s.t, p, forward);
    REQUIRE_MESSAGE(more.empty(), turn << "\n" << said(more));
    CHECK(check(s.t, s.p).empty());
    CHECK_NOTHROW(require_accepted(all, "test"));
  }
}

TEST_CASE("every mutation is found") {
  struct entry { std::string name; mutation apply; };
  entry const all[] = {{"drop a task", drop_task},
                       {"swap dependent tasks", swap_dependent_tasks},
                       {"change a task's degree", change_task_degree},
                       {"change a task's stride", change_task_stride},
                       {"change a task's letter", change_task_letter},
                       {"change the plan's degree", change_plan_degree},
                       {"change the plan's start", change_plan_start},
                       {"change the plan's stride", change_plan_stride},
                       {"change a reshard's kind", change_kind},
                       {"change a group's degree", change_group_degree},
                       {"change a group's stride", change_group_stride},
                       {"change a reshard's axis", change_move_dim},
                       {"change a reshard's target", change_move_after},
                       {"misstate a layout", misstate_layout},
                       {"change a shape", change_shape},
                       {"change an attribute", change_attribute},
                       {"read another buffer", exchange_operand},
                       {"another micro-batch", change_micro_batch},
                       {"lose a device", lose_device},
                       {"end a life early", end_early},
                       {"begin a life late", begin_late},
                       {"two buffers in one place", move_onto_another},
                       {"misalign", misalign},
                       {"leave the arena", leave_arena},
                       {"change a size", change_bytes},
                       {"lose packing space", lose_packing_space},
                       {"shrink an arena", shrink_arena},
                       {"shrink a device", shrink_memory},
                       {"mispredict the peak", mispredict},
                       {"another graph", other_graph}};
  int total = 0;
  for (entry const& e : all) {
    std::mt19937 draw(2);
    std::map<fault, int> codes;
    int tried = 0;
    for (int turn = 0; turn < test_effort::cases(60); ++turn) {
      subject s = tests::checked_step(turn, draw);
      if (!e.apply(s, draw)) continue;
      ++tried;
      auto const found = check(s.t, s.p, s.q);
      REQUIRE_MESSAGE(!found.empty(), e.name << " in turn " << turn);
      CHECK(!found.front().text.empty());
      ++codes[found.front().code];
      CHECK_THROWS_AS(require_accepted(found, "test"), error);
    }
    std::string which;
    for (auto const& [f, n] : codes) which += std::string(" ") + name_of(f) + " " + std::to_string(n);
    MESSAGE(e.name << ": " << tried << " found as" << which);
    CHECK(tried >= test_effort::cases(10));
    total += tried;
  }
  MESSAGE(total << " mutations found");
}

TEST_CASE("every single task is missed when it is gone") {
  std::mt19937 draw(3);
  for (int turn : {3, 4, 5, 9}) {
    subject const s = tests::checked_step(turn, draw);
    for (std::size_t i = 0; i < s.q.tasks.size(); ++i) {
      subject m = s;
      m.q.tasks.erase(m.q.tasks.begin() + static_cast<std::ptrdiff_t>(i));
      for (buffer& b : m.q.buffers) {
        if (b.first > static_cast<int>(i)) --b.first;
        if (b.last >= static_cast<int>(i)) --b.last;
        b.last = std::max(b.last, b.first);
      }
      REQUIRE_MESSAGE(!check(m.t, m.p, m.q).empty(), "turn " << turn << " without " << s.q.tasks[i].name);
    }
  }
}

TEST_CASE("no program makes the checker crash") {
  std::mt19937 draw(4);
  int accepted = 0;
  for (int turn = 0; turn < test_effort::cases(1500); ++turn) {
    subject s = tests::checked_step(turn % 40, draw);
    auto number = [&]() -> int { static constexpr int odd[] = {-1, 0, 1, 2, 3, 7, 1000000, -1000000, 2147483647}; return odd[draw() % 9]; };
    for (int n = 1 + static_cast<int>(draw() % 4); n > 0; --n) {
      task& t = s.q.tasks[draw() % s.q.tasks.size()];
      buffer& b = buf(s, static_cast<int>(draw() % s.q.buffers.size()));
      switch (draw() % 20) {
        case 0: t.node = number(); break;
        case 1: t.micro_batch = number(); break;
        case 2: if (!t.in.empty()) t.in[0] = number(); break;
        case 3: if (!t.out.empty()) t.out[0] = number(); break;
        case 4: t.workspace = number(); break;
        case 5: if (!t.mesh.axes.empty()) t.mesh.axes[0].degree = number(); break;
        case 6: if (!t.mesh.axes.empty()) t.mesh.axes[0].stride = number(); break;
        case 7: t.mesh.start = number(); break;
        case 8: t.step.kind = static_cast<ir::reshard_kind>(number()); break;
        case 9: if (!t.step.group.empty()) t.step.group[0] = {number(), number()}; break;
        case 10: t.step.from_dim = number(); t.step.to_dim = number(); break;
        case 11: t.devices.push_back(number()); break;
        case 12: b.value = number(); break;
        case 13: b.type.d[0].n = number(); break;
        case 14: if (!b.where.axes.empty()) b.where.axes[0] = {static_cast<ir::part_kind>(draw() % 3), number(), number(), number()}; break;
        case 15: b.where.start = number(); break;
        case 16: b.first = number(); b.last = number(); break;
        case 17: b.devices.push_back(number()); break;
        case 18: b.persistent = !b.persistent; break;
        default: std::swap(s.q.tasks[draw() % s.q.tasks.size()], s.q.tasks[draw() % s.q.tasks.size()]); break;
      }
    }
    accepted += check(s.t, s.p, s.q).empty();
  }
  MESSAGE(accepted << " of " << test_effort::cases(1500) << " damaged programs mean the same as before");
  CHECK(accepted < test_effort::cases(300));
}

TEST_CASE("findings say where") {
  std::mt19937 draw(5);
  subject s = tests::checked_step(4, draw);
  s.p.cluster.kinds[0].memory = 64;
  auto const all = check(s.t, s.p, s.q);
  REQUIRE(!all.empty());
  CHECK(all[0].code == fault::memory);
  CHECK(all[0].device == 0);
  CHECK(all[0].text.find("too few") != std::string::npos);
  CHECK(check(s.t, s.p, s.q, 1).size() == 1);
  s.p.nodes.pop_back();
  CHECK(check(s.t, s.p).front().code == fault::wrong_graph);
}

TEST_CASE("an input is fed where it is read, also by an operator that waits for another operand to be moved") {
  computation_graph g;
  int const x = g.add_input("x", {8, 4}), dose = g.add_input("dose", {8, 2});
  int const y = tests::out(g, g.add_with_weights(linear{6, false}, {x}, "fc"));
  int const both = tests::out(g, g.add(concat{-1}, {dose, y}));
  g.add_output("loss", tests::out(g, g.add(mean_squared_error{}, {both, g.add_input("want", {8, 8})})));
  training_graph const t = differentiate(g);
  plan p = tests::serial_plan(g);
  p.cluster = tests::devices(2);
  p.nodes[0].sharding = {0, {{'o', 2, 1}}};                    // then the concatenation needs both halves
  program const q = unroll(t, p, {some_workspace});
  bool moved = false;
  for (task const& k : q.tasks) moved = moved || (is_move(k) && k.micro_batch == 0);
  CHECK(moved);
  CHECK(said(check(t, p, q)) == "");
}
