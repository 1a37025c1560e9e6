// tests/plan/optimizer_codec.test.cpp - optimizers go into JSON and back, with keys for what is not usual alone
#include <tensorpar/plan/optimizer_codec.hpp>

#include <doctest/doctest.h>

using namespace tensorpar;

namespace {
optimizer_choice decoded(core::json const& j) { return detail::decode_optimizer({j, "file", "optimizer"}); }
}  // namespace

TEST_CASE("every combination of kind, formats and reactions comes back") {
  for (int k = 0; k < 3 * 3 * 8; ++k) {
    optimizer_choice o{.kind = static_cast<optimizer_kind>(k % 3), .momentum = 0.5, .beta1 = 0.25, .beta2 = 0.125, .eps = 1e-3,
                       .weight_decay = 0.75, .clip_norm = 2, .on_non_finite = static_cast<non_finite>(k / 3 % 3)};
    if (k / 9 & 1) o.moments = dtype::bf16;
    if (k / 9 & 2) o.gradients = dtype::bf16;
    if (k / 9 & 4) o.masters = dtype::bf16;
    core::json const j = detail::encode_optimizer(o);
    CHECK(decoded(j) == o);
    CHECK(j.contains("on_non_finite") == (o.on_non_finite != non_finite::error));
    for (auto const& [key, type] : detail::formats) CHECK(j.contains(key) == (o.*type == dtype::bf16));
  }
}

TEST_CASE("a format that is no format is refused by its key") {
  for (char const* key : {"moments", "gradients", "masters"})
    for (core::json const& bad : {core::json("f32"), core::json("f16"), core::json(2), core::json()}) {
      core::json j = detail::encode_optimizer({});
      j[key] = bad;
      CHECK_THROWS_WITH_AS(decoded(j), doctest::Contains(key), error);
    }
}
