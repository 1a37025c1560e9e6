// tests/exec/teams/teams.test.cpp - every operator's team kernel computes what the processor's own computes, by any lanes, in any memory
#include "../../examples/far_device.hpp"
#include "support/laws/non_finite.hpp"
#include "support/laws/teams.hpp"
#include "support/staged.hpp"
#include "support/threaded_teams.hpp"
#include <tensorpar/exec/cpu/common/attention_heads.hpp>
#include <tensorpar/exec/cpu/common/contraction_loops.hpp>
#include <tensorpar/exec/cpu/common/convolution_sizes.hpp>
#include <tensorpar/exec/cpu/common/kernel_table.hpp>
#include <tensorpar/exec/cpu/common/scalar_function.hpp>
#include <tensorpar/exec/cpu/common/softmax_state.hpp>
#include <tensorpar/exec/teams/kernels/attention.hpp>
#include <tensorpar/exec/teams/kernels/attention_parts.hpp>
#include <tensorpar/exec/teams/kernels/batch_norm.hpp>
#include <tensorpar/exec/teams/kernels/columns.hpp>
#include <tensorpar/exec/teams/kernels/contraction.hpp>
#include <tensorpar/exec/teams/kernels/convolution.hpp>
#include <tensorpar/exec/teams/kernels/device.hpp>
#include <tensorpar/exec/teams/kernels/embedding.hpp>
#include <tensorpar/exec/teams/kernels/host.hpp>
#include <tensorpar/exec/teams/kernels/kernel.hpp>
#include <tensorpar/exec/teams/kernels/lines.hpp>
#include <tensorpar/exec/teams/kernels/loss.hpp>
#include <tensorpar/exec/teams/kernels/norms.hpp>
#include <tensorpar/exec/teams/kernels/pointwise.hpp>
#include <tensorpar/exec/teams/kernels/pooling.hpp>
#include <tensorpar/exec/teams/kernels/rows.hpp>
#include <tensorpar/exec/teams/kernels/softmax_states.hpp>
#include <tensorpar/exec/teams/kernels/structural.hpp>
#include <tensorpar/exec/teams/kernels/update.hpp>
#include <tensorpar/exec/teams/teams.hpp>
#include "support/eigen_once.hpp"
#include "support/teams_once.hpp"

using namespace tensorpar;
using tests::check_agreement;

static_assert(exec::team_device<exec::host_teams<>, float>);
static_assert(exec::team_device<tests::threaded_teams<3>, prime_field>);
static_assert(exec::compute_policy<compute::teams<float>>);

TEST_CASE("team kernels agree with the processor's: exactly in the prime field, up to rounding else, with any number of lanes") {
  check_agreement<compute::teams<prime_field>, compute::eigen<prime_field>>(0);
  check_agreement<compute::teams<prime_field, exec::host_teams<1>>, compute::eigen<prime_field>>(0);
  check_agreement<compute::teams<double>, compute::eigen<double>>(1e-12);
  check_agreement<compute::teams<double, exec::host_teams<4>>, compute::eigen<double>>(1e-12);
}

TEST_CASE("lanes that run at the same time change nothing") {
  check_agreement<compute::teams<prime_field, tests::threaded_teams<3>>, compute::eigen<prime_field>>(0);
  check_agreement<compute::teams<double, tests::threaded_teams<3>>, compute::eigen<double>>(1e-12);
}

TEST_CASE("NaN and infinity are where the processor's own kernels have them, with any number of lanes") {
  tests::check_non_finite<compute::teams<double, exec::host_teams<4>>, compute::eigen<double>>();
  tests::check_non_finite<compute::teams<double, tests::threaded_teams<3>>, compute::eigen<double>>(test_effort::cases(1));
}

TEST_CASE("in the prime field the parts of every split make the whole exactly") {
  int tried = 0;
  tests::each_call<compute::teams<prime_field>>([&](op::any_op const& o, auto const& operands, exec::step_state const& state) {
    tried += tests::check_splits<compute::teams<prime_field>>(o, operands, state, 0);
  });
  CHECK(tried > 500);
}

