// tests/check/pipeline.test.cpp - the checker on pipelines' programs: accepted as unrolled, refused after any change that matters
#include <tensorpar/check/check.hpp>
#include <tensorpar/program/send_early.hpp>

#include <doctest/doctest.h>

#include <functional>

#include "support/effort.hpp"
#include "support/random_pipeline.hpp"
#include <tensorpar/program/unroll.hpp>

using namespace tests;

namespace {

struct sample {
  planned_step step;
  program made;
};
sample random_sample(std::mt19937& draw, int devices) {
  computation_graph const g = residual_mlp();
  plan p = random_pipeline(g, {.devices = devices}, 1, 4, draw);
  p.optimizer.kind = optimizer_kind::momentum;
  sample s{tensorpar::passes::pipeline_pass(g, p), {}};
  s.made = unroll(s.step);
  return s;
}

/// Tasks that a mutation could change.
std::vector<std::size_t> tasks_where(program const& p, std::function<bool(task const&)> const& f) {
  std::vector<std::size_t> r;
  for (std::size_t i = 0; i < p.tasks.size(); ++i) if (f(p.tasks[i])) r.push_back(i);
  return r;
}

/// Tries a change on many random pipelines; it returns false where there is nothing to change.
void caught(char const* what, std::function<bool(program&, std::mt19937&)> const& change) {
  CAPTURE(what);
  std::mt19937 draw(11);
  int tried = 0;
  for (int i = 0; i < test_effort::cases(24); ++i) {
    sample const s = random_sample(draw, 2 + i % 4);
    program broken = s.made;
    if (!change(broken, draw)) continue;
    ++tried;
    CAPTURE(i);
    CHECK(!check(s.step.graph, s.step.plan, broken).empty());
  }
  CHECK(tried > 0);
}
template <class T> T pick(std::vector<T> const& all, std::mt19937& draw) { return all[draw() % all.size()]; }
void erase(program& p, std::size_t i) {
  p.tasks.erase(p.tasks.begin() + static_cast<std::ptrdiff_t>(i));
  int const at = static_cast<int>(i), last = static_cast<int>(p.tasks.size()) - 1;
  for (task& t : p.tasks) if (t.other_half > at) --t.other_half;
  for (buffer& b : p.buffers) {
    if (b.first > at) --b.first;
    if (b.last >= at && b.last > b.first) --b.last;
    b.first = std::min(b.first, last);
  }
}
bool receives(task const& t) { return t.kind == task_kind::receive; }
bool sends(task const& t) { return t.kind == task_kind::send; }

}  // namespace

TEST_CASE("sends stand right behind what makes their value, receives behind their sends, and nobody exchanges across groups") {
  std::mt19937 draw(3);
  for (int i = 0; i < test_effort::cases(20); ++i) {
    sample const s = random_sample(draw, 2 + i % 4);
    program const& p = s.made;
    for (std::size_t t = 0; t < p.tasks.size(); ++t) {
      task const& x = p.tasks[t];
      if (sends(x)) {
        CHECK(x.other_half > static_cast<int>(t));
        CHECK(p.tasks[static_cast<std::size_t>(x.other_half)].other_half == static_cast<int>(t));
        std::size_t maker = t - 1;
        while (sends(p.tasks[maker])) --maker;
        std::vector<int> const& out = p.tasks[maker].out;
        CHECK(std::find(out.begin(), out.end(), x.in[0]) != out.end());
      }
      if (x.kind == task_kind::reshard && x.step.kind == tensorpar::ir::reshard_kind::exchange) {
        std::vector<int> const &a = p.buffers[static_cast<std::size_t>(x.in[0])].devices,
            &b = p.buffers[static_cast<std::size_t>(x.out[0])].devices;
        bool common = false;
        for (int d : a) common = common || std::binary_search(b.begin(), b.end(), d);
        CHECK((common || x.micro_batch < 0 || p.buffers[static_cast<std::size_t>(x.in[0])].persistent));
      }
    }
    for (buffer const& b : p.buffers)
      if (b.in_place_of >= 0) CHECK(b.offset == p.buffers[static_cast<std::size_t>(b.in_place_of)].offset);
  }
}

