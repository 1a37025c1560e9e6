// tensorpar/exec/cudnn/door.cuh - the only door to cuDNN: its backend interface, with every status checked
#pragma once
#include <cstdint>
#include <cudnn.h>
#include <string>
#include <tensorpar/core/error.hpp>
#include <utility>

static_assert(CUDNN_VERSION >= 90800, "tensorpar: cuDNN 9.8 or newer, whose plans need no handle");

namespace tensorpar {

/// Throws `error` with the library's own words unless the call succeeded.
inline void cudnn_check(cudnnStatus_t status, char const* what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  char more[512] = "";
  cudnnGetLastErrorString(more, sizeof more);
  throw error(std::string(cudnnGetErrorString(status)) + (*more ? std::string(": ") + more : ""), what,
              "CUDNN_STATUS_SUCCESS");
}

namespace detail {
/// The type that cuDNN is told a C++ type is.
template <class T> inline constexpr cudnnBackendAttributeType_t cudnn_attribute{};
template <> inline constexpr auto cudnn_attribute<cudnnBackendDescriptor_t> = CUDNN_TYPE_BACKEND_DESCRIPTOR;
template <> inline constexpr auto cudnn_attribute<std::int64_t> = CUDNN_TYPE_INT64;
template <> inline constexpr auto cudnn_attribute<bool> = CUDNN_TYPE_BOOLEAN;
template <> inline constexpr auto cudnn_attribute<float> = CUDNN_TYPE_FLOAT;
template <> inline constexpr auto cudnn_attribute<double> = CUDNN_TYPE_DOUBLE;
template <> inline constexpr auto cudnn_attribute<char> = CUDNN_TYPE_CHAR;
template <> inline constexpr auto cudnn_attribute<cudnnHandle_t> = CUDNN_TYPE_HANDLE;
template <> inline constexpr auto cudnn_attribute<cudnnDataType_t> = CUDNN_TYPE_DATA_TYPE;
template <> inline constexpr auto cudnn_attribute<cudnnPointwiseMode_t> = CUDNN_TYPE_POINTWISE_MODE;
template <> inline constexpr auto cudnn_attribute<cudnnReduceTensorOp_t> = CUDNN_TYPE_REDUCTION_OPERATOR_TYPE;
template <> inline constexpr auto cudnn_attribute<cudnnConvolutionMode_t> = CUDNN_TYPE_CONVOLUTION_MODE;
template <> inline constexpr auto cudnn_attribute<cudnnBackendHeurMode_t> = CUDNN_TYPE_HEUR_MODE;
template <> inline constexpr auto cudnn_attribute<cudnnBackendNumericalNote_t> = CUDNN_TYPE_NUMERICAL_NOTE;
}  // namespace detail

/// A descriptor of the backend interface, given back at the end.
class cudnn_descriptor {
  cudnnBackendDescriptor_t d_ = nullptr;

 public:
  explicit cudnn_descriptor(cudnnBackendDescriptorType_t type) {
    cudnn_check(cudnnBackendCreateDescriptor(type, &d_), "cudnnBackendCreateDescriptor");
  }
  cudnn_descriptor(cudnn_descriptor&& o) noexcept : d_(std::exchange(o.d_, nullptr)) {}
  cudnn_descriptor& operator=(cudnn_descriptor&& o) noexcept {
    std::swap(d_, o.d_);
    return *this;
  }
  ~cudnn_descriptor() { if (d_) cudnnBackendDestroyDescriptor(d_); }

  cudnnBackendDescriptor_t get() const { return d_; }
  template <class T>
  cudnn_descriptor& set(cudnnBackendAttributeName_t name, T const* values, std::int64_t n) {
    cudnn_check(cudnnBackendSetAttribute(d_, name, detail::cudnn_attribute<T>, n, values),
                "cudnnBackendSetAttribute");
    return *this;
  }
  template <class T> cudnn_descriptor& set(cudnnBackendAttributeName_t name, T const& value) {
    return set(name, &value, 1);
  }
  cudnn_descriptor& set(cudnnBackendAttributeName_t name, cudnn_descriptor const& value) {
    return set(name, value.get());
  }
  /// Addresses, which in C have the type of descriptors.
  cudnn_descriptor& set_addresses(cudnnBackendAttributeName_t name, void* const* values, std::int64_t n) {
    cudnn_check(cudnnBackendSetAttribute(d_, name, CUDNN_TYPE_VOID_PTR, n, values),
                "cudnnBackendSetAttribute");
    return *this;
  }
  cudnn_descriptor& finish(char const* what) & {
    cudnn_check(cudnnBackendFinalize(d_), what);
    return *this;
  }
  cudnn_descriptor&& finish(char const* what) && { return std::move(finish(what)); }
  /// How many values there are; writes at most n of them.
  template <class T> std::int64_t get(cudnnBackendAttributeName_t name, T* values, std::int64_t n) const {
    std::int64_t there = 0;
    cudnn_check(cudnnBackendGetAttribute(d_, name, detail::cudnn_attribute<T>, n, &there, values),
                "cudnnBackendGetAttribute");
    return there;
  }
};

}  // namespace tensorpar
