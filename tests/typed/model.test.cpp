// tests/typed/model.test.cpp - complaints at run time: the words of the compile-time errors; composition; random models
#include <doctest/doctest.h>

#include <random>
#include <support/typed_models.hpp>
#include <tensorpar/typed/typed.hpp>
#include <tensorpar/typed/model.hpp>

using namespace tensorpar;

namespace {

constexpr axis batch_axis{"batch"}, f{"features"};

std::string refusal(auto&& define) {
  model_builder g;
  define(g);
  try {
    lower(g, {batch_axis = 4});
  } catch (error const& e) {
    return e.problem();
  }
  return "accepted";
}

/// A random model: operators on what is open, sometimes a repeated block. Everything left over becomes an output.
void random_model(model_builder& g, unsigned seed, int n) {
  std::mt19937 r(seed);
  auto below = [&](std::size_t k) { return static_cast<std::size_t>(r() % static_cast<unsigned>(k)); };
  std::vector<ref> open{g.input("x", {batch_axis, f(8)})};
  auto take = [&] {
    std::size_t const i = below(open.size());
    ref const x = open[i];
    if (below(3)) open.erase(open.begin() + static_cast<std::ptrdiff_t>(i));
    return x;
  };
  for (int k = 0; k < n; ++k) {
    ref const x = take();
    switch (below(7)) {
      case 0: open.push_back(x | linear{8}); break;
      case 1: open.push_back(x | relu{}); break;
      case 2: open.push_back(open.empty() ? x | gelu{} : x + open[below(open.size())]); break;
      case 3: { auto const [a, b] = x | split<2>(); open.push_back(all(b, a) | concat{}); break; }
      case 4: open.push_back(x | repeat(static_cast<i64>(below(4)), residual(linear{8} | relu{}))); break;
      case 5: open.push_back(x | repeat(2, linear{8} | repeat(2, seq(layernorm{})))); break;
      default: open.push_back(x | layernorm{});
    }
  }
  // what was taken away and never used again cannot exist: every taken tensor has a user
  for (std::size_t i = 0; i < open.size(); ++i) g.output({"y", static_cast<int>(i)}, open[i]);
}

template <int I> struct pointwise {
  static constexpr auto notation = "... -> ...";
  constexpr op::inference infer(shapes in) const { return in[0]; }
};
namespace own {
struct relu : pointwise<0> { static constexpr auto name = "relu"; };   // not the library's
struct reduce_mine : pointwise<1> { static constexpr auto name = "reduce"; };
struct mine : pointwise<2> { static constexpr auto name = "mine"; };
struct mine_too : pointwise<3> { static constexpr auto name = "mine"; };
}  // namespace own

}  // namespace

TEST_CASE("complaints say what, both shapes and why") {
  CHECK(refusal([](auto& g) {
          auto x = g.input("x", {batch_axis, f(8)});
          g.output("y", x + (x | linear{.out = 10, .to = axis("classes")}));
        }) == "shape mismatch in add: operands must have one shape: [batch,features=8], [batch,classes=10]");
  CHECK(refusal([](auto& g) { g.output("y", g.input("x", {batch_axis, f(8)}) | named("first", conv2d{4})); }) ==
        "shape mismatch in conv2d(first): conv2d takes [n,c,h,w]: [batch,features=8], []");
  CHECK(refusal([](auto& g) { g.output("y", g.input("x", {batch_axis, 8}, dtype::i32) | linear{4}); }) ==
        "shape mismatch in linear: linear takes real numbers: [batch,8]i32, []");
  CHECK(refusal([](auto& g) {
          auto x = g.input("x", {batch_axis, 8});
          g.output("y", all(x, x) | linear{4});
        }) == "wrong number of operands of linear: 2 given, 1, or with all weights 3 wanted");
  CHECK(refusal([](auto& g) {
          g.output("y", g.input("x", {batch_axis, 8}) | add{});
        }) == "wrong number of operands of add: 1 given, 2 wanted");
  CHECK(refusal([](auto& g) { g.output("y", g.input("x", {1, 2, 3, 4, 5, 6, 7}) | relu{}); }) ==
        "too many axes of input or weight(x): 7 given, at most 6");
  CHECK(refusal([](auto& g) {
          auto x = g.input("x", {batch_axis, 8});
          g.output("y", all(x, g.weight("w", {1, 2, 3, 4, 5, 6, 7, 8}, op::init::zeros)) | linear{4});
        }) == "too many axes of input or weight(w): 8 given, at most 6");
  CHECK(refusal([](auto& g) {
          auto x = g.input("x", {batch_axis, 8});
          g.output("y", all(x, g.weight({4, 9})) | linear{.out = 4, .bias = false});
        }) == "shape mismatch in linear: shared weight does not fit: [4,9], [4,8]");
  CHECK(refusal([](auto& g) { g.output("y", g.input("x", {batch_axis, 8}) | repeat(2, linear{4})); }) ==
        "shape mismatch in repeat: the block must return what it takes: [batch,8], [batch,4]");
  CHECK(refusal([](auto& g) {
          g.output("y", g.input("x", {batch_axis, 8}) | repeat(-1, relu{}));
        }) == "shape mismatch in repeat: a negative number of turns: [], [-1]");
  CHECK(refusal([](auto& g) {
          bundle b{};
          auto x = g.input("x", {batch_axis, 8});
          for (int i = 0; i < 33; ++i) b.push(x);
          g.output("y", b | concat{});
        }) == "shape mismatch in concat: a join takes at most 32 operands: [], [33]");
  CHECK(refusal([](auto& g) { g.output("y", g.input("x", {batch_axis, 9}) | part<models::encoder>()); }) ==
        "shape mismatch in part: the argument does not fit the input: [batch,9], [batch,hidden=64]");
}

