// tests/ir/machine/precision.test.cpp - FLOP/s and graphs follow the format of numbers, and it is said which they are
#include <tensorpar/ir/machine/precision.hpp>
#include <doctest/doctest.h>

#include <optional>
#include <tensorpar/ir/machine/machine_presets.hpp>

#include "support/small_graphs.hpp"

using namespace tensorpar;
using namespace tests;

namespace {

std::vector<precision> formats() {
  std::vector<precision> r;
  for (int f = 0; f < precisions; ++f) r.push_back(static_cast<precision>(f));
  return r;
}
std::optional<machine> in(machine const& m, precision p) {
  try { return at_precision(m, p); } catch (error const&) { return std::nullopt; }      // not published
}

}  // namespace

TEST_CASE("every preset is given in one of its formats, and has FLOP/s in f32; a shorter format is faster") {
  for (std::string const& name : preset_names()) {
    CAPTURE(name);
    machine const m = preset(name);
    for (device_kind const& k : m.kinds) {
      CAPTURE(k.name);
      if (k.name == "logical") {
        CHECK(k.rates == format_rates());
        continue;
      }
      REQUIRE(format_of(k));
      CHECK(k.rates.f32 > 0);
      double before = 0;
      for (precision p : formats()) {
        if (k.rates.in(p) == 0) continue;
        CHECK(k.rates.in(p) > before);
        before = k.rates.in(p);
      }
    }
    machine const f32 = at_precision(m, precision::f32);
    CHECK(f32.device == m.device);
    CHECK(f32.links == m.links);
    CHECK(precision_text(f32, precision::f32).starts_with("f32: 4 bytes a number, " + m.kinds[0].name));
  }
}

TEST_CASE("the last format that a machine is put into is the one it has, whatever came before") {
  int pairs = 0, changed = 0;
  for (std::string const& name : preset_names()) {
    machine const m = preset(name);
    for (precision a : formats()) {
      std::optional<machine> const first = in(m, a);
      if (!first) continue;
      for (precision b : formats()) {
        CAPTURE(name);
        CAPTURE(static_cast<int>(a));
        CAPTURE(static_cast<int>(b));
        CHECK(in(*first, b) == in(m, b));
        if (std::optional<machine> const there = in(*first, b)) {
          CHECK(in(*there, a) == first);
          changed += *there != *first;
          ++pairs;
        }
      }
    }
    if (m.kinds.size() == 1 && format_of(m.kinds[0])) CHECK(in(m, *format_of(m.kinds[0])) == m);
  }
  CHECK(pairs >= 4 * 16);           // H100, H200, B200 and GB200 have all four
  CHECK(changed >= 4 * 12);
}

TEST_CASE("an H100 computes less in f32 than in bf16, and a V100 not at all in bf16") {
  machine const h = preset("dgx-h100:2");
  CHECK(at_precision(h, precision::bf16) == h);
  CHECK(at_precision(h, precision::fp8).kinds[0].flops == 1979e12);
  CHECK(at_precision(h, precision::tf32).kinds[0].flops == 494.5e12);
  CHECK(at_precision(h, precision::f32).kinds[0].flops == 67e12);
  CHECK(precision_text(h, precision::bf16) == "bf16: 2 bytes a number, H100-SXM5-80GB 989 TFLOP/s");
  CHECK(precision_text(h, precision::bf16, {.moments = dtype::bf16}) ==
        "bf16: 2 bytes a number, H100-SXM5-80GB 989 TFLOP/s, moments in bf16");
  CHECK(precision_text(h, precision::bf16, {.gradients = dtype::bf16}).ends_with("TFLOP/s, gradients in bf16"));
  CHECK(precision_text(h, precision::bf16, {.masters = dtype::bf16}).ends_with("TFLOP/s, no masters"));
  auto const refused = [](char const* name, precision p, char const* valid) {
    try {
      at_precision(preset(name), p);
      FAIL("there is no such rate");
    } catch (error const& e) {
      CHECK(e.problem().find(preset(name).kinds[0].name) != std::string::npos);
      CHECK(e.valid() == valid);
    }
  };
  for (precision p : {precision::tf32, precision::bf16, precision::fp8}) refused("summit:1", p, "f32");
  refused("dgx-a100", precision::fp8, "f32, tf32, bf16");
  CHECK_THROWS_AS(precision_of("fp16"), error);
  for (precision p : formats()) CHECK(precision_of(precision_names[static_cast<int>(p)]) == p);
}

TEST_CASE("a device of one's own keeps its FLOP/s, and the text says that they were given") {
  machine m = preset("logical:2");
  m.kinds[0] = {"mine", 5e12, 1e11, i64{1} << 34, 1e-6, {}};
  machine const same = at_precision(m, precision::bf16);
  CHECK(same == m);
  CHECK(precision_text(same, precision::bf16) == "bf16: 2 bytes a number, mine 5 TFLOP/s as given");
  m.kinds[0] = kinds::h100();
  m.kinds[0].flops = 800e12;                       // measured: not a data sheet's
  CHECK(!format_of(m.kinds[0]));
  CHECK(at_precision(m, precision::f32).kinds[0].flops == 800e12);
  m.kinds[0] = {"mine", 5e12, 1e11, i64{1} << 34, 1e-6, {.f32 = 5e12, .bf16 = 40e12}};
  CHECK(at_precision(m, precision::bf16).kinds[0].flops == 40e12);
  CHECK_THROWS_AS(at_precision(m, precision::tf32), error);
}

TEST_CASE("a graph is put into a format once, and not out of bf16") {
  computation_graph const g = residual_mlp(), half = mixed_precision(g);
  CHECK(precision_in(g) == precision::f32);
  CHECK(precision_in(half) == precision::bf16);
  for (precision p : {precision::f32, precision::tf32}) {
    CHECK(at_precision(g, p).hash() == g.hash());
    CHECK_THROWS_AS(at_precision(half, p), error);
  }
  for (precision p : {precision::bf16, precision::fp8}) {
    CHECK(at_precision(g, p).hash() == half.hash());
    CHECK(at_precision(half, p).hash() == half.hash());
  }
}
