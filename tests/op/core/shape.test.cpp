// tests/op/core/shape.test.cpp - axes, extents and shapes: names in one integer, what fits what, symbols bound
#include <tensorpar/op/core/inference.hpp>
#include <tensorpar/op/core/shape.hpp>
#include <doctest/doctest.h>

#include <cstring>
#include <map>
#include <new>
#include <string>
#include <type_traits>

using namespace tensorpar;

static_assert(std::is_trivially_copyable_v<shape>);
static_assert(std::regular<dim> && std::regular<axis>);

namespace {
constexpr axis batch{"batch"}, seq{"seq"};
}

TEST_CASE("axes with different names differ, whatever their length; others are refused") {
  std::string const letters = "abcxyz019_";
  std::map<u64, std::string> seen;
  for (char a : letters)
    for (char b : letters)
      for (std::string const& name : {std::string{a}, std::string{a, b}, std::string{a, b, a}, "long_name_" + std::string{a, b}}) {
        auto const [at, fresh] = seen.try_emplace(axis(name.c_str()).id, name);
        CHECK((fresh || at->second == name));
        CHECK(axis(name.c_str()));
      }
  CHECK(!axis{u64{0}});
  CHECK(axis("z___________").id != axis("____________").id);  // twelve characters do not overflow
  CHECK_THROWS_WITH_AS(axis("thirteenchars"), "a name of more than 12 characters (at axis); valid: at most 12 characters", error);
  CHECK_THROWS_AS(axis("Batch"), error);
  CHECK_THROWS_AS(axis("a b"), error);
}

TEST_CASE("extents fit where they are equal and their names do not contradict each other") {
  dim const all[] = {8, 9, batch, batch(8), seq(8), dim(batch, 2, seq), dim(seq)};
  for (dim const& a : all)
    for (dim const& b : all) {
      CHECK(fits(a, b) == fits(b, a));
      CHECK((!fits(a, b) || same_extent(a, b)));
      CHECK((!(a == b) || fits(a, b)));
    }
  CHECK(fits(dim(8), batch(8)));
  CHECK(!fits(seq(8), batch(8)));
  CHECK(!fits(dim(1), dim(batch)));  // one, and a symbol that may be bound to one
  CHECK(dim(batch).is_static() == false);
}

TEST_CASE("shapes count from both ends, and compare by what they hold") {
  shape const s{batch(4), 6, seq(8)};
  CHECK(s[0] == batch(4));
  CHECK(s[-1] == s.last());
  CHECK(s[-3] == s[0]);
  CHECK(s.elements() == 192);
  CHECK(s.bytes() == 768);
  CHECK(s.of(dtype::bf16).bytes() == 384);
  CHECK(s.of(dtype::i64).bytes() == 1536);
  CHECK(s.with(-1, 2).elements() == 48);
  CHECK(s.with(-1, s.last()) == s);
  CHECK(!(s.of(dtype::f16) == s));
  CHECK(fits(s.of(dtype::f16), s));  // whether elements agree is for the operator to say
  CHECK(scalar.elements() == 1);
  CHECK(scalar.is_static());
  CHECK(!fits(scalar, shape{1}));
  CHECK_THROWS_AS((shape{1, 2, 3, 4, 5, 6, 7}), error);
}

TEST_CASE("binding replaces a symbol wherever it stands, and leaves the others") {
  shape const s{batch, dim(batch, 3, seq), seq, 5};
  binding const sizes[] = {batch = 32, seq = 7};
  shape const b = bind(s, {sizes, 2}), part = bind(s, {sizes, 1});
  CHECK(b.is_static());
  CHECK(b.elements() == 32 * 21 * 7 * 5);
  CHECK(b[1] == dim(batch, 21, axis{}));  // names stay
  CHECK(part[0].is_static());
  CHECK(part[1] == s[1]);
  CHECK(bind(b, {sizes, 2}) == b);
  CHECK(bind(s, {}) == s);
}

TEST_CASE("a shape that is declared without a value is a scalar, whatever its memory held") {
  alignas(shape) unsigned char memory[sizeof(shape)];
  for (int before : {0x00, 0x5a, 0xff}) {
    std::memset(memory, before, sizeof memory);
    shape const* const s = new (memory) shape;
    CHECK(*s == scalar);
    CHECK(s->elements() == 1);
    CHECK(s->bytes() == 4);
    for (dim const& d : s->d) CHECK((d.n == 0 && !d.name && !d.sym));
  }
  alignas(tensorpar::op::weight_list) unsigned char list[sizeof(op::weight_list)];
  std::memset(list, 0xff, sizeof list);
  op::weight_list const* const w = new (list) op::weight_list;
  CHECK(w->n == 0);
  for (op::weight const& x : w->w) CHECK((x.type == scalar && x.start == op::init::zeros));
  constexpr auto made = [] { shape s; s.rank = 2; s.d[1] = dim(3); return s; }();
  static_assert(made.d[0].n == 0 && made.d[1].n == 3);
}
