// tests/cost/model_ref.test.cpp - any model behind one type: the same answers, asked of the same object
#include <tensorpar/cost/model_ref.hpp>

#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/cost/combinators.hpp>
#include <tensorpar/ir/machine/machine_presets.hpp>

#include "support/laws/cost_model.hpp"

using namespace tensorpar;

namespace {
/// Counts how often it is asked.
struct counted {
  int* asked = nullptr;
  cost::analytical inner{};
  double seconds(cost::compute_query const& q) const { return ++*asked, inner.seconds(q); }
  double seconds(cost::reshard_query const& q) const { return ++*asked, 3 * inner.seconds(q); }
};
}  // namespace

TEST_CASE("a reference to a model keeps the laws of models") {
  cost::scaled<cost::analytical> const model{{}, 2, 0.5};
  for (char const* name : {"logical-2x2", "logical:6"}) laws::check_cost_model(cost::model_ref(model), preset(name));
}

TEST_CASE("it answers as its model does, and asks it once; so do its copies and references to it") {
  machine const m = preset("logical-2x2");
  int asked = 0;
  counted const model{&asked};
  cost::model_ref const ref(model), copy = ref, again(copy);
  auto const op = laws::some_operators(8).front();
  auto const step = laws::some_steps(m, 1, 1).front();
  shape const s{dim(16), dim(8)};
  cost::compute_query const c = op.query(4, m.kinds[0]);
  cost::reshard_query const q{step, s, 4, m};
  for (cost::model_ref const& r : {ref, copy, again}) {
    asked = 0;
    CHECK(r.seconds(c) == cost::analytical{}.seconds(c));
    CHECK(r.seconds(q) == 3 * cost::analytical{}.seconds(q));
    CHECK(asked == 2);
  }
}
