// tests/stand_in/choices.test.cpp - which ways of computing a product are chosen: by the heuristic, or because they were measured
#include <cuda_runtime.h>
#include <doctest/doctest.h>

#include "gpu.hpp"

#include "support/laws/fused.hpp"
#include "support/small_graphs.hpp"
#include "support/training.hpp"
#include <tensorpar/exec/comm/virtual_ranks.hpp>
#include <tensorpar/exec/cuda/teams.cuh>
#include <tensorpar/exec/profile.hpp>
#include <tensorpar/exec/step/fuse.hpp>
#include <tensorpar/ir/mixed_precision.hpp>

using namespace tests;
using gpu_tests::gpus;

namespace {

using policy = compute::cuda_bf16<>;

/// Every product that is computed: its epilogue and its algorithm. How long it takes is said by the test.
struct watched {
  std::vector<std::pair<std::uint32_t, int>> seen;
  std::map<std::pair<std::uint32_t, int>, std::uint64_t> time;
  watched() {
    cuda_stand_in::product_time() = [this](cuda_stand_in::product_desc const& d, int algorithm) {
      seen.push_back({d.epilogue, algorithm});
      auto const i = time.find(seen.back());
      return i == time.end() ? std::uint64_t{100000} : i->second;
    };
  }
  watched(watched const&) = delete;
  watched& operator=(watched const&) = delete;
  ~watched() { cuda_stand_in::product_time() = nullptr; }
};

/// One call of a fused operator: the products that it makes.
struct calls {
  tensorpar::op::any_op op;
  std::vector<shape> in, out;
  std::vector<std::vector<bfloat16>> x;
  std::vector<std::vector<bfloat16>> run(policy const& p) const { return run_there<bfloat16>(p, op, in, x, out); }
};
calls call_of(tensorpar::op::any_op const& o, std::vector<shape> in, std::vector<shape> out) {
  std::mt19937_64 r(3);
  calls c{o, {}, {}, {}};
  for (shape s : in) {
    s.type = dtype::bf16;
    c.in.push_back(s);
    std::vector<bfloat16> v(static_cast<std::size_t>(s.elements()));
    for (bfloat16& e : v) draw(e, r);
    c.x.push_back(v);
  }
  for (shape s : out) {
    s.type = dtype::bf16;
    c.out.push_back(s);
  }
  return c;
}
calls with_gelu() { return call_of(tensorpar::op::linear_with{true, true, false}, {{16, 8}, {24, 8}, {24}}, {{16, 24}, {16, 24}}); }
calls with_slope() {
  return call_of(tensorpar::op::contraction_with{contraction("0o,oi->0i"), true, false, false}, {{16, 24}, {24, 8}, {16, 8}}, {{16, 8}});
}
calls with_sum() { return call_of(tensorpar::op::linear_with{true, false, true}, {{16, 8}, {24, 8}, {24}, {16, 24}}, {{16, 24}}); }
calls with_sums() {
  return call_of(tensorpar::op::contraction_with{contraction("0o,0i->oi"), false, false, true}, {{16, 24}, {16, 8}}, {{24, 8}, {24}});
}
struct one_way {
  calls call;
  cublasLtEpilogue_t epilogue;                 // by which cuBLASLt does both
};
std::vector<one_way> all_ways() {
  return {{with_gelu(), CUBLASLT_EPILOGUE_GELU_AUX_BIAS}, {with_slope(), CUBLASLT_EPILOGUE_DGELU}, {with_sum(), CUBLASLT_EPILOGUE_BIAS},
          {with_sums(), CUBLASLT_EPILOGUE_BGRADB}};
}

}  // namespace

TEST_CASE("by the heuristic: its first algorithm, with what follows the product, but for sums beside it") {
  gpus const played;
  policy const p{cuda_teams(cuda_memory(0))};
  for (auto const& [call, both] : all_ways()) {
    auto const epilogue = both == CUBLASLT_EPILOGUE_BGRADB ? CUBLASLT_EPILOGUE_DEFAULT : both;
    watched w;
    played.m.calls.clear();
    call.run(p);
    call.run(p);
    CHECK(w.seen == std::vector<std::pair<std::uint32_t, int>>(2, {epilogue, 0}));
    bool const apart = epilogue == CUBLASLT_EPILOGUE_DEFAULT;
    CHECK((played.m.calls["cudaLaunchKernelEx"] > 0) == apart);
  }
}

