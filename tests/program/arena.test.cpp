// tests/program/arena.test.cpp - offsets never overlap, never go below the bound, and stay close to the best
#include <support/peaks.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <random>
#include <tensorpar/program/arena.hpp>

using namespace tensorpar;

namespace {

bool disjoint(std::vector<passes::lifetime> const& all, passes::packing const& p) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (p.offset[i] % passes::arena_alignment || p.offset[i] < 0 || p.offset[i] + all[i].bytes > p.bytes) return false;
    for (std::size_t j = 0; j < i; ++j) {
      bool const together = all[i].first <= all[j].last && all[j].first <= all[i].last;
      if (together && all[i].bytes && all[j].bytes && p.offset[i] < p.offset[j] + all[j].bytes && p.offset[j] < p.offset[i] + all[i].bytes)
        return false;
    }
  }
  return true;
}

// The optimum: some order, each at the lowest place that is free, reaches it.
i64 brute_force(std::vector<passes::lifetime> const& all) {
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  i64 best = -1;
  do {
    std::vector<i64> at(all.size(), 0);
    i64 end = 0;
    for (std::size_t k = 0; k < order.size(); ++k) {
      std::size_t const i = order[k];
      for (bool moved = true; moved;) {
        moved = false;
        for (std::size_t m = 0; m < k; ++m) {
          std::size_t const j = order[m];
          if (all[i].last < all[j].first || all[j].last < all[i].first) continue;
          if (at[i] < at[j] + passes::aligned(all[j].bytes) && at[j] < at[i] + passes::aligned(all[i].bytes)) {
            at[i] = at[j] + passes::aligned(all[j].bytes);
            moved = true;
          }
        }
      }
      end = std::max(end, at[i] + passes::aligned(all[i].bytes));
    }
    if (best < 0 || end < best) best = end;
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

i64 live_by_hand(std::vector<passes::lifetime> const& all) {
  i64 most = 0;
  for (passes::lifetime const& x : all)                          // the most lives at some start
    most = std::max(most, std::accumulate(all.begin(), all.end(), i64{0}, [&](i64 n, passes::lifetime const& y) {
                      return y.first <= x.first && x.first <= y.last ? n + passes::aligned(y.bytes) : n;
                    }));
  return most;
}

std::vector<passes::lifetime> random_lives(std::mt19937& r, int n, int tasks, int largest) {
  std::vector<passes::lifetime> all;
  for (int i = 0; i < n; ++i) {
    int const a = static_cast<int>(r() % static_cast<unsigned>(tasks)), b = static_cast<int>(r() % static_cast<unsigned>(tasks));
    all.push_back({static_cast<i64>(r() % static_cast<unsigned>(largest)), std::min(a, b), std::max(a, b)});
  }
  return all;
}

// Activations that live until their backward operator, gradients and workspaces that pass by: a training step.
std::vector<passes::lifetime> training_lives(std::mt19937& r, int layers) {
  std::vector<passes::lifetime> all;
  int const end = 4 * layers;
  for (int i = 0; i < layers; ++i) {
    i64 const bytes = 1024 * (1 + static_cast<i64>(r() % 64));
    all.push_back({bytes, 2 * i, end - 2 * i - 1});                                // activation
    all.push_back({bytes / 4, 2 * i, 2 * i});                                      // workspace
    all.push_back({bytes, end - 2 * i - 2, end - 2 * i + 1});                      // gradient of the activation
    all.push_back({bytes * 3, end - 2 * i - 1, end + 1});                          // gradient of the weight, until the updates
    all.push_back({static_cast<i64>(r() % 4096), 2 * i + 1, 2 * i + 1 + static_cast<int>(r() % 4)});
  }
  return all;
}

/// Long lives first, each above all that share its time.
std::vector<i64> nested_by_hand(std::vector<passes::lifetime> const& all) {
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) {
    int const a = all[i].last - all[i].first, b = all[j].last - all[j].first;
    return a != b ? a > b : all[i].bytes > all[j].bytes;
  });
  std::vector<i64> at(all.size(), 0);
  std::vector<std::size_t> placed;
  for (std::size_t i : order) {
    if (!all[i].bytes) continue;
    for (std::size_t j : placed)
      if (all[i].first <= all[j].last && all[j].first <= all[i].last) at[i] = std::max(at[i], at[j] + passes::aligned(all[j].bytes));
    placed.push_back(i);
  }
  return at;
}

