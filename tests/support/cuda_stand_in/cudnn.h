// tests/support/cuda_stand_in/cudnn.h - cuDNN's backend interface: graphs of operations, done one after the other in double
#pragma once
#define CUDNN_STAND_IN 1
#include <algorithm>
#include "calls.hpp"
#include "cudnn_graphs.hpp"

namespace cuda_stand_in {

/// What the library says its version is.
inline std::size_t& cudnn_version() {
  static std::size_t v = CUDNN_VERSION;
  return v;
}
template <class F> cudnnStatus_t graph_call(char const* name, F&& f) {
  the_machine& m = the_machine::get();
  std::lock_guard const held(m.lock);
  ++m.calls[name];
  return f();
}
/// Attention takes bf16 in heads of a multiple of 8, and tensor cores; convolutions have ways with and without them, in one order and in
/// none. The first proposal cannot be made ready, the second takes more memory than anybody has.
inline std::vector<way> ways(fused_graph const& g) {
  bool attention = false, good = true, narrow = false;
  for (auto const& s : g.steps) {
    if (s.op != fused_op::multiply) continue;
    attention = true;
    auto const& x = g.tensors[static_cast<std::size_t>(s.x)].extent;
    good = good && (x[3] % 8 == 0 || g.tensors[static_cast<std::size_t>(s.x)].is == fused_tensor::role::hidden);
  }
  for (auto const& t : g.tensors) narrow = narrow || t.type == fused_type::bf16;
  if (!good) return {};
  std::vector<way> r{{0, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, false}, {std::int64_t{1} << 50, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}}};
  if (attention) {
    // a gradient's scratch, as attention_rooms says: scores' gradients by tiles, or floats for queries' that are added up at last
    auto const extent = [&](int t) { return g.tensors[static_cast<std::size_t>(t)].extent; };
    std::int64_t bytes = 0;
    bool const in_order = g.steps.back().op == fused_op::multiply;
    for (auto const& s : g.steps)
      if (s.op == fused_op::multiply && bytes == 0) {
        auto const scores = extent(s.to);
        bytes = 2 * scores[0] * scores[1] * ((scores[2] + 63) / 64 * 64) * ((scores[3] + 127) / 128 * 128);
      }
    if (!in_order) {
      auto const queries = extent(g.steps.back().to);
      bytes = 4 * queries[0] * queries[1] * queries[2] * queries[3];
    }
    bool const backward = std::count_if(g.steps.begin(), g.steps.end(), [](auto const& s) { return s.op == fused_op::multiply; }) > 2;
    r.push_back({backward ? bytes : 0, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}});
    return r;
  }
  r.push_back({4096, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}});
  r.push_back({4096, {CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION}});
  r.push_back({4096, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}});
  if (!narrow) r.push_back({4096, {}});
  return r;
}
inline descriptor* known(void* p) {
  auto* const d = static_cast<descriptor*>(p);
  return descriptors().count(d) ? d : nullptr;
}
inline bool is_handle(descriptor const& d, cudnnBackendAttributeName_t name) {
  return d.one<cudnnHandle_t>(name, CUDNN_TYPE_HANDLE).value_or(nullptr) != nullptr;
}

}  // namespace cuda_stand_in

inline std::size_t cudnnGetVersion() { return cuda_stand_in::cudnn_version(); }
inline void cudnnGetLastErrorString(char* to, std::size_t n) { if (n) *to = 0; }
inline cudnnStatus_t cudnnCreate(cudnnHandle_t* h) {
  return cuda_stand_in::graph_call("cudnnCreate", [&] {
    using namespace cuda_stand_in;
    the_machine& m = the_machine::get();
    if (m.gpus == 0 || m.state(current_gpu) != cudaSuccess || scheduler::get().refuse_unsafe()) return CUDNN_STATUS_NOT_INITIALIZED;
    *h = new cudnnContext{current_gpu, nullptr};
    ++m.descriptors;
    return CUDNN_STATUS_SUCCESS;
  });
}
inline cudnnStatus_t cudnnDestroy(cudnnHandle_t h) {
  return cuda_stand_in::graph_call("cudnnDestroy", [&] {
    cuda_stand_in::scheduler::get().finish_all(h->gpu);
    --cuda_stand_in::the_machine::get().descriptors;
    delete h;
    return CUDNN_STATUS_SUCCESS;
  });
}
inline cudnnStatus_t cudnnSetStream(cudnnHandle_t h, cudaStream_t s) {
  return cuda_stand_in::graph_call("cudnnSetStream", [&] {
    cuda_stand_in::queue* const q = cuda_stand_in::queue_of(s);
    if (!q || q->gpu != h->gpu) return CUDNN_STATUS_BAD_PARAM;
    h->stream = s;
    return CUDNN_STATUS_SUCCESS;
  });
}

