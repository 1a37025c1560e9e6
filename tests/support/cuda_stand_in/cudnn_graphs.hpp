// tests/support/cuda_stand_in/cudnn_graphs.hpp - descriptors of cuDNN's: what was said in them, which graph that is, and doing it
#pragma once
#include "../fused_oracle.hpp"
#include "cudnn_types.hpp"
#include "products.hpp"
#include <cstring>
#include <limits>
#include <optional>
#include <set>

namespace cuda_stand_in {

using tensorpar::detail::fused_graph;
using tensorpar::detail::fused_op;
using tensorpar::detail::fused_sizes;
using tensorpar::detail::fused_tensor;
using tensorpar::detail::fused_type;

/// A way of doing a graph, as heuristics propose it.
struct way {
  std::int64_t workspace = 0;
  std::vector<cudnnBackendNumericalNote_t> notes;
  bool good = true;                            // can be made ready
};
struct descriptor {
  struct attribute {
    cudnnBackendAttributeType_t type;
    std::int64_t n;
    std::vector<unsigned char> bytes;
  };
  cudnnBackendDescriptorType_t type;
  bool finished = false;
  std::map<cudnnBackendAttributeName_t, attribute> said;
  std::optional<way> how;                      // of engines and what is made of them

  /// What was said under the name, if it is so many of this type.
  template <class T> std::vector<T> all(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t of) const {
    auto const i = said.find(name);
    if (i == said.end() || i->second.type != of) return {};
    std::vector<T> r(static_cast<std::size_t>(i->second.n));
    std::memcpy(r.data(), i->second.bytes.data(), i->second.bytes.size());
    return r;
  }
  template <class T> std::optional<T> one(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t of) const {
    auto const i = said.find(name);
    if (i == said.end() || i->second.type != of || i->second.n != 1) return {};
    T r;
    std::memcpy(&r, i->second.bytes.data(), sizeof r);
    return r;
  }
  bool has(cudnnBackendAttributeName_t name) const { return said.count(name) > 0; }
  descriptor* other(cudnnBackendAttributeName_t name) const {
    return one<descriptor*>(name, CUDNN_TYPE_BACKEND_DESCRIPTOR).value_or(nullptr);
  }
};
/// All that exist: what one was told of must be there when it is needed.
inline std::set<descriptor const*>& descriptors() {
  static std::set<descriptor const*> all;
  return all;
}
inline descriptor const* there(descriptor const* d, cudnnBackendDescriptorType_t type) {
  return descriptors().count(d) && d->finished && d->type == type ? d : nullptr;
}
inline std::size_t size_of(cudnnBackendAttributeType_t t) {
  switch (t) {
    case CUDNN_TYPE_BOOLEAN:
    case CUDNN_TYPE_CHAR: return 1;
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE: return 8;
    default: return 4;
  }
}

/// The graph that descriptors say, with the name of every tensor.
struct said_graph {
  fused_graph graph;
  std::vector<std::int64_t> names;
  std::map<descriptor const*, int> number;
  bool good = true;                            // everything is there, and said as it must be

  explicit said_graph(descriptor const& g) {
    for (descriptor* o : g.all<descriptor*>(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR)) add(o);
    good = good && !graph.steps.empty() && std::set<std::int64_t>(names.begin(), names.end()).size() == names.size();
  }