/// In order of time, each in the smallest gap between those that live then, or above them.
std::vector<i64> in_time_by_hand(std::vector<passes::lifetime> const& all, bool backwards) {
  auto const start = [&](std::size_t i) { return backwards ? -all[i].last : all[i].first; };
  auto const end = [&](std::size_t i) { return backwards ? -all[i].first : all[i].last; };
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < all.size(); ++i) if (all[i].bytes) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) {
    return start(i) != start(j) ? start(i) < start(j) : end(i) != end(j) ? end(i) > end(j) : all[i].bytes > all[j].bytes;
  });
  std::vector<i64> at(all.size(), 0);
  for (std::size_t k = 0; k < order.size(); ++k) {
    std::vector<std::pair<i64, i64>> live;
    for (std::size_t m = 0; m < k; ++m)
      if (end(order[m]) >= start(order[k])) live.push_back({at[order[m]], at[order[m]] + passes::aligned(all[order[m]].bytes)});
    std::sort(live.begin(), live.end());
    i64 const bytes = passes::aligned(all[order[k]].bytes);
    i64 reached = 0, best = -1, room = 0;
    for (auto const& [from, to] : live) {
      if (from - reached >= bytes && (best < 0 || from - reached < room)) { best = reached; room = from - reached; }
      reached = to;
    }
    at[order[k]] = best < 0 ? reached : best;
  }
  return at;
}

buffer make_buffer(i64 bytes, bool persistent, int first, int last, std::vector<int> devices) {
  buffer b;
  b.bytes = bytes;
  b.persistent = persistent;
  b.first = first;
  b.last = last;
  b.devices = std::move(devices);
  return b;
}

}  // namespace

TEST_CASE("packings are disjoint, aligned and not below the bound") {
  std::mt19937 r(1);
  for (int turn = 0; turn < 400; ++turn) {
    auto const all = random_lives(r, 1 + static_cast<int>(r() % 40), 1 + static_cast<int>(r() % 30), turn % 2 ? 300 : 100000);
    CHECK(passes::max_live(all) == live_by_hand(all));
    constexpr i64 any = core::max_device_bytes;
    for (passes::packing const& p : {passes::detail::pack_nested(all), passes::detail::pack_in_time(all, false, any),
                                     passes::detail::pack_in_time(all, true, any), passes::detail::pack_by_size(all, any), passes::pack(all)}) {
      REQUIRE(disjoint(all, p));
      REQUIRE(p.bytes >= passes::max_live(all));
    }
  }
}

TEST_CASE("packings lie where the same rules put them without a skyline and without a list of holes") {
  std::mt19937 r(12);
  constexpr i64 any = core::max_device_bytes;
  for (int turn = 0; turn < 300; ++turn) {
    auto const all = random_lives(r, 1 + static_cast<int>(r() % 60), 1 + static_cast<int>(r() % 40), turn % 2 ? 300 : 100000);
    REQUIRE(passes::detail::pack_nested(all).offset == nested_by_hand(all));
    for (bool backwards : {false, true}) REQUIRE(passes::detail::pack_in_time(all, backwards, any).offset == in_time_by_hand(all, backwards));
    i64 least = passes::detail::pack_nested(all).bytes;
    for (passes::packing const& p : {passes::detail::pack_in_time(all, false, any), passes::detail::pack_in_time(all, true, any),
                                     passes::detail::pack_by_size(all, any)})
      least = std::min(least, p.bytes);
    REQUIRE(passes::pack(all).bytes == least);
  }
}

TEST_CASE("tiny packings against brute force") {
  std::mt19937 r(2);
  int exact = 0, turns = 300;
  i64 ours = 0, best = 0;
  for (int turn = 0; turn < turns; ++turn) {
    auto const all = random_lives(r, 2 + turn % 5, 6, 1000);
    i64 const optimum = brute_force(all), got = passes::pack(all).bytes;
    REQUIRE(optimum >= passes::max_live(all));
    REQUIRE(got >= optimum);
    REQUIRE(got <= 2 * optimum);
    exact += got == optimum;
    ours += got;
    best += optimum;
  }
  MESSAGE("optimal in " << exact << " of " << turns
                        << ", bytes over the optimum: " << static_cast<double>(ours) / static_cast<double>(best));
  CHECK(exact >= turns * 95 / 100);
}

TEST_CASE("nested lives meet the bound exactly") {
  std::vector<passes::lifetime> all;
  for (int i = 0; i < 50; ++i) all.push_back({100 + 7 * i, i, 200 - i});
  CHECK(passes::pack(all).bytes == passes::max_live(all));
}

TEST_CASE("a training step stays close to the bound") {
  std::mt19937 r(3);
  double worst = 1;
  for (int turn = 0; turn < 30; ++turn) {
    auto const all = training_lives(r, 5 + 8 * turn);
    passes::packing const p = passes::pack(all);
    REQUIRE(disjoint(all, p));
    worst = std::max(worst, static_cast<double>(p.bytes) / static_cast<double>(passes::max_live(all)));
  }
  MESSAGE("worst arena over bound: " << worst);
  CHECK(worst <= 1.1);
}