TEST_CASE("a bias with the product is the product, and the bias after it") {
  std::mt19937_64 draw(4);
  std::vector<prime_field> a(2 * 3 * 4), b(2 * 4 * 5), bias(5), with(2 * 3 * 5), after(with.size());
  for (auto* x : {&a, &b, &bias}) for (prime_field& e : *x) e = prime_field::raw(draw() % prime_field::modulus);
  exec::matrix_products<prime_field> p;
  p.m = 3;
  p.n = 5;
  p.k = 4;
  p.a = {a.data(), 4, 1};
  p.b = {b.data(), 5, 1};
  p.c = {after.data(), 5, 1};
  p.batch[0] = {2, 12, 20, 15};
  exec::host_teams<> const d;
  d.product(p);
  p.bias = bias.data();
  exec::detail::add_bias_at<prime_field> const f{p};
  d.each(f.count(), f);
  p.c.p = with.data();
  d.product(p);
  CHECK(with == after);
  p.bias = nullptr;
  d.product(p);
  CHECK(!(with == after));
}

TEST_CASE("sums of columns: by one or by several, by lanes or by teams, within their scratch") {
  std::mt19937_64 draw(6);
  for (auto const& [rows, columns] : std::vector<std::pair<i64, i64>>{{1, 1}, {3, 8}, {40, 16}, {700, 6}, {2000, 24}, {33, 1000},
                                                                      {1041, 256}, {2000, 300}})
    for (i64 off : {0, 1}) {                                   // elements from a multiple of 16 bytes
      std::vector<prime_field> x(static_cast<std::size_t>(rows * columns + off)), y(static_cast<std::size_t>(columns));
      for (prime_field& e : x) e = prime_field::raw(draw() % prime_field::modulus);
      i64 const room = exec::detail::column_scratch(rows, columns);
      std::vector<prime_field> scratch(static_cast<std::size_t>(room + 1), prime_field(77)), want(y.size());
      for (i64 i = 0; i < rows * columns; ++i) want[static_cast<std::size_t>(i % columns)] += x[static_cast<std::size_t>(i + off)];
      exec::detail::sum_columns(exec::host_teams<>(), rows, columns, exec::detail::matrix_term<prime_field>{x.data() + off, columns},
                                scratch.data(), y.data());
      CHECK(y == want);
      CHECK(scratch.back() == prime_field(77));
      std::vector<bfloat16> narrow(x.size() + 8);              // small whole numbers: sums are exact
      std::vector<float> sums(y.size()), want_sums(y.size()), part(static_cast<std::size_t>(room));
      for (bfloat16& e : narrow) e = static_cast<float>(static_cast<int>(draw() % 9) - 4);
      for (i64 i = 0; i < rows * columns; ++i)
        want_sums[static_cast<std::size_t>(i % columns)] += narrow[static_cast<std::size_t>(i + off)];
      exec::detail::sum_columns(exec::host_teams<>(), rows, columns, exec::detail::matrix_term<bfloat16>{narrow.data() + off, columns},
                                part.data(), sums.data());
      CHECK(sums == want_sums);
    }
  CHECK(exec::detail::stretches_of(2000, 24) >= 32);                 // teams
  CHECK(exec::detail::stretches_of(33, 1000) < 32);                  // lanes
  CHECK(exec::detail::groups_of(exec::detail::stretches_of(1041, 256), 256) > 0);
}

TEST_CASE("the largest of a line, wherever it stands") {
  for (i64 n : {1, 7, 8, 64, 65})
    for (i64 at = 0; at < n; ++at) {
      std::vector<bfloat16> x(static_cast<std::size_t>(n), bfloat16(-3.0f));
      x[static_cast<std::size_t>(at)] = -2.0f;
      CHECK(exec::detail::line_top<float>(exec::host_team<4>{}, n, x.data()) == -2.0f);
    }
}