inline cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* to) {
  return cuda_stand_in::graph_call("cudnnBackendCreateDescriptor", [&] {
    using namespace cuda_stand_in;
    auto* const d = new descriptor{type, false, {}, {}};
    descriptors().insert(d);
    ++the_machine::get().descriptors;
    *to = d;
    return CUDNN_STATUS_SUCCESS;
  });
}
inline cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t p) {
  return cuda_stand_in::graph_call("cudnnBackendDestroyDescriptor", [&] {
    using namespace cuda_stand_in;
    descriptor* const d = known(p);
    if (!d) return CUDNN_STATUS_BAD_PARAM;
    descriptors().erase(d);
    --the_machine::get().descriptors;
    delete d;
    return CUDNN_STATUS_SUCCESS;
  });
}
inline cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t p, cudnnBackendAttributeName_t name,
                                              cudnnBackendAttributeType_t type, std::int64_t n, void const* values) {
  return cuda_stand_in::graph_call("cudnnBackendSetAttribute", [&] {
    using namespace cuda_stand_in;
    descriptor* const d = known(p);
    if (!d || d->finished || n < 1 || !values) return CUDNN_STATUS_BAD_PARAM;
    auto const* const bytes = static_cast<unsigned char const*>(values);
    d->said[name] = {type, n, {bytes, bytes + static_cast<std::size_t>(n) * size_of(type)}};
    return CUDNN_STATUS_SUCCESS;
  });
}
inline cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t p) {
  return cuda_stand_in::graph_call("cudnnBackendFinalize", [&] {
    using namespace cuda_stand_in;
    descriptor* const d = known(p);
    if (!d || d->finished) return CUDNN_STATUS_BAD_PARAM;
    switch (d->type) {
      case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
        if (!d->has(CUDNN_ATTR_TENSOR_UNIQUE_ID) || !d->has(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT)) return CUDNN_STATUS_BAD_PARAM;
        break;
      case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
        if (!is_handle(*d, CUDNN_ATTR_OPERATIONGRAPH_HANDLE) || !said_graph(*d).good) return CUDNN_STATUS_BAD_PARAM;
        break;
      case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR: {
        auto const mode = d->one<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE);
        if (!mode || !there(d->other(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH), CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR))
          return CUDNN_STATUS_BAD_PARAM;
        if (*mode == CUDNN_HEUR_MODE_FALLBACK) return CUDNN_STATUS_NOT_SUPPORTED;
        break;
      }
      case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR: {
        descriptor const* const c = there(d->other(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG), CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
        if (!c || !is_handle(*d, CUDNN_ATTR_EXECUTION_PLAN_HANDLE)) return CUDNN_STATUS_BAD_PARAM;
        if (!c->how->good) return CUDNN_STATUS_NOT_SUPPORTED;
        d->how = c->how;
        d->said[CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH] = c->said.at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
        break;
      }
      case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
        if (d->all<std::int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64).size() !=
            d->all<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR).size())
          return CUDNN_STATUS_BAD_PARAM;
        break;
      default: break;
    }
    d->finished = true;
    return CUDNN_STATUS_SUCCESS;
  });
}
inline cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t p, cudnnBackendAttributeName_t name,
                                              cudnnBackendAttributeType_t type, std::int64_t n, std::int64_t* count, void* values) {
  return cuda_stand_in::graph_call("cudnnBackendGetAttribute", [&] {
    using namespace cuda_stand_in;
    descriptor* const d = known(p);
    if (!d || !d->finished) return CUDNN_STATUS_NOT_INITIALIZED;
    auto const fill = [&](std::size_t i, cudnnBackendDescriptorType_t of, way const& how, descriptor const& from) {
      descriptor* const to = known(static_cast<void**>(values)[i]);
      if (!to || to->finished || to->type != of) return false;
      to->how = how;
      to->said[CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH] = from.said.at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
      return to->finished = true;
    };
    if (d->type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR && name == CUDNN_ATTR_ENGINEHEUR_RESULTS && type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
      std::vector<way> const all = ways(said_graph(*d->other(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH)).graph);
      *count = static_cast<std::int64_t>(all.size());
      if (!values) return CUDNN_STATUS_SUCCESS;
      *count = std::min(n, *count);
      for (std::size_t i = 0; i < static_cast<std::size_t>(*count); ++i)
        if (!fill(i, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, all[i], *d)) return CUDNN_STATUS_BAD_PARAM;
      return CUDNN_STATUS_SUCCESS;
    }
    if (d->type == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR && name == CUDNN_ATTR_ENGINECFG_ENGINE && type == CUDNN_TYPE_BACKEND_DESCRIPTOR &&
        n == 1) {
      *count = 1;
      return fill(0, CUDNN_BACKEND_ENGINE_DESCRIPTOR, *d->how, *d) ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
    }
    if (d->type == CUDNN_BACKEND_ENGINE_DESCRIPTOR && name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE && type == CUDNN_TYPE_NUMERICAL_NOTE) {
      *count = static_cast<std::int64_t>(d->how->notes.size());
      for (std::int64_t i = 0; i < std::min(n, *count); ++i)
        static_cast<cudnnBackendNumericalNote_t*>(values)[i] = d->how->notes[static_cast<std::size_t>(i)];
      return CUDNN_STATUS_SUCCESS;
    }
    if (d->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR && name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE &&
        type == CUDNN_TYPE_INT64 && n == 1) {
      *count = 1;
      *static_cast<std::int64_t*>(values) = d->how->workspace;
      return CUDNN_STATUS_SUCCESS;
    }
    return CUDNN_STATUS_NOT_SUPPORTED;
  });
}
/// Every tensor that has an address must have one in the GPU's memory, all of it, at a multiple of 16; numbers have one in the host's.
inline cudnnStatus_t cudnnBackendExecute(cudnnHandle_t h, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack) {
  return cuda_stand_in::graph_call("cudnnBackendExecute", [&] {
    using namespace cuda_stand_in;
    descriptor const *const d = there(known(plan), CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR),
                     *const v = there(known(pack), CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    if (!h || !d || !v) return CUDNN_STATUS_BAD_PARAM;
    the_machine& m = the_machine::get();
    descriptor const* const g = there(d->other(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH), CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    if (!g) return CUDNN_STATUS_BAD_PARAM;
    said_graph said(*g);
    if (!said.good) return CUDNN_STATUS_BAD_PARAM;
    auto const names = v->all<std::int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64);
    auto const addresses = v->all<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR);
    void* const room = v->one<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR).value_or(nullptr);
    auto const inside = [&](void const* p, std::int64_t bytes) {
      return reinterpret_cast<std::uintptr_t>(p) % 16 == 0 && m.memory.owner(p, static_cast<std::size_t>(bytes)) == h->gpu;
    };
    std::vector<void*> at(said.names.size(), nullptr);
    for (std::size_t t = 0; t < at.size(); ++t) {
      fused_tensor& x = said.graph.tensors[t];
      for (std::size_t i = 0; i < names.size(); ++i) if (names[i] == said.names[t]) at[t] = addresses[i];
      if (x.is == fused_tensor::role::hidden) continue;
      if (!at[t]) return CUDNN_STATUS_BAD_PARAM;
      if (x.is == fused_tensor::role::number) x.value = *static_cast<float const*>(at[t]);
      else if (!inside(at[t], (last_element(x) + 1) * (x.type == fused_type::bf16 ? 2 : 4))) return CUDNN_STATUS_BAD_PARAM;
    }
    std::int64_t const bytes = d->how->workspace;
    if (bytes > 0 && !inside(room, bytes)) return CUDNN_STATUS_BAD_PARAM;
    queue* const q = queue_of(h->stream);
    if (!q || q->gpu != h->gpu || m.state(h->gpu) != cudaSuccess) return CUDNN_STATUS_EXECUTION_FAILED;
    cudaError_t const asked =
        scheduler::get().ask(*q, [graph = said.graph, at, room, bytes] { return run_graph(graph, at, room, bytes); });
    return asked == cudaSuccess ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
  });
}
