// tests/exec/cuda.test.cu - memory, kernels, products and whole plans on a GPU; what needs one says that it is skipped where there is none
#include <tensorpar/exec/comm/virtual_ranks.hpp>
#include <tensorpar/exec/cuda/cuda.cuh>
#include <tensorpar/exec/cuda/products.cuh>
#include <tensorpar/exec/cuda/teams.cuh>

#include <doctest/doctest.h>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "support/laws/fused.hpp"
#include "support/laws/memory.hpp"
#include "support/laws/queues.hpp"
#include "support/laws/teams.hpp"
#include "support/staged.hpp"
#include "support/training.hpp"
#include <tensorpar/exec/comm/threads.hpp>
#include <tensorpar/ir/mixed_precision.hpp>

using namespace tests;

static_assert(tensorpar::exec::queued_memory<cuda_memory> && tensorpar::exec::recording_memory<cuda_memory>);
static_assert(tensorpar::exec::replayable_policy<compute::cuda<float>> && tensorpar::exec::replayable_policy<compute::cuda_bf16<>>);
static_assert(tensorpar::exec::team_device<cuda_teams, float> && tensorpar::exec::team_device<cuda_teams, double> &&
              tensorpar::exec::team_device<cuda_teams, prime_field>);
static_assert(tensorpar::exec::compute_policy<compute::cuda<float>>);
static_assert(tensorpar::exec::require_same_memory<compute::cuda<float>, comm::virtual_ranks<cuda_memory>>());

namespace {

bool no_gpu() {
  if (cuda_devices()) return false;
  MESSAGE("skipped: there is no GPU");
  return true;
}

/// Products whose operands lie at every address that their numbers may have, those that lie best first: what is chosen for these may not
/// be good for the others.
template <class Scalar, class Result> void check_addresses(double tolerance) {
  constexpr i64 m = 8, n = 16, k = 24, spare = 16;
  cuda_memory const memory(0);
  cuda_teams const gpu(memory);
  std::mt19937 draw(3);
  std::vector<Scalar> a(m * k), b(k * n), bias(n);
  for (auto* v : {&a, &b, &bias}) for (Scalar& x : *v) x = Scalar(static_cast<float>(static_cast<int>(draw() % 17) - 8));
  auto const there = [&](auto const& v) {
    return reinterpret_cast<std::remove_cvref_t<decltype(v[0])>*>(memory.allocate(static_cast<i64>(sizeof v[0]) * (std::ssize(v) + spare)));
  };
  std::vector<Result> want(m * n), got(m * n);
  Scalar *const at_a = there(a), *const at_b = there(b), *const at_bias = there(bias);
  Result* const at_c = there(got);
  for (bool with_bias : {false, true})
    for (i64 apart = 0; apart < spare; ++apart)
      for (int which = 0; which < 4; ++which) {
        auto const shift = [&](int x) { return which == x ? apart : 0; };
        tensorpar::exec::matrix_products<Scalar, Result> p{m, n, k, {a.data(), k, 1}, {b.data(), n, 1}, {want.data(), n, 1}};
        p.bias = with_bias ? bias.data() : nullptr;
        tensorpar::exec::host_teams<>{}.product(p);
        memory.write(at_a + shift(0), a.data(), static_cast<i64>(a.size() * sizeof(Scalar)));
        memory.write(at_b + shift(1), b.data(), static_cast<i64>(b.size() * sizeof(Scalar)));
        memory.write(at_bias + shift(2), bias.data(), static_cast<i64>(bias.size() * sizeof(Scalar)));
        p.a.p = at_a + shift(0);
        p.b.p = at_b + shift(1);
        p.c.p = at_c + shift(3);
        if (with_bias) p.bias = at_bias + shift(2);
        gpu.product(p);
        memory.read(got.data(), p.c.p, static_cast<i64>(got.size() * sizeof(Result)));
        double worst = 0;
        for (std::size_t i = 0; i < got.size(); ++i)
          worst = std::max(worst, std::abs(static_cast<double>(got[i]) - static_cast<double>(want[i])) /
                                      (1 + std::abs(static_cast<double>(want[i]))));
        CHECK(worst <= tolerance);
      }
  memory.release(reinterpret_cast<std::byte*>(at_a), static_cast<i64>(sizeof(Scalar)) * (m * k + spare));
  memory.release(reinterpret_cast<std::byte*>(at_b), static_cast<i64>(sizeof(Scalar)) * (k * n + spare));
  memory.release(reinterpret_cast<std::byte*>(at_bias), static_cast<i64>(sizeof(Scalar)) * (n + spare));
  memory.release(reinterpret_cast<std::byte*>(at_c), static_cast<i64>(sizeof(Result)) * (m * n + spare));
}

template <class Scalar> using by_host = executor<compute::teams<Scalar>, comm::threads>;

// [quoted: one gpu]
/// All ranks' numbers on the first GPU, a stream for each.
template <class Scalar> struct on_first_gpu : compute::cuda<Scalar> {
  on_first_gpu() : compute::cuda<Scalar>(tensorpar::exec::device_place{}) {}
};
template <class Scalar> using ranks_on_one = executor<on_first_gpu<Scalar>, comm::virtual_ranks<cuda_memory>>;
// [end]

}  // namespace