TEST_CASE("a row's largest number and the sum beside it are found in one pass, with infinities among them or not") {
  float const inf = std::numeric_limits<float>::infinity();
  std::mt19937 draw(3);
  for (i64 n : {1, 3, 4, 8, 31, 64})
    for (int lows = 0; lows < 4; ++lows) {
      std::vector<float> x(static_cast<std::size_t>(n + 4));
      for (float& v : x) v = std::uniform_real_distribution<float>(-30, 30)(draw);
      i64 const first = lows % 2;                                // off a multiple of 16 bytes, too
      float const* const row = x.data() + first;
      for (i64 i = 0; lows >= 2 && i < n - 1; ++i)               // whole stretches, and some
        if (i < 8 || i % 2) x[static_cast<std::size_t>(first + i)] = -inf;
      float top = -inf;
      double sum = 0;
      for (i64 i = 0; i < n; ++i) top = std::max(top, row[i]);
      for (i64 i = 0; i < n; ++i) sum += std::exp(static_cast<double>(row[i]) - static_cast<double>(top));
      for (auto const& s : {exec::detail::team_softmax_sum(row, n, exec::host_team<1>{}),
                            exec::detail::team_softmax_sum(row, n, exec::host_team<4>{})}) {
        CHECK(s.top == top);
        CHECK(std::fabs(static_cast<double>(s.sum) - sum) < 1e-5 * sum);
      }
    }
  using sum = exec::detail::softmax_sum<double>;
  sum const none(0), one(2.0, 1.0);
  for (sum const& s : {none + one, one + none}) {
    CHECK(s.top == 2);
    CHECK(s.sum == 1);
  }
  CHECK((none + none).sum == 0);
}

namespace {

/// y = x + 2 b, from rows that are held or not, and the sums of x and of b beside each row.
template <class Scalar> struct sums_and_map_at {
  Scalar const *x, *b;
  Scalar *y, *sums;
  i64 n;
  constexpr i64 length() const { return n; }
  static constexpr int holds = 4;
  constexpr i64 stretches() const { return exec::detail::stretches_in(n, {x, b, static_cast<Scalar const*>(y)}); }
  template <class Team, int Turns> constexpr void operator()(i64 r, Team const& team, std::integral_constant<int, Turns>) const {
    auto const rows = exec::detail::rows_in<Turns>(exec::detail::loose_rows<Team, Scalar, 1>{team, n, {x + r * n}});
    auto const s = rows.template sum<exec::detail::two<Scalar>>([](Scalar v, Scalar w) { return exec::detail::two<Scalar>(v, w); },
                                                                b + r * n);
    rows.map([](Scalar v, Scalar w) { return v + w + w; }, y + r * n, b + r * n);
    team.alone([&] { sums[2 * r] = s.a; sums[2 * r + 1] = s.b; });
  }
};
template <class Device> void check_rows(Device const& device) {
  using number = prime_field;
  for (i64 n : {1, 2, 6, 7, 8, 20, 32, 66})
    for (std::size_t off : {std::size_t{0}, std::size_t{1}})
      for (bool in_place : {false, true}) {
        i64 const rows = 3;
        std::vector<number> x(static_cast<std::size_t>(rows * n) + off), b = x, y = x, sums(6, number(0));
        for (std::size_t i = 0; i < x.size(); ++i) {
          x[i] = number(static_cast<i64>(i * i + 1));
          b[i] = number(static_cast<i64>(7 * i + 5));
        }
        std::vector<number> const before = x;
        number* const to = in_place ? x.data() : y.data();
        exec::detail::teams_on_rows(device, rows, sums_and_map_at<number>{x.data() + off, b.data() + off, to + off, sums.data(), n});
        for (i64 r = 0; r < rows; ++r) {
          number of_x(0), of_b(0);
          for (i64 i = 0; i < n; ++i) {
            std::size_t const at = off + static_cast<std::size_t>(r * n + i);
            of_x += before[at];
            of_b += b[at];
            CHECK(to[at] == before[at] + b[at] + b[at]);
          }
          CHECK(sums[static_cast<std::size_t>(2 * r)] == of_x);
          CHECK(sums[static_cast<std::size_t>(2 * r + 1)] == of_b);
        }
      }
}

}  // namespace

