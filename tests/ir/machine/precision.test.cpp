// tests/ir/machine/precision.test.cpp - FLOP/s follow the format of numbers, and it is said which they are
#include <tensorpar/ir/machine/precision.hpp>
#include <doctest/doctest.h>

#include <optional>
#include <tensorpar/ir/machine/machine_presets.hpp>

using namespace tensorpar;

TEST_CASE("every preset has FLOP/s in the format that they are said to be for, and in f32") {
  for (std::string const& name : preset_names()) {
    CAPTURE(name);
    machine const m = preset(name);
    for (device_kind const& k : m.kinds) {
      format_rates const* const r = rates_of(k);
      REQUIRE(r);
      CHECK(r->rate[static_cast<int>(r->preset)] == k.flops);
      CHECK(r->rate[0] > 0);
      for (int f = 0; f + 1 < 3; ++f) CHECK((r->rate[f + 1] == 0 || r->rate[f + 1] > r->rate[f]));
    }
    machine const f32 = at_precision(m, precision::f32);
    CHECK(f32.device == m.device);
    CHECK(f32.links == m.links);
    CHECK(precision_text(m, f32, precision::f32).starts_with("f32: 4 bytes a number, " + m.kinds[0].name));
  }
}

TEST_CASE("the last format that a machine is put into is the one it has, whatever came before") {
  auto const in = [](machine const& m, precision p) -> std::optional<machine> {
    try { return at_precision(m, p); } catch (error const&) { return std::nullopt; }      // not published
  };
  int pairs = 0, changed = 0;
  for (std::string const& name : preset_names()) {
    machine const m = preset(name);
    for (int a = 0; a < 3; ++a) {
      std::optional<machine> const first = in(m, static_cast<precision>(a));
      if (!first) continue;
      for (int b = 0; b < 3; ++b) {
        CAPTURE(name);
        CAPTURE(precision_names[a]);
        CAPTURE(precision_names[b]);
        CHECK(in(*first, static_cast<precision>(b)) == in(m, static_cast<precision>(b)));
        if (std::optional<machine> const there = in(*first, static_cast<precision>(b))) {
          CHECK(in(*there, static_cast<precision>(a)) == first);
          CHECK(precision_text(*first, *there, static_cast<precision>(b)) == precision_text(m, *there, static_cast<precision>(b)));
          changed += *there != *first;
          ++pairs;
        }
      }
    }
    if (m.kinds.size() == 1) CHECK(in(m, rates_of(m.kinds[0])->preset) == m);
  }
  CHECK(pairs >= 3 * 9);            // H100, H200 and A40 have all three
  CHECK(changed >= 3 * 6);
}

TEST_CASE("an H100 computes less in f32 than in bf16, and a V100 not at all in bf16") {
  machine const h = preset("dgx-h100:2");
  CHECK(at_precision(h, precision::bf16) == h);
  CHECK(at_precision(h, precision::tf32).kinds[0].flops == 494.5e12);
  CHECK(at_precision(h, precision::f32).kinds[0].flops == 67e12);
  CHECK(precision_text(h, h, precision::bf16) == "bf16: 2 bytes a number, H100-SXM5-80GB 989 TFLOP/s");
  for (precision p : {precision::tf32, precision::bf16}) {
    try {
      at_precision(preset("summit:1"), p);
      FAIL("a V100 has no such rate");
    } catch (error const& e) {
      CHECK(e.problem().find("V100-SXM2-16GB") != std::string::npos);
      CHECK(e.valid() == "f32");
    }
  }
  CHECK_THROWS_AS(precision_of("fp8"), error);
  CHECK(precision_of("tf32") == precision::tf32);
}

TEST_CASE("a device of one's own keeps its FLOP/s, and the text says that they were given") {
  machine m = preset("logical:2");
  m.kinds[0] = {"mine", 5e12, 1e11, i64{1} << 34, 1e-6};
  machine const same = at_precision(m, precision::bf16);
  CHECK(same == m);
  CHECK(precision_text(m, same, precision::bf16) == "bf16: 2 bytes a number, mine 5 TFLOP/s as given");
  m.kinds[0] = kinds::h100();
  m.kinds[0].flops = 800e12;                       // measured: not a data sheet's
  CHECK(at_precision(m, precision::f32).kinds[0].flops == 800e12);
}
