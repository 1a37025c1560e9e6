// tests/typed/queries.test.cpp - counts against numbers worked out by hand
#include <doctest/doctest.h>

#include <support/typed_models.hpp>
#include <tensorpar/typed/queries.hpp>
#include <tensorpar/typed/topology.hpp>

using namespace tensorpar;

TEST_CASE("parameters and work of a multi-layer perceptron") {
  CHECK(parameters(typed<models::mlp>) == 535818);
  CHECK(flops(typed<models::mlp>, models::batch = 1) == 2. * (784 * 512 + 512 * 256 + 256 * 10) + 512 + 256);
  CHECK(flops(typed<models::mlp>, models::batch = 7) == 7 * flops(typed<models::mlp>));   // a symbol that is not bound counts as one
}

TEST_CASE("GPT-3's size") {
  auto const billions = static_cast<double>(parameters(typed<models::gpt<96, 96, 12288>>)) / 1e9;
  CHECK(billions > 174);
  CHECK(billions < 176);
}

TEST_CASE("output shapes") {
  CHECK(op::spell(output_shape(typed<models::gpt<2, 12, 768>>, "logits")) == "[batch,seq=1024,vocab=50304]");
  CHECK(op::spell(output_shape(typed<models::gpt<2, 12, 768>>, "logits", models::batch = 3)) == "[batch=3,seq=1024,vocab=50304]");
  CHECK_THROWS_WITH_AS(output_shape(typed<models::mlp>, "nothing"),
                       "the model has no output of this name (at output_shape); valid: the name of an output", error);
}

TEST_CASE("the depth of a model at run time") {
  for (i64 n : {1, 3, 12}) {
    model_builder g;
    models::gpt<1, 12, 768>::define(g, n);
    CHECK(parameters(g.view()) == 2LL * 50304 * 768 + n * (12LL * 768 * 768 + 13 * 768) + 2 * 768);
  }
}