TEST_CASE("without a GPU there is one clear error") {
  if (cuda_devices()) return;
  CHECK_THROWS_WITH_AS(cuda_memory(tensorpar::exec::device_place{}), doctest::Contains("there is no GPU"), error);
}

TEST_CASE("a GPU's memory keeps bytes and moves boxes") {
  if (no_gpu()) return;
  cuda_memory const m(0);
  check_bytes(m, 1);
  check_boxes<float>(m, 2);
  check_boxes<prime_field>(m, 3);
  check_boxes<std::int32_t>(m, 4);
  CHECK_THROWS_WITH_AS(m.allocate(i64{1} << 50), doctest::Contains("bytes are free"), error);
}

TEST_CASE("streams follow each other's marks") {
  if (no_gpu()) return;
  check_marks(cuda_memory(0), 500);
  check_recordings(cuda_memory(0));
}

TEST_CASE("a stream of the caller's is used, and left to the caller") {
  if (no_gpu()) return;
  cudaStream_t mine = nullptr;
  cuda_check(cudaStreamCreate(&mine), "cudaStreamCreate");
  {
    cuda_memory const m(0, mine);
    CHECK(m.stream() == mine);
    check_bytes(m, 5);
  }
  cuda_check(cudaStreamSynchronize(mine), "cudaStreamSynchronize");
  cuda_check(cudaStreamDestroy(mine), "cudaStreamDestroy");
}

TEST_CASE("a buffer of the caller's is all that is taken, up to its end") {
  if (no_gpu()) return;
  i64 const bytes = i64{64} << 20;
  void* mine = nullptr;
  cuda_check(cudaMalloc(&mine, static_cast<std::size_t>(bytes)), "cudaMalloc");
  {
    cuda_memory const m(0, std::make_shared<cuda_buffer>(0, mine, bytes));
    check_bytes(m, 6);
    std::byte* const p = m.allocate(i64{1} << 20);
    std::byte* const q = m.beside().allocate(1);               // of the same buffer
    CHECK(p >= static_cast<std::byte*>(mine));
    CHECK(q >= p + (i64{1} << 20));
    CHECK(q < static_cast<std::byte*>(mine) + bytes);
    CHECK_THROWS_WITH_AS(m.allocate(bytes), doctest::Contains("bytes are left"), error);
    m.release(p, i64{1} << 20);
    m.release(q, 1);
  }
  cuda_check(cudaFree(mine), "cudaFree");
}

// [quoted: handed]
/// The caller's streams, events and memory, lent and given back.
class lent : public cuda_buffer {
  std::mutex lock_;
  std::vector<cudaStream_t> streams_;
  std::vector<cudaEvent_t> events_;
  std::set<cudaEvent_t> const own_;            // those with times are the driver's

