// tensorpar/exec/cudnn/lowering.cuh - a graph of values in cuDNN's own words
#pragma once
#include <deque>
#include <optional>
#include <tensorpar/core/index.hpp>
#include <tensorpar/exec/cudnn/door.cuh>
#include <tensorpar/exec/cudnn/graph.hpp>

namespace tensorpar::detail {

/// What a graph is made for: a GPU that is there, by its handle, or another one, by its properties as cuDNN
/// writes them down, with which a plan can be made and not run.
class cudnn_target {
  cudnnHandle_t handle_ = nullptr;
  std::optional<cudnn_descriptor> properties_;

 public:
  explicit cudnn_target(cudnnHandle_t handle) : handle_(handle) {}
  explicit cudnn_target(std::string const& json) {
    properties_.emplace(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    properties_->set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, json.c_str(),
                     static_cast<std::int64_t>(json.size() + 1));
    properties_->finish("a GPU's properties");
  }
  /// What a graph, a question or a plan is to know of it, each under its own names.
  void tell(cudnn_descriptor& d, cudnnBackendAttributeName_t handle) const {
    if (handle_) d.set(handle, handle_);
  }
  void tell_properties(cudnn_descriptor& d, cudnnBackendAttributeName_t properties) const {
    if (properties_) d.set(properties, *properties_);
  }
};

/// Everything that was said of a graph, which must outlive what is made of it. Tensors have their number + 1
/// as name.
class cudnn_graph {
  std::deque<cudnn_descriptor> tensors_, parts_, operations_;
  cudnn_descriptor graph_{CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR};

 public:
  /// Throws `error` where cuDNN knows no such operation.
  cudnn_graph(fused_graph const& g, cudnn_target const& target) {
    for (fused_tensor const& t : g.tensors) add(t);
    for (fused_step const& s : g.steps) add(s);
    std::vector<cudnnBackendDescriptor_t> all;
    for (cudnn_descriptor const& o : operations_) all.push_back(o.get());
    target.tell(graph_, CUDNN_ATTR_OPERATIONGRAPH_HANDLE);
    graph_.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, all.data(), static_cast<std::int64_t>(all.size()))
        .finish("a graph of operations");
  }
  cudnn_graph(cudnn_graph&&) = default;
  cudnn_descriptor const& descriptor() const { return graph_; }

 private:
  static cudnnDataType_t type_of(fused_type t) {
    return t == fused_type::bf16 ? CUDNN_DATA_BFLOAT16 : t == fused_type::i32 ? CUDNN_DATA_INT32
           : t == fused_type::truth ? CUDNN_DATA_BOOLEAN : CUDNN_DATA_FLOAT;
  }
  static cudnnPointwiseMode_t mode_of(fused_op o) {
    switch (o) {
      case fused_op::product: return CUDNN_POINTWISE_MUL;
      case fused_op::minus: return CUDNN_POINTWISE_SUB;
      case fused_op::plus: return CUDNN_POINTWISE_ADD;
      case fused_op::quotient: return CUDNN_POINTWISE_DIV;
      case fused_op::exp_: return CUDNN_POINTWISE_EXP;
      case fused_op::log_: return CUDNN_POINTWISE_LOG;
      case fused_op::index: return CUDNN_POINTWISE_GEN_INDEX;
      case fused_op::at_least: return CUDNN_POINTWISE_CMP_GE;
      case fused_op::select: return CUDNN_POINTWISE_BINARY_SELECT;
      default: return CUDNN_POINTWISE_IDENTITY;
    }
  }
  cudnn_descriptor const& of(int tensor) const { return tensors_[idx(tensor)]; }
  cudnn_descriptor const& part(cudnn_descriptor&& d, char const* what) {
    return parts_.emplace_back(std::move(d).finish(what));
  }

