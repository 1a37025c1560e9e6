// tests/search/pipeline/stages/in_flight_needs.test.cpp - needs are what the recursion for samples in flight says, and numbers stand for them
#include <tensorpar/search/pipeline/stages/in_flight_needs.hpp>
#include <doctest/doctest.h>

#include <random>
#include <support/effort.hpp>

using namespace tensorpar;
using namespace tensorpar::search;
using search::detail::in_flight_needs;
using search::detail::stage_batching;

TEST_CASE("of nothing, of what follows, of two at once: sample by sample; equal needs have one number") {
  std::mt19937 draw(1);
  for (int turn = 0; turn < test_effort::cases(200); ++turn) {
    i64 const mini_batch = i64{8} << draw() % 4;
    std::vector<stage_batching> batchings;
    for (i64 b = 1; b <= 4; b *= 2) for (int k = 1; k <= 2; ++k) if (draw() % 3 || batchings.empty()) batchings.push_back({b, k});
    int const n = static_cast<int>(batchings.size());
    in_flight_needs t(batchings, mini_batch);
    CHECK(t.batchings() == batchings);
    std::map<int, std::vector<i64>> known;                    // by number: what it asks for
    auto asks = [&](int d) {
      std::vector<i64> v;
      for (int r = 0; r < n; ++r) v.push_back(t.of(d, r));
      return v;
    };
    auto note = [&](int d, std::vector<i64> const& want) {
      CHECK(asks(d) == want);
      for (auto const& [number, v] : known) CHECK((v == want) == (number == d));
      known[d] = want;
    };
    note(t.none(), std::vector<i64>(batchings.size(), 0));
    std::vector<i64> own;
    for (stage_batching const& r : batchings) own.push_back(r.k * r.micro_batch);
    note(t.nothing_follows(), own);
    for (int step = 0; step < 30; ++step) {
      auto any = [&] { auto it = known.begin(); std::advance(it, static_cast<long>(draw() % known.size())); return it->first; };
      int const a = any(), b = any();
      std::vector<i64> most = known[a];
      bool within = true;
      for (int r = 0; r < n; ++r) {
        i64 const x = known[a][static_cast<std::size_t>(r)], y = known[b][static_cast<std::size_t>(r)];
        most[static_cast<std::size_t>(r)] = std::max(x, y);
        within = within && x <= y;
      }
      CHECK(t.within(a, b) == within);
      int const joined = t.joined(a, b);
      note(joined, most);
      CHECK(t.joined(b, a) == joined);
      CHECK(t.within(a, joined));
      int const r = static_cast<int>(draw() % static_cast<unsigned>(n));
      stage_batching const y = batchings[static_cast<std::size_t>(r)];
      i64 const flight = std::max<i64>(y.k * y.micro_batch, t.of(a, r));
      std::vector<i64> want;
      for (stage_batching const& x : batchings) {
        i64 const asked = in_flight_grouped(x.k, x.micro_batch, y.k, y.micro_batch, flight);
        want.push_back(std::min(mini_batch, std::max<i64>(x.k * x.micro_batch, asked)));
      }
      note(t.after(r, flight), want);
    }
  }
}