 public:
  lent(int gpu, void* memory, i64 bytes, std::vector<cudaStream_t> streams, std::vector<cudaEvent_t> events)
      : cuda_buffer(gpu, memory, bytes), streams_(std::move(streams)), events_(std::move(events)), own_(events_.begin(), events_.end()) {}
  std::size_t streams() const { return streams_.size(); }
  std::size_t events() const { return events_.size(); }

  cudaStream_t make_stream(int gpu) override { return take(streams_, gpu, "stream"); }
  void end_stream(int, cudaStream_t s) noexcept override { give(streams_, s); }
  cudaEvent_t make_event(int gpu, unsigned flags) override {
    return flags & cudaEventDisableTiming ? take(events_, gpu, "event") : cuda_buffer::make_event(gpu, flags);
  }
  void end_event(int gpu, cudaEvent_t e) noexcept override {
    if (own_.count(e)) give(events_, e);
    else cuda_buffer::end_event(gpu, e);
  }

 private:
  template <class T> T take(std::vector<T>& all, int gpu, char const* what) {
    std::lock_guard const held(lock_);
    if (all.empty()) throw error(std::string("no ") + what + " is left", "GPU " + std::to_string(gpu), "a larger pool");
    T const x = all.back();
    all.pop_back();
    return x;
  }
  template <class T> void give(std::vector<T>& all, T x) noexcept {
    std::lock_guard const held(lock_);
    all.push_back(x);                          // has held it before
  }
};
/// One rank that has nothing but these.
struct handed {
  std::shared_ptr<cuda_resources> from;
  comm::virtual_ranks<cuda_memory>::world operator()(int ranks) const { return comm::virtual_ranks<cuda_memory>::world(ranks); }
  compute::cuda<prime_field> policy(tensorpar::exec::device_place) const {
    return compute::cuda<prime_field>(cuda_teams(cuda_memory(0, from)));
  }
};
// [end]

TEST_CASE("an executor works in streams, events and a buffer that it is handed, takes nothing else, and gives all back") {
  if (no_gpu()) return;
  using ranks = executor<compute::cuda<prime_field>, comm::virtual_ranks<cuda_memory>>;
  computation_graph const g = residual_mlp();
  plan const p = serial_plan(g);
  by_host<prime_field> host(differentiate(g), p);
  auto const want = train(host, 3);
  i64 const bytes = i64{64} << 20;
  void* room = nullptr;
  std::vector<cudaStream_t> streams(3);
  std::vector<cudaEvent_t> events(64);
  cuda_check(cudaMalloc(&room, static_cast<std::size_t>(bytes)), "cudaMalloc");
  for (cudaStream_t& s : streams) cuda_check(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), "cudaStreamCreate");
  for (cudaEvent_t& e : events) cuda_check(cudaEventCreateWithFlags(&e, cudaEventDisableTiming), "cudaEventCreate");
  auto const pools = std::make_shared<lent>(0, room, bytes, streams, events);
  {
    ranks e(differentiate(g), p, handed{pools});
    std::size_t before = 0, after = 0, all = 0;
    cuda_check(cudaMemGetInfo(&before, &all), "cudaMemGetInfo");
    CHECK(train(e, 3) == want);
    cuda_check(cudaMemGetInfo(&after, &all), "cudaMemGetInfo");
    CHECK(before <= after + std::size_t{64 << 20});            // modules that are loaded late, and graphs, are the driver's
#ifdef CUDA_STAND_IN_STATUSES
    CHECK(before == after);
#endif
    CHECK(pools->streams() == 2);
    CHECK(pools->events() < 64);
    CHECK(cudaStreamQuery(streams[2]) == cudaSuccess);         // a step has waited for it
    cuda_memory const another(0, pools), beside = another.beside();
    std::size_t const left = pools->events();
    {
      auto const timed = another.make_timed_mark();
      auto const mark = another.make_mark();
      CHECK(pools->events() == left - 1);
    }
    CHECK(pools->events() == left);
    CHECK_THROWS_WITH_AS(pools->allocate(1, 1, nullptr), doctest::Contains("a buffer for each GPU"), error);
    CHECK(another.stream() == streams[1]);
    CHECK(beside.stream() == streams[0]);
    CHECK_THROWS_WITH_AS(beside.beside(), doctest::Contains("no stream is left"), error);
  }
  CHECK(pools->streams() == 3);
  CHECK(pools->events() == 64);
  handed const little{std::make_shared<cuda_buffer>(0, room, 1000)};
  CHECK_THROWS_WITH_AS(ranks(differentiate(g), p, little), doctest::Contains("bytes are left"), error);
  check_marks(cuda_memory(0, pools), 500);                     // these take three streams
  CHECK(pools->streams() == 3);
  CHECK(pools->events() == 64);
  for (cudaStream_t s : streams) cuda_check(cudaStreamDestroy(s), "cudaStreamDestroy");
  for (cudaEvent_t e : events) cuda_check(cudaEventDestroy(e), "cudaEventDestroy");
  cuda_check(cudaFree(room), "cudaFree");
}