TEST_CASE("a tensor does not leave a repeated block by the side door") {
  CHECK(refusal([](auto& g) {
          ref kept{};
          auto x = g.input("x", {batch_axis, 8});
          auto y = x | repeat(2, [&](ref h) { return kept = h | linear{8}; });
          g.output("y", y + kept);
        }) == "shape mismatch in add: tensor of a repeated block, used outside: [batch,8], []");
  CHECK(refusal([](auto& g) {
          ref kept{};
          g.output("y", g.input("x", {batch_axis, 8}) | repeat(2, [&](ref h) { return kept = h | linear{8}; }));
          g.output("z", kept);
        }) == "shape mismatch in output(z): tensor of a repeated block, used outside: [batch,8], []");
}

TEST_CASE("only the first fault is told, and what follows from it is silent") {
  model_builder g;
  auto x = g.input("x", {batch_axis, f(8)});
  auto bad = x | conv2d{4};
  g.output("y", (bad | relu{} | batch_norm()) + x);
  g.output("z", bad | repeat(3, residual(linear{8})));
  g.output("w", all(bad, bad, bad) | multi_head_attention(2));
  CHECK(g.complaints().size() == 1);
  CHECK(!g.ok());
}

TEST_CASE("dangling tensors") {
  CHECK(refusal([](auto& g) {
          auto x = g.input("x", {batch_axis, 8});
          static_cast<void>(x | named("aside", linear{4}));
          g.output("y", x | relu{});
        }) == "dangling tensor of linear(aside): neither used nor an output: [batch,4]");
  CHECK(refusal([](auto& g) {
          auto x = g.input("x", {batch_axis, 8});
          g.input("labels", {batch_axis}, dtype::i32);
          g.output("y", x | relu{});
        }) == "dangling tensor of input or weight(labels): neither used nor an output: [batch]i32");
  CHECK(refusal([](auto& g) {
          g.weight("table", {4, 8});
          g.output("y", g.input("x", {batch_axis, 8}) | relu{});
        }) == "dangling tensor of input or weight(table): neither used nor an output: [4,8]");
  auto halves = [](bool say) {
    return [say](auto& g) {
      auto [a, b] = g.input("x", {batch_axis, 8}) | split<2>();
      if (say) g.discard(b);
      g.output("y", a);
    };
  };
  CHECK(refusal(halves(false)) == "dangling tensor of split: neither used nor an output: [batch,4]");
  CHECK(refusal(halves(true)) == "accepted");
  CHECK(refusal([](auto& g) {
          auto x = g.input("x", {batch_axis, 8});
          g.output("y", x | repeat(2, [=](ref) { return x | linear{8}; }));
        }) == "dangling tensor of input or weight(block's argument): neither used nor an output: [batch,8]");
}