TEST_CASE("wrong pipelines are caught") {
  caught("another value is received", [](program& p, std::mt19937& draw) {
    auto const all = tasks_where(p, receives);
    for (std::size_t a : all)
      for (std::size_t b : all) {
        buffer const &x = p.buffers[static_cast<std::size_t>(p.tasks[a].out[0])],
            &y = p.buffers[static_cast<std::size_t>(p.tasks[b].out[0])];
        if (a < b && x.value != y.value && x.where == y.where && x.type == y.type && draw() % 2) {
          std::swap(p.tasks[a].out, p.tasks[b].out);
          return true;
        }
      }
    return false;
  });
  caught("a micro-batch's gradient is added twice and another never", [](program& p, std::mt19937& draw) {
    auto const all = tasks_where(p, [&](task const& t) {
      return t.kind == task_kind::compute && t.out.size() == 1 && p.buffers[static_cast<std::size_t>(t.out[0])].in_place_of >= 0;
    });
    if (all.empty()) return false;
    task& t = p.tasks[pick(all, draw)];
    t.in[1] = t.in[0];
    return true;
  });
  caught("a sum lies elsewhere than what it is in place of", [](program& p, std::mt19937& draw) {
    std::vector<std::size_t> all;
    for (std::size_t b = 0; b < p.buffers.size(); ++b) if (p.buffers[b].in_place_of >= 0) all.push_back(b);
    if (all.empty()) return false;
    for (i64& at : p.buffers[pick(all, draw)].offset) at += 64;
    return true;
  });
  caught("a sum claims the place of a buffer that is still read", [](program& p, std::mt19937&) {
    for (std::size_t b = 0; b < p.buffers.size(); ++b)
      if (int const o = p.buffers[b].in_place_of; o >= 0) {
        ++p.buffers[static_cast<std::size_t>(o)].last;
        if (p.buffers[static_cast<std::size_t>(o)].last < static_cast<int>(p.tasks.size())) return true;
      }
    return false;
  });
  caught("two receives take each other's message", [](program& p, std::mt19937& draw) {
    auto const all = tasks_where(p, receives);
    if (all.size() < 2) return false;
    std::size_t const a = pick(all, draw);
    std::size_t b = pick(all, draw);
    while (a == b) b = pick(all, draw);
    std::swap(p.tasks[a].other_half, p.tasks[b].other_half);
    p.tasks[static_cast<std::size_t>(p.tasks[a].other_half)].other_half = static_cast<int>(a);
    p.tasks[static_cast<std::size_t>(p.tasks[b].other_half)].other_half = static_cast<int>(b);
    return true;
  });
  caught("a device does not join a send", [](program& p, std::mt19937& draw) {
    auto const all = tasks_where(p, [](task const& t) { return sends(t) && t.devices.size() > 1; });
    if (all.empty()) return false;
    p.tasks[pick(all, draw)].devices.pop_back();
    return true;
  });
  caught("a value is sent from another layout", [](program& p, std::mt19937& draw) {
    auto const all = tasks_where(p, sends);
    if (all.empty()) return false;
    task& t = p.tasks[pick(all, draw)];
    ++t.step.before.start;
    p.tasks[static_cast<std::size_t>(t.other_half)].step = t.step;
    return true;
  });
  caught("too little space to pack in", [](program& p, std::mt19937& draw) {
    auto const all = tasks_where(p, [](task const& t) { return receives(t) && t.workspace >= 0; });
    if (all.empty()) return false;
    p.buffers[static_cast<std::size_t>(p.tasks[pick(all, draw)].workspace)].bytes = 4;
    return true;
  });
  caught("a parameter that is kept in parts is not gathered", [](program& p, std::mt19937& draw) {
    auto const all = tasks_where(p, [&](task const& t) {
      return t.kind == task_kind::reshard && p.buffers[static_cast<std::size_t>(t.in[0])].persistent;
    });
    if (all.empty()) return false;
    erase(p, pick(all, draw));
    return true;
  });
  caught("another value is gathered as a parameter", [](program& p, std::mt19937& draw) {
    auto const all = tasks_where(p, [&](task const& t) {
      return t.kind == task_kind::reshard && p.buffers[static_cast<std::size_t>(t.in[0])].persistent;
    });
    for (std::size_t i : all)
      for (std::size_t b = 0; b < p.buffers.size(); ++b)
        if (p.buffers[b].where == p.tasks[i].step.before && p.buffers[b].value >= 0 && p.buffers[b].persistent &&
            p.buffers[b].value != p.buffers[static_cast<std::size_t>(p.tasks[i].in[0])].value &&
            p.buffers[b].type == p.buffers[static_cast<std::size_t>(p.tasks[i].in[0])].type && draw() % 2) {
          p.tasks[i].in[0] = static_cast<int>(b);
          return true;
        }
    return false;
  });
  caught("an operator does not run", [](program& p, std::mt19937& draw) {
    auto const all = tasks_where(p, [](task const& t) { return t.kind == task_kind::compute; });
    erase(p, pick(all, draw));
    return true;
  });
}
