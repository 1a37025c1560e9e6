// tensorpar/exec/device/host.hpp - what a caller hands to an executor and gets back: whole logical tensors on
// the host
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <tensorpar/core/error.hpp>
#include <tensorpar/op/core/spelling.hpp>
#include <vector>

namespace tensorpar {

/// A dense row-major tensor: `real` for real element types, `index` for integer ones.
struct host_tensor {
  tensorpar::shape shape;
  std::vector<float> real;
  std::vector<std::int32_t> index;

  /// Real numbers, or integers, of these extents. An executor checks how many there are.
  static host_tensor reals(tensorpar::shape s, std::vector<float> numbers) {
    return {s, std::move(numbers), {}};
  }
  static host_tensor integers(tensorpar::shape s, std::vector<std::int32_t> numbers) {
    s.type = dtype::i32;
    return {s, {}, std::move(numbers)};
  }
};
/// One training batch by input name. Axis 0 holds the micro-batches one after another; a scalar is the same
/// for all of them.
using host_batch = std::map<std::string, host_tensor>;

/// Throws `error` unless the tensor is what input `name` of this shape takes for so many micro-batches.
inline void check_input(std::string const& name, host_tensor const& t, shape s, int micro_batches) {
  if (s.rank) s.d[0].n *= micro_batches;
  bool same = t.shape.rank == s.rank;
  for (int d = 0; same && d < s.rank; ++d) same = t.shape.d[d].n == s.d[d].n;
  if (!same) throw error("input '" + name + "' has shape " + op::spell(t.shape), "batch", op::spell(s));
  bool const integer = is_integer(s.type);
  char const* const kinds[] = {" real numbers", " integers"};
  std::size_t const given = integer ? t.index.size() : t.real.size(),
                    other = integer ? t.real.size() : t.index.size();
  if (other)
    throw error(
        "input '" + name + "' is given" + kinds[!integer] +
            (given ? " besides its" + std::string(kinds[integer]) : ""),
        "batch",
        std::to_string(s.elements()) + kinds[integer] + ", in host_tensor::" + (integer ? "index" : "real"));
  if (static_cast<i64>(given) != s.elements())
    throw error("input '" + name + "' has " + std::to_string(given) + kinds[integer], "batch",
                std::to_string(s.elements()));
}

}  // namespace tensorpar
