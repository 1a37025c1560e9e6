// tests/op/operators.test.cpp - the laws of every operator, on random sizes; names that differ; the list is complete
#include <set>
#include <support/laws/operator.hpp>
#include <support/operator_samples.hpp>

using namespace tensorpar;

namespace {
template <class... Op> void each(op::op_set<Op...>, auto&& f) { (f(Op{}), ...); }
}  // namespace

TEST_CASE("every operator keeps the laws: splitting a loop and inferring on parts gives the parts of the results") {
  int splits = 0;
  for (unsigned seed = 1; seed <= 25; ++seed) {
    INFO("seed ", seed);
    for (auto const& s : tests::operator_samples(seed)) splits += tests::check_operator_laws(s.op, s.in);
  }
  CHECK(splits > 2000);
}

TEST_CASE("attributes survive being saved") {
  each(op::forward_operators{}, [](auto o) { tests::check_attribute_laws(o); });
  each(op::backward_operators{}, [](auto o) { tests::check_attribute_laws(o); });
  each(op::op_set<parallel::partition, parallel::combine, parallel::replicate, parallel::reduce, parallel::pipeline, parallel::batch>{},
       [](auto o) { tests::check_attribute_laws(o); });
  linear const l{.out = 512, .bias = false, .to = axis("hidden")};
  auto const back = op::any_op(l).as<linear>();
  CHECK(back.out == 512);
  CHECK(!back.bias);
  CHECK(back.to == axis("hidden"));
  CHECK(op::any_op(layernorm{.eps = 1e-7}).as<layernorm>().eps == 1e-7);
}

TEST_CASE("no two operators share a name or its hash, and every one has a sample") {
  std::set<u64> ids, sampled;
  std::set<std::string> names;
  int count = 0;
  auto note = [&]<class Op>(Op) { ids.insert(op::info<Op>.id); names.insert(std::string(Op::name)); ++count; };
  each(op::forward_operators{}, note);
  each(op::backward_operators{}, note);
  each(op::op_set<parallel::partition, parallel::combine, parallel::replicate, parallel::reduce, parallel::pipeline, parallel::batch>{},
       note);
  CHECK(static_cast<int>(ids.size()) == count);
  CHECK(static_cast<int>(names.size()) == count);
  for (auto const& s : tests::operator_samples(1)) sampled.insert(s.op.op->id);
  CHECK(sampled == ids);
}

TEST_CASE("what may be split and what leaves partial sums") {
  auto loops_of = [](op::any_op const& o, std::vector<shape> const& in) {
    auto all = in;
    for (shape const& w : tests::weights_of(o, in)) all.push_back(w);
    return ir::space_of(o, all, tests::results_of(o, in));
  };
  shape const x{8, 16, 32};
  auto l = loops_of(linear{.out = 24}, {x});
  CHECK(l.find('i')->reduced);
  CHECK(l.find('i')->units == 32);
  CHECK(!l.find('o')->reduced);
  CHECK(l.find('o')->units == 24);
  CHECK(l.find('0')->units == 8);
  CHECK(l.find('1')->units == 16);
  auto r = loops_of(op::linear_relu{{.out = 24}}, {x});
  CHECK(r.find('I')->units == 1);          // a function of a sum
  CHECK(r.find('o')->units == 24);
  CHECK(r.find('1')->units == 16);
  auto s = loops_of(softmax{}, {x});
  CHECK(s.find('E')->units == 1);
  auto a = loops_of(attention{.heads = 4}, {x, x, x});
  CHECK(a.find('e')->units == 4);          // by whole heads
  CHECK(a.find('q')->units == 16);
  CHECK(a.find('K')->units == 1);
  auto f = loops_of(op::conv2d_relu{{.out = 12}}, {{4, 8, 6, 6}});
  CHECK(f.find('C')->units == 1);
  CHECK(f.find('n')->units == 4);
  auto c = loops_of(conv2d{.out = 12}, {{4, 8, 6, 6}});
  CHECK(c.find('c')->reduced);
  CHECK(c.find('H')->units == 1);
  auto m = loops_of(op::channel_moments{}, {{4, 8, 6, 6}});
  CHECK(m.find('n')->reduced);
  CHECK(!m.find('c')->reduced);
  auto e = loops_of(embedding{.rows = 100, .width = 16}, {shape{8, 4}.of(dtype::i32)});
  CHECK(e.find('v')->reduced);
  CHECK(e.find('v')->units == 100);
}