TEST_CASE("rows that lanes hold between passes are the rows, of any length, at any address, in place") {
  check_rows(exec::host_teams<1>{});
  check_rows(exec::host_teams<4>{});
  check_rows(exec::host_teams<>{});
  check_rows(tests::threaded_teams<2>{});
  check_rows(tests::threaded_teams<5>{});
}

TEST_CASE("heads are taken as many at once as there is room for, each of them once") {
  for (i64 n : {1, 1024, 2048, 4096, 8192}) {
    op::tensor_block q;
    q.rank = 3;
    for (int d = 0; d < 3; ++d) q.local[d] = q.global[d] = d == 0 ? 3 : d == 1 ? n : 40;
    exec::detail::attention_heads<float> const a(q, q, 10, true);
    CHECK_FALSE(a.packed);
    i64 const most = exec::detail::heads_at_once(10, n, n);
    CHECK((most == 1 || most * n * n <= i64{1} << 24));
    CHECK((most == 10 || (most + 1) * n * n > i64{1} << 24));
    std::vector<i64> seen, all;
    exec::detail::each_heads(a, 10, [&](exec::detail::head_place const& at, i64 heads, i64 before) {
      CHECK((at.q == at.k && at.q == at.y));
      CHECK(before == static_cast<i64>(seen.size()));
      CHECK(heads <= most);
      for (i64 h = 0; h < heads; ++h) seen.push_back(at.q + h * a.head);
    });
    for (i64 b = 0; b < 3; ++b) for (i64 h = 0; h < 10; ++h) all.push_back(b * n * 40 + h * 4);
    CHECK(seen == all);
  }
}

TEST_CASE("gradients of tables: many indices, few rows, in the order of the indices") {
  tests::check_many_indices<compute::teams<prime_field>>();
  tests::check_many_indices<compute::teams<double, tests::threaded_teams<3>>>();
}

TEST_CASE("indices out of range are errors that name operator and index") {
  tests::check_index_faults<compute::eigen<double>>();
  tests::check_index_faults<compute::teams<double>>();
}

TEST_CASE("a policy of another memory, called from the host") {
  check_agreement<tests::staged<far::far_compute<prime_field>>, compute::eigen<prime_field>>(0);
  tests::check_index_faults<tests::staged<far::far_compute<double>>>();
}

TEST_CASE("the heads of attention and the groups of a convolution cover their blocks once") {
  op::tensor_block q = tests::whole({2, 6, 12}), k = tests::whole({2, 8, 12});
  q = tests::piece_of(tests::piece_of(q, 1, 1, 2), 2, 1, 2);   // the later half of the queries, two of four heads
  k = tests::piece_of(k, 2, 1, 2);
  exec::detail::attention_heads<double> const a(q, k, 4, true);
  std::vector<int> queries(static_cast<std::size_t>(q.elements())), keys(static_cast<std::size_t>(k.elements()));
  std::vector<int> results(queries.size());
  a.each_head([&](exec::detail::head_place const& at) {
    for (i64 e = 0; e < a.head; ++e) {
      for (i64 i = 0; i < a.queries; ++i) ++queries[static_cast<std::size_t>(at.q + i * a.row + e)];
      for (i64 j = 0; j < a.keys; ++j) ++keys[static_cast<std::size_t>(at.k + j * a.row + e)];
      for (i64 i = 0; i < a.queries; ++i) ++results[static_cast<std::size_t>(at.y + i * a.width + e)];
    }
  });
  CHECK(queries == std::vector<int>(queries.size(), 1));
  CHECK(keys == std::vector<int>(keys.size(), 1));
  CHECK(results == std::vector<int>(results.size(), 1));
  CHECK(a.head == 3);
  CHECK(a.seen(0) == 4);                                       // query 3 of the whole
  CHECK(a.seen(2) == 6);

  // two of four heads, three tensors in one
  op::tensor_block const three = tests::piece_of(tests::whole({2, 6, 36}), 2, 1, 2);
  exec::detail::attention_heads<double> const packed(three, three, 4, true, true);
  CHECK(packed.packed);
  CHECK(packed.width == 6);
  std::vector<double> all(static_cast<std::size_t>(three.elements()));
  std::vector<int> made(static_cast<std::size_t>(2 * 6 * 6));
  void* const tensors[] = {all.data()};
  auto const x3 = packed.three<double>(tensors);
  packed.each_head([&](exec::detail::head_place const& at) {
    for (i64 i = 0; i < 6; ++i)
      for (i64 e = 0; e < 3; ++e) {
        x3.q[at.q + i * packed.row + e] += 1;
        x3.k[at.k + i * packed.row + e] += 2;
        x3.v[at.k + i * packed.row + e] += 3;
        ++made[static_cast<std::size_t>(at.y + i * packed.width + e)];
      }
  });
  for (std::size_t e = 0; e < all.size(); ++e) CHECK(all[e] == static_cast<double>(e / 3 % 3 + 1));
  CHECK(made == std::vector<int>(made.size(), 1));

  conv2d const op{6, 3, 2, 1, 2};
  op::tensor_block const x = tests::whole({2, 4, 7, 6}), y = tests::whole({2, 6, 4, 3});
  exec::detail::convolution_sizes const s(op.window(), x, y, 2);
  std::vector<int> images(static_cast<std::size_t>(x.elements())), filters(6 * 2 * 9), points(static_cast<std::size_t>(y.elements()));
  s.each_group([&](i64 image, i64 filter, i64 point) {
    for (i64 i = 0; i < s.depth * s.height * s.width; ++i) ++images[static_cast<std::size_t>(image + i)];
    for (i64 i = 0; i < s.per_group() * s.rows(); ++i) ++filters[static_cast<std::size_t>(filter + i)];
    for (i64 i = 0; i < s.per_group() * s.points(); ++i) ++points[static_cast<std::size_t>(point + i)];
  });
  CHECK(images == std::vector<int>(images.size(), 1));
  CHECK(filters == std::vector<int>(filters.size(), 2));       // once for every image
  CHECK(points == std::vector<int>(points.size(), 1));
  CHECK_FALSE(s.direct());
}