TEST_CASE("no bytes and no buffers") {
  CHECK(passes::pack({}).bytes == 0);
  CHECK(passes::pack({{0, 3, 9}, {0, 0, 5}}).bytes == 0);
  CHECK(passes::pack({{1, 0, 0}}).bytes == passes::arena_alignment);
  program p;
  passes::assign_offsets(p, 3);
  CHECK(p.arena == std::vector<i64>{0, 0, 0});
}

TEST_CASE("a program's offsets: persistent first, every device on its own") {
  program p;
  p.buffers = {make_buffer(100, false, 0, 2, {0, 1}), make_buffer(200, true, 0, 9, {0, 2}), make_buffer(300, false, 2, 3, {0}),
               make_buffer(64, true, 0, 9, {0, 1}),   make_buffer(300, false, 3, 4, {1, 2})};
  passes::assign_offsets(p, 4);
  CHECK(p.buffers[1].offset == std::vector<i64>{0, 0});
  CHECK(p.buffers[3].offset == std::vector<i64>{256, 0});
  CHECK(p.arena == std::vector<i64>{256 + 64 + 128 + 320, 64 + 320, 256 + 320, 0});
  for (int d = 0; d < 4; ++d) CHECK(p.arena[static_cast<std::size_t>(d)] >= arena_bound(p, d));
  CHECK(arena_bound(p, 0) == 256 + 64 + 128 + 320);
  CHECK(arena_bound(p, 1) == 64 + 320);
}

TEST_CASE("devices with equal work share a packing, others do not disturb them") {
  std::mt19937 r(4);
  program p;
  for (int i = 0; i < 200; ++i) {
    passes::lifetime const l = random_lives(r, 1, 50, 5000)[0];
    p.buffers.push_back(make_buffer(l.bytes, i % 10 == 0, l.first, l.last, i % 3 ? std::vector<int>{0, 1, 2, 3} : std::vector<int>{i % 4}));
  }
  passes::assign_offsets(p, 4);
  for (int d = 0; d < 4; ++d) {
    std::vector<passes::lifetime> all;
    passes::packing q;
    for (buffer const& b : p.buffers)
      for (std::size_t k = 0; k < b.devices.size(); ++k)
        if (b.devices[k] == d) {
          all.push_back(b.persistent ? passes::lifetime{b.bytes, 0, 50} : passes::lifetime{b.bytes, b.first, b.last});
          q.offset.push_back(b.offset[k]);
        }
    q.bytes = p.arena[static_cast<std::size_t>(d)];
    CHECK(disjoint(all, q));
    CHECK(q.bytes >= arena_bound(p, d));
  }
  program again = p;
  passes::assign_offsets(again, 4);
  for (std::size_t b = 0; b < p.buffers.size(); ++b) CHECK(again.buffers[b].offset == p.buffers[b].offset);
}

TEST_CASE("20,000 buffers on 64 devices") {
  std::mt19937 r(5);
  program p;
  std::vector<int> everyone(64);
  std::iota(everyone.begin(), everyone.end(), 0);
  for (passes::lifetime const& l : training_lives(r, 4000)) p.buffers.push_back(make_buffer(l.bytes, false, l.first, l.last, everyone));
  auto const start = std::chrono::steady_clock::now();
  passes::assign_offsets(p, 64);
  double const seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  MESSAGE(p.buffers.size() << " buffers on 64 devices: " << seconds << " s, arena over bound "
                           << static_cast<double>(p.arena[0]) / static_cast<double>(arena_bound(p, 0)));
  CHECK(p.arena[0] == p.arena[63]);
  CHECK(p.arena[0] <= arena_bound(p, 0) * 11 / 10);
}

TEST_CASE("bytes beyond 2^62 are refused, never packed into less") {
  i64 const third = core::max_device_bytes / 3 + 64;
  CHECK_NOTHROW(passes::pack({{third, 0, 5}, {third, 1, 3}}));
  CHECK_THROWS_WITH_AS(passes::pack({{third, 0, 5}, {third, 1, 3}, {third, 2, 4}}), doctest::Contains("more than 2^62 bytes"), error);
  i64 const most = std::numeric_limits<i64>::max();
  CHECK_THROWS_WITH_AS(passes::pack({{most, 0, 5}, {most, 1, 3}}), doctest::Contains("more than 2^62 bytes"), error);
  program p;
  for (int k = 0; k < 8; ++k) {
    buffer b;
    b.bytes = core::max_device_bytes / 4;
    b.devices = {0};
    b.persistent = true;
    p.buffers.push_back(b);
  }
  CHECK_THROWS_WITH_AS(passes::assign_offsets(p, 1), doctest::Contains("more than 2^62 bytes"), error);
}