 private:
  int fail() {
    good = false;
    return -1;
  }
  int tensor(descriptor const& o, cudnnBackendAttributeName_t name) {
    descriptor const* const d = there(o.other(name), CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    if (!d) return fail();
    if (auto const i = number.find(d); i != number.end()) return i->second;
    auto const id = d->one<std::int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64);
    auto const type = d->one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE);
    fused_sizes const extent = d->all<std::int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64),
                      apart = d->all<std::int64_t>(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64);
    bool const hidden = d->one<bool>(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN).value_or(false),
               value = d->one<bool>(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN).value_or(false);
    if (!id || !type || extent.empty() || extent.size() != apart.size() || (hidden && value)) return fail();
    fused_type const t = *type == CUDNN_DATA_BFLOAT16 ? fused_type::bf16 : *type == CUDNN_DATA_INT32 ? fused_type::i32
                         : *type == CUDNN_DATA_BOOLEAN ? fused_type::truth : fused_type::f32;
    int const n = hidden ? graph.hidden(extent, apart, t) : value ? graph.number(0) : graph.given(extent, apart, t);
    names.push_back(*id);
    return number[d] = n;
  }
  void add(descriptor const* o) {
    using D = cudnnBackendDescriptorType_t;
    if (!descriptors().count(o) || !o->finished) return void(fail());
    auto const how = [&](cudnnBackendAttributeName_t name, D type) { return there(o->other(name), type); };
    if (o->type == D::CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR) {
      descriptor const* const p = how(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, D::CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
      if (!p) return void(fail());
      static std::map<cudnnPointwiseMode_t, fused_op> const functions{
          {CUDNN_POINTWISE_MUL, fused_op::product},    {CUDNN_POINTWISE_SUB, fused_op::minus},      {CUDNN_POINTWISE_ADD, fused_op::plus},
          {CUDNN_POINTWISE_DIV, fused_op::quotient},   {CUDNN_POINTWISE_EXP, fused_op::exp_},       {CUDNN_POINTWISE_LOG, fused_op::log_},
          {CUDNN_POINTWISE_IDENTITY, fused_op::copy},  {CUDNN_POINTWISE_GEN_INDEX, fused_op::index},
          {CUDNN_POINTWISE_CMP_GE, fused_op::at_least}, {CUDNN_POINTWISE_BINARY_SELECT, fused_op::select}};
      auto const mode = p->one<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE);
      if (!mode || !functions.count(*mode)) return void(fail());
      int const x = tensor(*o, CUDNN_ATTR_OPERATION_POINTWISE_XDESC),
                b = o->has(CUDNN_ATTR_OPERATION_POINTWISE_BDESC) ? tensor(*o, CUDNN_ATTR_OPERATION_POINTWISE_BDESC) : -1,
                t = o->has(CUDNN_ATTR_OPERATION_POINTWISE_TDESC) ? tensor(*o, CUDNN_ATTR_OPERATION_POINTWISE_TDESC) : -1;
      graph.put(functions.at(*mode), tensor(*o, CUDNN_ATTR_OPERATION_POINTWISE_YDESC), x, b, t);
      graph.steps.back().axis = static_cast<int>(p->one<std::int64_t>(CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64).value_or(-1));
    } else if (o->type == D::CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR) {
      if (!how(CUDNN_ATTR_OPERATION_MATMUL_DESC, D::CUDNN_BACKEND_MATMUL_DESCRIPTOR)) return void(fail());
      int const a = tensor(*o, CUDNN_ATTR_OPERATION_MATMUL_ADESC), b = tensor(*o, CUDNN_ATTR_OPERATION_MATMUL_BDESC);
      graph.put(fused_op::multiply, tensor(*o, CUDNN_ATTR_OPERATION_MATMUL_CDESC), a, b);
    } else if (o->type == D::CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR) {
      descriptor const* const p = how(CUDNN_ATTR_OPERATION_REDUCTION_DESC, D::CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
      if (!p) return void(fail());
      auto const by = p->one<cudnnReduceTensorOp_t>(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE);
      if (!by) return void(fail());
      int const x = tensor(*o, CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
      graph.put(*by == CUDNN_REDUCE_TENSOR_MAX ? fused_op::top : fused_op::sum, tensor(*o, CUDNN_ATTR_OPERATION_REDUCTION_YDESC), x);
    } else if (o->type == D::CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR) {
      int const x = tensor(*o, CUDNN_ATTR_OPERATION_RESHAPE_XDESC);
      graph.put(fused_op::view, tensor(*o, CUDNN_ATTR_OPERATION_RESHAPE_YDESC), x);
    } else if (o->type == D::CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR) {
      add_convolution(*o, fused_op::convolve, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA);
    } else if (o->type == D::CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR) {
      add_convolution(*o, fused_op::convolve_grad_x, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA);
    } else if (o->type == D::CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR) {
      add_convolution(*o, fused_op::convolve_grad_w, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA);
    } else {
      fail();
    }
  }
  void add_convolution(descriptor const& o, fused_op op, cudnnBackendAttributeName_t how, cudnnBackendAttributeName_t x,
                       cudnnBackendAttributeName_t b, cudnnBackendAttributeName_t to, cudnnBackendAttributeName_t alpha,
                       cudnnBackendAttributeName_t beta) {
    descriptor const* const p = there(o.other(how), CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    if (!p) return void(fail());
    auto const two = [&](cudnnBackendAttributeName_t name) {
      auto r = p->all<std::int64_t>(name, CUDNN_TYPE_INT64);
      if (r.size() != 2) fail();
      r.resize(2);
      return r;
    };
    auto const stride = two(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES), before = two(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS),
               after = two(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS), dilation = two(CUDNN_ATTR_CONVOLUTION_DILATIONS);
    bool const plain = o.one<float>(alpha, CUDNN_TYPE_FLOAT) == 1.0f && o.one<float>(beta, CUDNN_TYPE_FLOAT) == 0.0f &&
                       p->one<cudnnConvolutionMode_t>(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE) ==
                           CUDNN_CROSS_CORRELATION &&
                       p->one<std::int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64) == 2;
    if (!plain || stride[0] != stride[1] || before != after || dilation != std::vector<std::int64_t>{1, 1}) return void(fail());
    int const from = tensor(o, x), by = tensor(o, b);
    graph.put(op, tensor(o, to), from, by);
    graph.steps.back().window = {stride[0], before[0], before[1]};
  }
};

inline std::int64_t last_element(fused_tensor const& t) {
  std::int64_t last = 0;
  for (std::size_t d = 0; d < t.extent.size(); ++d) last += (t.extent[d] - 1) * t.apart[d];
  return last;
}
inline std::int32_t type_of(fused_tensor const& t) { return t.type == fused_type::bf16 ? CUDA_R_16BF : CUDA_R_32F; }
/// Tensors that some step makes.
inline std::vector<char> made_in(fused_graph const& g) {
  std::vector<char> made(g.tensors.size(), false);
  for (auto const& s : g.steps) made[static_cast<std::size_t>(s.to)] = true;
  return made;
}
/// In double, rounded at the end. What lies in the workspace is spoilt before and after.
inline cudaError_t run_graph(fused_graph const& g, std::vector<void*> const& at, void* workspace, std::int64_t bytes) {
  if (bytes > 0) std::memset(workspace, 0xff, static_cast<std::size_t>(bytes));
  tests::fused_oracle o(g);
  std::vector<char> const made = made_in(g);
  for (std::size_t t = 0; t < g.tensors.size(); ++t) {
    fused_tensor const& x = g.tensors[t];
    if (x.is != fused_tensor::role::given || made[t]) continue;
    std::vector<double> all(static_cast<std::size_t>(last_element(x) + 1));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = load<double>(at[t], static_cast<std::int64_t>(i), type_of(x), false);
    o.give(static_cast<int>(t), all);
  }
  o.run();
  for (std::size_t t = 0; t < g.tensors.size(); ++t) {
    fused_tensor const& x = g.tensors[t];
    if (x.is != fused_tensor::role::given || !made[t]) continue;
    std::vector<double> const& all = o.memory(static_cast<int>(t));
    std::vector<std::int64_t> index(x.extent.size(), 0);
    for (bool more = true; more;) {                    // elements alone: what lies between them is others'
      std::int64_t here = 0;
      for (std::size_t d = 0; d < index.size(); ++d) here += index[d] * x.apart[d];
      store(at[t], here, type_of(x), all[static_cast<std::size_t>(here)]);
      more = false;
      for (std::size_t d = index.size(); d-- > 0 && !more;) {
        more = ++index[d] < x.extent[d];
        if (!more) index[d] = 0;
      }
    }
  }
  if (bytes > 0) std::memset(workspace, 0xff, static_cast<std::size_t>(bytes));
  return cudaSuccess;
}

}  // namespace cuda_stand_in