TEST_CASE("sums in parts: every number counts once") {
  for (i64 n : {1, 2, 4095, 4096, 4097, 100000}) {
    std::vector<prime_field> x(static_cast<std::size_t>(n)), scratch(static_cast<std::size_t>(exec::detail::parts_of_sum(n)));
    prime_field want, got;
    for (i64 i = 0; i < n; ++i) want += x[static_cast<std::size_t>(i)] = prime_field(i * i + 1);
    exec::detail::sum_all<prime_field>(exec::host_teams<>{}, n, exec::detail::value_term<prime_field>{x.data()}, scratch.data(), &got,
                                       prime_field(3));
    CHECK(got == want * prime_field(3));
  }
  CHECK(exec::detail::parts_of_sum(i64{1} << 40) == 1024);
}

namespace {
/// A user's operator with a kernel for teams.
struct doubled {
  static constexpr auto name = "doubled_by_teams";
  static constexpr auto notation = "... -> ...";
  constexpr op::inference infer(shapes in) const { return in[0]; }
  template <class Scalar> static void compute_teams(auto const& device, exec::kernel_call const& c, doubled const&) {
    device.each(c.out_block[0].elements(), twice<Scalar>{exec::detail::operand<Scalar>(c, 0), exec::detail::result<Scalar>(c)});
  }
  template <class Scalar> struct twice {
    Scalar const* x;
    Scalar* y;
    constexpr void operator()(i64 i) const { y[i] = x[i] + x[i]; }
  };
};
}  // namespace

TEST_CASE("a user's operator brings its kernel; one without is refused by name") {
  tests::dense<double> const x{tests::whole({3}), {1, 2, 3}, {}};
  using own = compute::teams<double, exec::host_teams<>, op::op_set<doubled>>;
  CHECK(tests::run_whole<own>(doubled{}, {x})[0].real == std::vector<double>{2, 4, 6});
  op::any_op const o = doubled{};
  CHECK_FALSE(compute::teams<double>::supports(o));
  exec::kernel_call c;
  c.op = &o;
  CHECK_THROWS_WITH_AS(compute::teams<double>().run(c), doctest::Contains("doubled_by_teams"), error);
}