TEST_CASE("names given twice") {
  CHECK(refusal([](auto& g) {
          auto x = g.input("x", {batch_axis, 8});
          g.output("y", x | named("a", linear{8}) | named("a", linear{8}));
        }) == "name clash of linear(a): two operators have one name");
  CHECK(refusal([](auto& g) {
          auto x = g.input("x", {batch_axis, 8});
          g.output("y", x);
          g.output("y", x | relu{});
        }) == "name clash of input or weight(y): two outputs have one name");
  CHECK(refusal([](auto& g) { g.output("y", g.input({"x", 1}, {batch_axis, 8}) + g.input({"x", 1}, {batch_axis, 8})); }) ==
        "name clash of input or weight(x.1): two inputs or weights have one name");
  CHECK(refusal([](auto& g) { g.output("y", g.input({"x", 1}, {batch_axis, 8}) + g.input({"x", 2}, {batch_axis, 8})); }) == "accepted");
}

TEST_CASE("two operator types of one name") {
  using own::mine, own::mine_too, own::reduce_mine, own::relu;
  CHECK(refusal([](auto& g) {
          g.output("y", g.input("x", {batch_axis, 8}) | relu{});
        }) == "name clash of relu: two operator types have one name");
  CHECK(refusal([](auto& g) {
          g.output("y", g.input("x", {batch_axis, 8}) | reduce_mine{});
        }) == "name clash of reduce: two operator types have one name");
  CHECK(refusal([](auto& g) { g.output("y", g.input("x", {batch_axis, 8}) | mine{} | mine{}); }) == "accepted");
  CHECK(refusal([](auto& g) {
          g.output("y", g.input("x", {batch_axis, 8}) | mine{} | mine_too{});
        }) == "name clash of mine: two operator types have one name");
}

TEST_CASE("spellings of one composition are one graph") {
  auto hash_of = [](auto&& make) {
    model_builder g;
    g.output("y", make(g.input("x", {batch_axis, f(8)})));
    return lower(g, {batch_axis = 4}).hash();
  };
  auto const piped = hash_of([](ref x) { return x | linear{8} | relu{} | layernorm{}; });
  CHECK(piped == hash_of([](ref x) { return x | seq(linear{8}, relu{}, layernorm{}); }));
  CHECK(piped == hash_of([](ref x) { return x | (linear{8} | relu{} | layernorm{}); }));
  CHECK(piped == hash_of([](ref x) { return x | seq(linear{8}) | seq(seq(relu{}, layernorm{})); }));
  CHECK(piped == hash_of([](ref x) { return x | named("first", linear{8}) | relu{} | layernorm{}; }));
  CHECK(piped != hash_of([](ref x) { return x | linear{8} | layernorm{} | relu{}; }));
  auto const branched = hash_of([](ref x) { return x + (x | gelu{}); });
  CHECK(branched == hash_of([](ref x) { return x | residual(gelu{}); }));
  CHECK(hash_of([](ref x) {
          auto a = x | relu{}, b = x | gelu{};
          return all(a, b) | concat{};
        }) == hash_of([](ref x) { return par(relu{}, gelu{})(x) | concat{}; }));
  CHECK(hash_of([](ref x) { return x | par(relu{}, gelu{}) | mul{}; }) == hash_of([](ref x) {
          auto a = x | relu{}, b = x | gelu{};
          return a * b;
        }));
  CHECK(hash_of([](ref x) { return x | repeat<3>(linear{8}); }) == hash_of([](ref x) { return x | linear{8} | linear{8} | linear{8}; }));
}

TEST_CASE("random models: lowering keeps parameters, work and structure") {
  for (unsigned seed = 1; seed <= 60; ++seed)
    for (int n = 1; n <= 24; ++n) {   // ascending: the first failure is the smallest of its seed
      INFO("seed ", seed, ", ", n, " operators");
      model_builder g;
      random_model(g, seed, n);
      REQUIRE(g.ok());
      CHECK(audit(g.view()).ok());
      auto const net = lower(g, {batch_axis = 4});
      CHECK(parameters(net) == parameters(g.view()));
      CHECK(flops(net) == doctest::Approx(flops(g.view(), batch_axis = 4)).epsilon(1e-12));
      CHECK(net.hash() == lower(g.view(), {batch_axis = 4}).hash());
      i64 nodes = 0;
      for (model_node const& m : g.view().nodes) nodes += g.view().times(m.block);
      CHECK(net.node_count() == nodes);
      // a value's producer comes before its users, and operands have the types that the operator takes
      for (int v = 0; v < net.node_count(); ++v)
        for (int x : net.node(v).in) CHECK(net.value(x).producer < v);
      CHECK(static_cast<int>(net.outputs.size()) == g.view().outputs.n);
    }
}