TEST_CASE("an executor takes its plan's arena of the GPU, by the driver's figure, and says before the first step if it is not there") {
  if (no_gpu()) return;
  auto const unused = [] {
    std::size_t free_now = 0, all = 0;
    cuda_check(cudaMemGetInfo(&free_now, &all), "cudaMemGetInfo");
    return static_cast<i64>(free_now);
  };
  bool const large = unused() > i64{8} << 30;                              // a GPU, or what stands in for one
  i64 const rows = large ? 256 : 8, width = large ? 8192 : 1024, least = large ? i64{500} << 20 : i64{8} << 20;
  computation_graph g;
  int const x = g.add_input("x", {rows, width});
  int const y = g.add_input("y", {rows, width});
  int h = x;
  for (int k = 0; k < 3; ++k) h = tests::out(g, g.add_with_weights(linear{width}, {h}, "l" + std::to_string(k)));
  g.add_output("loss", tests::out(g, g.add(mean_squared_error{}, {h, y})));
  plan const p = serial_plan(g);
  { ranks_on_one<float> warm(differentiate(g), p); train(warm, 1); }       // the driver and its libraries have what they keep
  i64 const before = unused();
  {
    ranks_on_one<float> e(differentiate(g), p);
    i64 const arena = e.program().arena[0], taken = before - unused();
    CHECK(arena > least);
    CHECK(taken >= arena);
    CHECK(taken <= arena + (i64{16} << 20));           // the driver gives pages of 2 MiB; streams and handles may keep some of their own
    train(e, 3);
    CHECK(before - unused() <= arena + (i64{64} << 20));                 // what graphs and libraries keep besides
  }
  void* foreign = nullptr;
  cuda_check(cudaMalloc(&foreign, static_cast<std::size_t>(unused() - least / 2)), "cudaMalloc");
  CHECK_THROWS_WITH_AS(ranks_on_one<float>(differentiate(g), p), doctest::Contains("bytes are free"), error);
  cuda_check(cudaFree(foreign), "cudaFree");
}

TEST_CASE("every operator on the GPU: exactly in the prime field, up to rounding else") {
  if (no_gpu()) return;
  check_agreement<staged<compute::cuda<prime_field>>, compute::teams<prime_field>>(0);
#ifndef __SANITIZE_ADDRESS__                                      // its accesses are those of the field's
  check_agreement<staged<compute::cuda<double>>, compute::teams<double>>(1e-11);
#endif
  check_agreement<staged<compute::cuda<float>>, compute::teams<float>>(1e-4);
}

