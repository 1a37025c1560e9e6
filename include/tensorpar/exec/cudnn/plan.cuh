// tensorpar/exec/cudnn/plan.cuh - how cuDNN does a graph on a GPU: the first way it proposes that keeps
// within what is asked
#pragma once
#include <optional>
#include <tensorpar/core/index.hpp>
#include <tensorpar/exec/cudnn/lowering.cuh>

namespace tensorpar::detail {

/// What a way of doing a graph may cost: bytes of scratch; sums that cuDNN itself says have no order (whether
/// attention's have follows from its graph: see attention_backward); operands rounded to what tensor cores
/// take.
struct cudnn_limits {
  i64 workspace = 0;
  bool in_order = true;
  bool rounds = false;
};

/// A tensor's address when a graph is run.
struct fused_address {
  int tensor;
  void* at;
};

/// One way of doing one graph.
class cudnn_plan {
  cudnn_graph graph_;
  cudnn_descriptor config_, plan_;
  std::vector<fused_address> numbers_;   // addresses within values_
  std::vector<float> values_;
  i64 workspace_ = 0;

  cudnn_plan(cudnn_graph g, cudnn_descriptor config, cudnn_descriptor plan, fused_graph const& what)
      : graph_(std::move(g)), config_(std::move(config)), plan_(std::move(plan)) {
    std::int64_t bytes = 0;
    plan_.get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, &bytes, 1);
    workspace_ = bytes;
    values_.reserve(what.tensors.size());
    for (std::size_t i = 0; i < what.tensors.size(); ++i)
      if (what.tensors[i].is == fused_tensor::role::number) {
        values_.push_back(what.tensors[i].value);
        numbers_.push_back({static_cast<int>(i), &values_.back()});
      }
  }

  static bool allowed(cudnn_descriptor const& config, cudnn_limits const& most) {
    cudnn_descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    auto raw = engine.get();
    config.get(CUDNN_ATTR_ENGINECFG_ENGINE, &raw, 1);
    cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    std::int64_t const n =
        engine.get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, notes, CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
    for (std::int64_t i = 0; i < n; ++i) {
      if (notes[i] == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC && most.in_order) return false;
      if (notes[i] == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION) return false;
      bool const rounds = notes[i] == CUDNN_NUMERICAL_NOTE_TENSOR_CORE ||
                          notes[i] == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;
      if (rounds && !most.rounds) return false;
    }
    return true;
  }

 public:
  cudnn_plan(cudnn_plan&&) = default;

  /// The first proposal within the limits that cuDNN can make ready; nothing where there is none. Kernels are
  /// compiled, which takes up to a second.
  static std::optional<cudnn_plan> choose(fused_graph const& g, cudnn_target const& target,
                                          cudnn_limits const& most) {
    std::optional<cudnn_graph> said;
    try {
      said.emplace(g, target);
    } catch (error const&) {
      return {};                           // sizes that cuDNN has no words for
    }
    for (cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
      cudnn_descriptor ask(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
      ask.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, said->descriptor())
          .set(CUDNN_ATTR_ENGINEHEUR_MODE, mode);
      target.tell_properties(ask, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP);
      if (cudnnBackendFinalize(ask.get()) != CUDNN_STATUS_SUCCESS) continue;
      std::vector<cudnn_descriptor> configs;
      std::vector<cudnnBackendDescriptor_t> raw;
      for (std::int64_t n = ask.get<cudnnBackendDescriptor_t>(CUDNN_ATTR_ENGINEHEUR_RESULTS, nullptr, 0);
           n > 0; --n)
        raw.push_back(configs.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).get());
      auto const found =
          ask.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, raw.data(), static_cast<std::int64_t>(raw.size()));
      for (std::size_t i = 0; i < idx(found); ++i) {
        if (!allowed(configs[i], most)) continue;
        cudnn_descriptor p(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
        p.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configs[i]);
        target.tell(p, CUDNN_ATTR_EXECUTION_PLAN_HANDLE);
        target.tell_properties(p, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
        if (cudnnBackendFinalize(p.get()) != CUDNN_STATUS_SUCCESS) continue;
        cudnn_plan r(std::move(*said), std::move(configs[i]), std::move(p), g);
        if (r.workspace_ <= most.workspace) return r;
        said.emplace(std::move(r.graph_));
      }
    }
    return {};
  }

  /// Bytes of scratch.
  i64 workspace() const { return workspace_; }
  /// Work in the handle's stream. Precondition: an address for every tensor that is given; `workspace()`
  /// bytes at `room`.
  void run(cudnnHandle_t handle, std::vector<fused_address> const& given, void* room) const {
    std::vector<std::int64_t> names;
    std::vector<void*> addresses;
    for (auto const* all : {&given, &numbers_})
      for (fused_address const& a : *all) {
        names.push_back(a.tensor + 1);
        addresses.push_back(a.at);
      }
    cudnn_descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, names.data(), static_cast<std::int64_t>(names.size()));
    pack.set_addresses(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, addresses.data(),
                       static_cast<std::int64_t>(addresses.size()));
    pack.set_addresses(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, &room, 1).finish("addresses");
    cudnn_check(cudnnBackendExecute(handle, plan_.get(), pack.get()), "cudnnBackendExecute");
  }
};

}  // namespace tensorpar::detail
