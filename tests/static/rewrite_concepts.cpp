// tests/static/rewrite_concepts.cpp - archetypes of degree_algebra and number_algebra, and types that lack one requirement each
#include <tensorpar/ir/parallel_inference.hpp>
#include <tensorpar/prover/values/evaluate.hpp>
#include <tensorpar/prover/values/parts.hpp>

using namespace tensorpar;
using namespace tensorpar::prover;

namespace archetypes {

struct degrees {
  struct value {};
  value one();
  bool is_one(value const&);
  value times(value const&, value const&);
  value over(value const&, value const&, char const*);
  void same(value const&, value const&, char const*);
  void within(value const&, ir::node_loop const&);
};
static_assert(ir::degree_algebra<degrees>);
struct no_one : degrees { void one(); };
struct no_is_one : degrees { void is_one(value const&); };
struct no_times : degrees { void times(value const&, value const&); };
struct no_over : degrees { void over(value const&, value const&, char const*); };
struct no_same : degrees { void same(value const&); };
struct no_within : degrees { void within(); };
static_assert(!ir::degree_algebra<no_one> && !ir::degree_algebra<no_is_one> && !ir::degree_algebra<no_times>);
static_assert(!ir::degree_algebra<no_over> && !ir::degree_algebra<no_same> && !ir::degree_algebra<no_within> && !ir::degree_algebra<int>);

struct numbers {
  struct value {};
  value integer(i64);
  value real(double);
  value plus(value const&, value const&);
  value times(value const&, value const&);
  value over(value const&, value const&);
  value maximum(value const&, value const&);
  value apply(u64, value const&);
};
static_assert(number_algebra<numbers>);
struct no_integer : numbers { void integer(i64); };
struct no_real : numbers { void real(double); };
struct no_plus : numbers { void plus(value const&, value const&); };
struct no_product : numbers { void times(value const&, value const&); };
struct no_quotient : numbers { void over(value const&, value const&); };
struct no_maximum : numbers { void maximum(value const&, value const&); };
struct no_apply : numbers { void apply(u64, value const&); };
static_assert(!number_algebra<no_integer> && !number_algebra<no_real> && !number_algebra<no_plus> && !number_algebra<no_product>);
static_assert(!number_algebra<no_quotient> && !number_algebra<no_maximum> && !number_algebra<no_apply> && !number_algebra<int>);

/// The generic code asks for nothing more.
[[maybe_unused]] auto infer(degrees& a, op::any_op const& o, ir::iteration_space const& s) {
  return ir::infer_degrees(a, o, s, std::vector<ir::degrees_of<degrees::value>>{}, {});
}
[[maybe_unused]] auto sharding(degrees& a, op::op_info const& o, ir::degrees_of<degrees::value> const& x) {
  return ir::infer_parallel(a, o, 0, degrees::value{}, x);
}
[[maybe_unused]] auto compute(numbers& a, op::any_op const& o) { return evaluate(a, o, std::vector<elements<numbers::value>>{}, {}); }
[[maybe_unused]] auto on_parts(numbers& a, op::any_op const& o) {
  return run_on_parts(a, o, std::vector<sharding_elements<numbers::value>>{}, {});
}

}  // namespace archetypes