TEST_CASE("fused operators on the GPU are their two parts") {
  if (no_gpu()) return;
  check_fused<prime_field, prime_field>(compute::cuda<prime_field>(tensorpar::exec::device_place{}), compute::teams<prime_field>{}, 0);
#ifndef __SANITIZE_ADDRESS__
  check_fused<double, double>(compute::cuda<double>(tensorpar::exec::device_place{}), compute::teams<double>{}, 1e-12);
#endif
  // norms' rows held by warps, and by blocks in 1, 2, 4 and 8 turns
  check_fused<float, float>(compute::cuda<float>(tensorpar::exec::device_place{}), compute::teams<float>{}, 1e-5,
                            {{64, 1030}, {1040, 3}, {2560, 2}, {5120, 2}});
  check_fused<bfloat16, float>(compute::cuda_bf16<>(tensorpar::exec::device_place{}),
                               compute::teams<float, tensorpar::exec::host_teams<>, tensorpar::op::op_set<>, bfloat16>{}, 0.02,
                               {{64, 1030}, {264, 20}, {2560, 2}, {5120, 2}});
}

TEST_CASE("attention on the GPU leaves its log-sum-exps behind, and its gradient from them is the gradient") {
  if (no_gpu()) return;
  check_attention_lse<prime_field>(compute::cuda<prime_field>(tensorpar::exec::device_place{}), compute::teams<prime_field>{}, 0);
  check_attention_lse<double>(compute::cuda<double>(tensorpar::exec::device_place{}), compute::teams<double>{}, 1e-12);
  check_attention_lse<float>(compute::cuda<float>(tensorpar::exec::device_place{}), compute::teams<float>{}, 1e-5);
  check_attention_lse<bfloat16>(compute::cuda_bf16<>(tensorpar::exec::device_place{}),
                                compute::teams<float, tensorpar::exec::host_teams<>, tensorpar::op::op_set<>, bfloat16>{}, 0.02);
}

TEST_CASE("what was measured computes what the heuristic chooses: long sums, in place, by columns, in batches") {
  if (no_gpu()) return;
  cuda_memory const memory(0);
  auto const choices = std::make_shared<cuda_product_choices>();
  compute::cuda_bf16<> const measured{cuda_teams(memory, choices)}, by_heuristic{cuda_teams(memory)};
  std::mt19937_64 r(2);
  auto const bf16 = [](shape s) { return s.of(dtype::bf16); };
  struct one {
    tensorpar::op::any_op op;
    std::vector<shape> in, out;
    int place;
  };
  shape const x{40, 1600}, w{72, 1600}, y{40, 72}, b{72};
  std::vector<one> const all{
      {linear{72}, {x, w, b}, {y}, -1},
      {tensorpar::op::linear_with{true, true, false}, {x, w, b}, {y, y}, -1},
      {tensorpar::op::linear_with{true, false, true}, {x, w, b, y}, {y}, 3},
      {tensorpar::op::linear_with{true, false, true}, {x, w, b, y}, {y}, -1},
      {tensorpar::op::contraction_with{contraction("0o,oi->0i"), true, false, false}, {y, {72, 64}, {40, 64}}, {{40, 64}}, -1},
      {tensorpar::op::contraction_with{contraction("0o,0i->oi"), false, true, true}, {y, {40, 64}, {72, 64}}, {{72, 64}, b}, 2},
      {tensorpar::op::contraction_with{contraction("0o,0i->io"), false, false, true}, {y, {40, 64}}, {{64, 72}, b}, -1},
      {contraction("abik,abkj->abij"), {{3, 2, 8, 40}, {3, 2, 40, 16}}, {{3, 2, 8, 16}}, -1}};
  for (bool measure : {true, false}) {
    choices->measure(measure);
    for (one const& c : all) {
      std::vector<shape> in, out;
      std::vector<std::vector<bfloat16>> numbers;
      for (shape const& s : c.in) {
        in.push_back(bf16(s));
        numbers.emplace_back(static_cast<std::size_t>(s.elements()));
        for (bfloat16& e : numbers.back()) draw(e, r);
      }
      for (shape const& s : c.out) out.push_back(bf16(s));
      auto const got = run_there<bfloat16>(measured, c.op, in, numbers, out, c.place);
      if (measure) continue;                                   // garbage
      auto const want = run_there<bfloat16>(by_heuristic, c.op, in, numbers, out, c.place);
      double worst = 0;
      for (std::size_t k = 0; k < want.size(); ++k)
        for (std::size_t i = 0; i < want[k].size(); ++i) worst = std::max(worst, off(got[k][i], want[k][i]));
      CHECK_MESSAGE(worst < 0.02, (tensorpar::op::spell(c.op) + " is off by " + std::to_string(worst)));
    }
  }
}