TEST_CASE("measured: the fastest algorithm, and kernels where they are faster than what cuBLASLt does beside a product") {
  gpus const played;
  for (auto const& [call, epilogue] : all_ways())
    for (bool slow : {false, true}) {
      auto const choices = std::make_shared<cuda_product_choices>();
      policy const p{cuda_teams(cuda_memory(0), choices)}, by_heuristic{cuda_teams(cuda_memory(0))};
      auto const want = call.run(by_heuristic);
      watched w;
      std::uint32_t const plain = epilogue & CUBLASLT_EPILOGUE_BIAS ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
      if (plain != epilogue) {
        for (int k : {0, 1, 2}) w.time[{epilogue, k}] = slow ? 900000 : 90000;
        w.time[{plain, 2}] = 80000;
      }
      w.time[{epilogue, 1}] = slow && plain != epilogue ? 800000 : 70000;
      choices->measure(true);
      call.run(p);
      choices->measure(false);
      CHECK(choices->size() == 2);                             // with what follows, and without
      w.seen.clear();
      auto const got = call.run(p);
      bool const apart = slow && plain != epilogue;
      CHECK(w.seen == std::vector<std::pair<std::uint32_t, int>>{apart ? std::pair{plain, 2} : std::pair{std::uint32_t{epilogue}, 1}});
      double worst = 0;
      for (std::size_t k = 0; k < got.size(); ++k)
        for (std::size_t i = 0; i < got[k].size(); ++i) worst = std::max(worst, off(got[k][i], want[k][i]));
      CHECK(worst < 0.02);
    }
}

TEST_CASE("measured: an algorithm that fails is none, and where all fail kernels do it; gelu beside products is not everywhere") {
  gpus const played;
  for (int good : {1, -1}) {                                 // the one algorithm that works with what follows
    auto const choices = std::make_shared<cuda_product_choices>();
    policy const p{cuda_teams(cuda_memory(0), choices)};
    watched w;
    calls const call = with_gelu();
    cuda_stand_in::product_refusal() = [&](cuda_stand_in::product_desc const& d, int algorithm) {
      return d.epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS && algorithm != good;
    };
    choices->measure(true);
    call.run(p);
    choices->measure(false);
    w.seen.clear();
    call.run(p);
    cuda_stand_in::product_refusal() = nullptr;
    auto const epilogue = good < 0 ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
    CHECK(w.seen == std::vector<std::pair<std::uint32_t, int>>{{epilogue, good < 0 ? 0 : good}});
  }
  for (int major : {8, 9, 10, 12}) {
    played.m.capability = major;
    policy const p{cuda_teams(cuda_memory(0))};
    watched w;
    with_gelu().run(p);
    auto const epilogue = major == 9 || major == 10 ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_BIAS;
    CHECK(w.seen == std::vector<std::pair<std::uint32_t, int>>{{epilogue, 0}});
  }
  played.m.capability = 9;
}

TEST_CASE("profiling measures products for the policies that share the choices; training then computes as it did") {
  gpus const played;
  computation_graph const g = mixed_precision(small_transformer());
  plan p = serial_plan(g);
  p.scalar_bytes = sizeof(float);
  training_graph const t = differentiate(g);
  program const q = tensorpar::exec::fused<policy>(unroll(t, p, {&policy::workspace}), p.cluster);
  struct shared {
    std::shared_ptr<cuda_product_choices> choices = std::make_shared<cuda_product_choices>();
    comm::virtual_ranks<cuda_memory>::world operator()(int ranks) const { return comm::virtual_ranks<cuda_memory>::world(ranks); }
    compute::cuda_bf16<> policy(tensorpar::exec::device_place at) const {
      return compute::cuda_bf16<>(cuda_teams(cuda_memory(at), choices));
    }
  };
  auto const trained = [&](shared const& make) {
    executor<policy, comm::virtual_ranks<cuda_memory>> e(planned_step{t, p, q}, make);
    std::vector<std::vector<double>> r;
    for (auto const& x : train(e, 3)) r.emplace_back(x.begin(), x.end());
    return r;
  };
  shared const plain, measured;
  auto const want = trained(plain);
  std::size_t met = 0;
  {
    watched w;
    for (std::uint32_t e : {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_GELU_AUX_BIAS, CUBLASLT_EPILOGUE_DGELU,
                            CUBLASLT_EPILOGUE_BGRADB})
      w.time[{e, 2}] = 50000;
    measured.choices->measure(true);
    tensorpar::cost::profile_table const prices = measure_operators(measured.policy({}), q, p.cluster,
                                                                    {.warm_ups = 1, .samples = 1, .min_seconds = 0});
    measured.choices->measure(false);
    CHECK(prices.size() > 10);
    met = measured.choices->size();
    CHECK(met > 10);
    w.seen.clear();
    CHECK(tests::distance(trained(measured), want) < 0.02);
    CHECK(measured.choices->size() == met);                   // training has met nothing else
    CHECK(!w.seen.empty());
    for (auto const& [epilogue, algorithm] : w.seen) CHECK(algorithm == 2);
  }
}