  void add(fused_tensor const& t) {
    auto const rank = static_cast<std::int64_t>(t.extent.size()),
               name = static_cast<std::int64_t>(tensors_.size()) + 1;
    cudnn_descriptor& d = tensors_.emplace_back(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    d.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, name).set(CUDNN_ATTR_TENSOR_DATA_TYPE, type_of(t.type));
    d.set(CUDNN_ATTR_TENSOR_DIMENSIONS, t.extent.data(), rank)
        .set(CUDNN_ATTR_TENSOR_STRIDES, t.apart.data(), rank);
    d.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, std::int64_t{16})
        .set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, t.is == fused_tensor::role::hidden);
    if (t.is == fused_tensor::role::number) d.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, true);
    d.finish("a tensor");
  }
  void add(fused_step const& s) {
    switch (s.op) {
      case fused_op::multiply: return add_multiply(s);
      case fused_op::sum: return add_reduction(s, CUDNN_REDUCE_TENSOR_ADD);
      case fused_op::top: return add_reduction(s, CUDNN_REDUCE_TENSOR_MAX);
      case fused_op::view:
        operations_.emplace_back(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR)
            .set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, of(s.x))
            .set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, of(s.to))
            .finish("a change of sizes");
        return;
      case fused_op::convolve:
        return add_convolution(
            s, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
            {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
             CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
             CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA});
      case fused_op::convolve_grad_x:
        return add_convolution(
            s, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
            {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA});
      case fused_op::convolve_grad_w:
        return add_convolution(
            s, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
            {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA});
      default: return add_function(s);
    }
  }
  void add_function(fused_step const& s) {
    cudnn_descriptor how(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    how.set(CUDNN_ATTR_POINTWISE_MODE, mode_of(s.op))
        .set(CUDNN_ATTR_POINTWISE_MATH_PREC,
             s.op == fused_op::at_least ? CUDNN_DATA_BOOLEAN : CUDNN_DATA_FLOAT);
    if (s.axis >= 0) how.set(CUDNN_ATTR_POINTWISE_AXIS, std::int64_t{s.axis});
    cudnn_descriptor& o = operations_.emplace_back(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    o.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, part(std::move(how), "a function of elements"));
    o.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, of(s.x)).set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, of(s.to));
    if (s.b >= 0) o.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, of(s.b));
    if (s.t >= 0) o.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, of(s.t));
    o.finish("an operation on elements");
  }
  void add_multiply(fused_step const& s) {
    cudnn_descriptor how(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    how.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
    operations_.emplace_back(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR)
        .set(CUDNN_ATTR_OPERATION_MATMUL_DESC, part(std::move(how), "a matrix product"))
        .set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, of(s.x)).set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, of(s.b))
        .set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, of(s.to)).finish("an operation on matrices");
  }
  void add_reduction(fused_step const& s, cudnnReduceTensorOp_t by) {
    cudnn_descriptor how(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    how.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT).set(CUDNN_ATTR_REDUCTION_OPERATOR, by);
    operations_.emplace_back(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR)
        .set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, part(std::move(how), "a reduction"))
        .set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, of(s.x))
        .set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, of(s.to))
        .finish("an operation that reduces");
  }
  struct convolution_names {
    cudnnBackendAttributeName_t how, x, b, to, alpha, beta;
  };
  void add_convolution(fused_step const& s, cudnnBackendDescriptorType_t type, convolution_names const& n) {
    std::int64_t const stride[] = {s.window.stride, s.window.stride},
                       pad[] = {s.window.pad_h, s.window.pad_w}, one[] = {1, 1};
    cudnn_descriptor how(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    how.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT)
        .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION);
    how.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, std::int64_t{2})
        .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, one, 2);
    how.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, stride, 2);
    how.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, pad, 2).set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, pad, 2);
    operations_.emplace_back(type)
        .set(n.how, part(std::move(how), "a convolution"))
        .set(n.x, of(s.x))
        .set(n.b, of(s.b))
        .set(n.to, of(s.to))
        .set(n.alpha, 1.0f)
        .set(n.beta, 0.0f)
        .finish("an operation of a convolution");
  }
};

}  // namespace tensorpar::detail