TEST_CASE("products take their operands and biases at any address") {
  if (no_gpu()) return;
  check_addresses<float, float>(1e-6);
  check_addresses<double, double>(1e-12);
  check_addresses<bfloat16, bfloat16>(1.0 / 128);
  check_addresses<bfloat16, float>(1e-6);
}

TEST_CASE("many short rows, which warps take: exactly in the prime field, up to rounding else") {
  if (no_gpu()) return;
  std::mt19937_64 r(7);
  for (i64 columns : {1, 24, 100})
    for (sample const& s : std::vector<sample>{{softmax{}, {{1027, columns}}},
                                               {softmax_grad{}, {{1027, columns}, {1027, columns}}},
                                               {layernorm{}, {{1027, columns}, {columns}, {columns}}},
                                               {layernorm_grad_x{}, {{1027, columns}, {1027, columns}, {columns}}},
                                               {layernorm_grad_gamma{}, {{1027, columns}, {1027, columns}}},
                                               {attention{1, true}, {{1, 1027, columns}, {1, columns, columns}, {1, columns, columns}}},
                                               {cross_entropy{}, {{1027, columns}, ints({1027})}, static_cast<int>(columns)}}) {
      CAPTURE(tensorpar::op::spell(s.op));
      auto const exact = operands_of<prime_field>(s, r);
      CHECK(run_whole<staged<compute::cuda<prime_field>>>(s.op, exact) == run_whole<compute::teams<prime_field>>(s.op, exact));
      auto const x = operands_of<double>(s, r);
      auto const got = run_whole<staged<compute::cuda<double>>>(s.op, x), want = run_whole<compute::teams<double>>(s.op, x);
      double worst = 0;
      for (std::size_t k = 0; k < got.size(); ++k)
        for (std::size_t e = 0; e < got[k].real.size(); ++e) worst = std::max(worst, distance(got[k].real[e], want[k].real[e]));
      CHECK(worst < 1e-10);
    }
}

TEST_CASE("many rows that warps hold between passes, in 5, 7 and 8 turns") {
  if (no_gpu()) return;
  std::mt19937_64 r(9);
  for (i64 columns : {516, 800, 1024})
    for (sample const& s : std::vector<sample>{{layernorm{}, {{1027, columns}, {columns}, {columns}}},
                                               {rmsnorm{}, {{1027, columns}, {columns}}}}) {
      CAPTURE(tensorpar::op::spell(s.op));
      CAPTURE(columns);
      auto const x = operands_of<float>(s, r);
      auto const got = run_whole<staged<compute::cuda<float>>>(s.op, x), want = run_whole<compute::teams<float>>(s.op, x);
      double worst = 0;
      REQUIRE(got.size() == 1);
      for (std::size_t e = 0; e < got[0].real.size(); ++e) worst = std::max(worst, distance(got[0].real[e], want[0].real[e]));
      CHECK(worst < 1e-4);
    }
  compute::cuda_bf16<> const gpu(tensorpar::exec::device_place{});
  compute::teams<float, tensorpar::exec::host_teams<>, tensorpar::op::op_set<>, bfloat16> const host;
  auto const bf16 = [](shape s) { return s.of(dtype::bf16); };
  for (i64 columns : {1032, 1600, 2048}) {
    CAPTURE(columns);
    std::vector<shape> const in{bf16({1027, columns}), bf16({columns}), bf16({columns})}, out{in[0]};
    std::vector<std::vector<bfloat16>> x;
    for (shape const& s : in) {
      x.emplace_back(static_cast<std::size_t>(s.elements()));
      for (bfloat16& e : x.back()) draw(e, r);
    }
    auto const got = run_there<bfloat16>(gpu, layernorm{}, in, x, out)[0], want = run_there<bfloat16>(host, layernorm{}, in, x, out)[0];
    double worst = 0;
    for (std::size_t e = 0; e < got.size(); ++e) worst = std::max(worst, off(got[e], want[e]));
    CHECK(worst < 0.02);
  }
}

TEST_CASE("products by tensor cores: floats rounded to 11 bits") {
  if (no_gpu()) return;
  check_agreement<staged<compute::cuda_tf32<>>, compute::teams<float>>(5e-3);
}

TEST_CASE("training in bf16 on the GPU is that of the processor's kernels, but for rounding") {
  if (no_gpu()) return;
  struct first_gpu : compute::cuda_bf16<> {
    first_gpu() : compute::cuda_bf16<>(tensorpar::exec::device_place{}) {}
  };
  std::mt19937 draw(32);
  for (computation_graph const& g : {residual_mlp(), small_cnn(), small_transformer()})
    for (int ranks : {1, 2, 4}) {
      training_options o;
      o.optimizer.kind = optimizer_kind::momentum;
      training_graph const t = differentiate(mixed_precision(g), o);
      plan p = random_plan(mixed_precision(g), ranks, draw);
      p.optimizer = o.optimizer;
      executor<first_gpu, comm::virtual_ranks<cuda_memory>> gpu(t, p);
      executor<compute::teams<float, tensorpar::exec::host_teams<>, tensorpar::op::op_set<>, bfloat16>, comm::threads> host(t, p);
      auto const a = train(gpu, 3, 0.05), b = train(host, 3, 0.05);
      std::vector<std::vector<double>> c, d;
      for (auto const& x : a) c.emplace_back(x.begin(), x.end());
      for (auto const& x : b) d.emplace_back(x.begin(), x.end());
      CHECK(tests::distance(c, d) < 0.02);
      CHECK(gpu.copies_agree());
    }
}

TEST_CASE("gradients of tables: many indices, few rows, in the order of the indices") {
  if (no_gpu()) return;
  check_many_indices<staged<compute::cuda<prime_field>>>();
  check_many_indices<staged<compute::cuda<float>>>();
}

TEST_CASE("indices out of range are errors that name operator and index") {
  if (no_gpu()) return;
  check_index_faults<staged<compute::cuda<float>>>();
}

TEST_CASE("plans for 1, 2, 4 and 8 ranks on one GPU: the bits of the processor in the prime field, its numbers in double") {
  if (no_gpu()) return;
  std::mt19937 draw(31);
  for (computation_graph const& g : {residual_mlp(), small_cnn(), small_transformer()})
    for (int ranks : {1, 2, 4, 8}) {
      plan const p = random_plan(g, ranks, draw);
      ranks_on_one<prime_field> gpu(differentiate(g), p);
      by_host<prime_field> host(differentiate(g), p);
      CHECK(train(gpu, 2) == train(host, 2));
      CHECK(gpu.copies_agree());
      ranks_on_one<double> a(differentiate(g), p);
      by_host<double> b(differentiate(g), p);
      CHECK(tests::distance(train(a, 2), train(b, 2)) < 1e-9);
    }
}

TEST_CASE("a plan is evaluated on the GPU between steps that are replayed, which go on as if it had not been") {
  if (no_gpu()) return;
  std::mt19937 draw(32);
  for (computation_graph g : {residual_mlp(), small_cnn(), small_transformer()})
    for (int ranks : {1, 3}) {
      g.add_output("logits " + std::to_string(ranks), g.node(g.value(g.output("loss")).producer).in[0]);
      plan const p = random_plan(g, ranks, draw);
      ranks_on_one<prime_field> gpu(differentiate(g), p);
      by_host<prime_field> host(differentiate(g), p);
      gpu.initialise(7);
      host.initialise(7);
      for (u64 k = 0; k < 4; ++k) {
        host_batch const batch = random_batch(g, 1, k);
        CHECK(gpu.evaluate(batch, {g.outputs.back().name, "loss"}) == host.evaluate(batch, {g.outputs.back().name, "loss"}));
        gpu.step(batch, 0.125);
        host.step(batch, 0.125);
      }
      CHECK(parameters_of(gpu) == parameters_of(host));
    }
}
