// tensorpar/exec/step/index_limits.hpp - which indices an input's elements may hold, by the operators that
// read with them
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <tensorpar/core/index.hpp>
#include <tensorpar/exec/cpu/kernels/structural.hpp>
#include <tensorpar/exec/device/host.hpp>
#include <tensorpar/ir/computation_graph.hpp>
#include <tensorpar/ir/layout.hpp>
#include <vector>

namespace tensorpar::exec::detail {

/// Of one input of integers. An element's limit is the least of all operators that read with it; an element
/// that none reads with has none.
struct index_limits {
  static constexpr std::uint32_t any = std::numeric_limits<std::uint32_t>::max();
  // the last index that every element may hold, as far as limits are the same for all
  std::uint32_t last = any;
  int by = -1;                            // the node that says so
  // by element, where operators read parts of the input; empty: `last`
  std::vector<std::uint32_t> each;
  std::vector<int> each_by;

  void limit(std::uint32_t to, int node) { if (to < last) last = to, by = node; }
  void limit(std::size_t element, std::uint32_t to, int node) {
    if (to < each[element]) each[element] = to, each_by[element] = node;
  }
  std::uint32_t of(std::size_t e) const { return each.empty() ? last : std::min(last, each[e]); }
  int reader(std::size_t e) const { return each.empty() || last <= each[e] ? by : each_by[e]; }
};

/// f(op) for an operator that moves elements and makes none; false for any other one.
template <class F> bool with_structural(op::any_op const& o, F const& f) {
  auto const one = [&]<class Op>(Op const*) { return o.is<Op>() && (f(o.as<Op>()), true); };
  auto const of = [&]<class... Op>(Op const*... p) { return (one(p) || ...); };
  return of(static_cast<reshape*>(nullptr), static_cast<flatten*>(nullptr), static_cast<merge_axes*>(nullptr),
            static_cast<split_axis*>(nullptr), static_cast<slice_axis*>(nullptr),
            static_cast<unslice_axis*>(nullptr), static_cast<concat*>(nullptr),
            static_cast<split_axes*>(nullptr), static_cast<tensorpar::transpose*>(nullptr),
            static_cast<parallel::partition*>(nullptr), static_cast<parallel::combine*>(nullptr),
            static_cast<parallel::replicate*>(nullptr), static_cast<parallel::pipeline*>(nullptr),
            static_cast<parallel::batch*>(nullptr));
}

/// Follows the elements of integer inputs through the operators that move them to those that read with them.
/// Numbers stand for elements: they are moved by the very kernels.
class index_flow {
  computation_graph const& g_;
  std::map<int, index_limits> limits_;                     // by input
  // by input: the number of its first element; 0 is no element
  std::map<int, i64> first_;
  std::map<int, std::vector<std::int32_t>> numbers_;       // by value that is moved
  i64 next_ = 1;

  std::vector<std::int32_t> const* numbers_of(int x) {
    if (auto const it = numbers_.find(x); it != numbers_.end()) return &it->second;
    auto const input = first_.find(x);
    if (input == first_.end()) return nullptr;             // a user's operator made it
    std::vector<std::int32_t>& n = numbers_[x];
    for (i64 e = 0; e < g_.type(x).elements(); ++e) n.push_back(static_cast<std::int32_t>(input->second + e));
    return &n;
  }
  void read(int node, int x, i64 extent) {
    auto const last = static_cast<std::uint32_t>(std::min<i64>(extent, i64{1} << 31) - 1);
    if (limits_.contains(x)) return limits_[x].limit(last, node);
    std::vector<std::int32_t> const* const n = numbers_of(x);
    if (!n) return;
    auto in = first_.end();
    for (std::int32_t k : *n) {
      if (k == 0) continue;
      auto const has = [&](auto const& input) {
        return k >= input.second && k < input.second + g_.type(input.first).elements();
      };
      if (in == first_.end() || !has(*in)) in = std::find_if(first_.begin(), first_.end(), has);
      index_limits& l = limits_[in->first];
      auto const size = idx(g_.type(in->first).elements());
      if (l.each.empty()) l.each.assign(size, index_limits::any), l.each_by.assign(size, -1);
      l.limit(idx(k - in->second), last, node);
    }
  }
  void move(graph_node const& n) {
    std::vector<void const*> in;
    std::vector<void*> out;
    std::vector<op::tensor_block> in_block, out_block;
    for (int x : n.in) if (!is_integer(g_.type(x).type)) return;
    for (int x : n.in) {
      std::vector<std::int32_t> const* const k = numbers_of(x);
      if (!k) return;
      in.push_back(k->data());
      in_block.push_back(ir::block_of(ir::layout{}, g_.type(x), std::vector<i64>{}));
    }
    std::map<int, std::vector<std::int32_t>> made;
    for (int y : n.out) {
      std::vector<std::int32_t>& k = made[y];
      k.assign(idx(g_.type(y).elements()), 0);
      out.push_back(k.data());
      out_block.push_back(ir::block_of(ir::layout{}, g_.type(y), std::vector<i64>{}));
    }
    kernel_call c;
    c.op = &n.op;
    c.inputs = static_cast<int>(in.size()), c.outputs = static_cast<int>(out.size());
    c.in = in.data(), c.out = out.data();
    c.in_block = in_block.data(), c.out_block = out_block.data();
    if (with_structural(n.op, [&]<class Op>(Op const& o) { kernel<float, Op>::run(c, o); }))
      numbers_.merge(made);
  }

 public:
  explicit index_flow(computation_graph const& g) : g_(g) {
    for (std::size_t x = 0; x < g.values.size(); ++x) {
      if (g.values[x].role != value_role::input || !is_integer(g.values[x].type.type)) continue;
      limits_[static_cast<int>(x)];
      first_[static_cast<int>(x)] = next_;
      next_ += g.values[x].type.elements();
    }
  }
  /// By input of integers. O(nodes + elements that are moved). Of more than 2^31 elements those that are
  /// moved have no limits.
  std::map<int, index_limits> limits() && {
    bool const few = next_ < (i64{1} << 31);
    std::vector<shape> types;
    for (int v = 0; v < g_.node_count() && !limits_.empty(); ++v) {
      graph_node const& n = g_.node(v);
      types.clear();
      bool integers = false;
      for (int x : n.in) {
        types.push_back(g_.type(x));
        integers = integers || is_integer(types.back().type);
      }
      if (!integers) continue;
      for (std::size_t k = 0; k < n.in.size(); ++k)
        if (is_integer(types[k].type))
          if (i64 const extent = n.op.op->index_extent(n.op.attr, static_cast<int>(k),
                                                       {types.data(), static_cast<int>(types.size())});
              extent > 0 && (few || limits_.contains(n.in[k])))
            read(v, n.in[k], extent);
      if (few) move(n);
    }
    return std::move(limits_);
  }
};

/// "[3, 17]": the place of an element of a row-major tensor.
inline std::string element_place(shape const& s, i64 element) {
  std::string r = "]";
  for (int d = s.rank; d-- > 0; element /= s.d[d].n)
    r = (d ? ", " : "") + std::to_string(element % s.d[d].n) + r;
  return "[" + r;
}

/// Does one of n indices exceed its limit? As an unsigned number a negative one is greater than all others.
template <class Limit> bool exceeds(std::int32_t const* x, std::size_t n, Limit const& limit) {
  constexpr std::size_t width = 8;                         // at once: a compiler makes vectors of them
  std::uint32_t wrong[width]{};
  std::size_t i = 0;
  for (; i + width <= n; i += width)
    for (std::size_t k = 0; k < width; ++k)
      wrong[k] |= static_cast<std::uint32_t>(static_cast<std::uint32_t>(x[i + k]) > limit(i + k));
  for (; i < n; ++i) wrong[0] |= static_cast<std::uint32_t>(static_cast<std::uint32_t>(x[i]) > limit(i));
  return std::any_of(wrong, wrong + width, [](std::uint32_t w) { return w != 0; });
}

/// Throws `error` for the first element of these micro-batches, of this shape each, that is out of its range.
/// O(elements).
inline void check_indices(computation_graph const& g, std::string const& name, host_tensor const& t,
                          shape const& s, int first, int count, index_limits const& limits) {
  if (limits.last == index_limits::any && limits.each.empty()) return;
  auto const n = idx(s.elements());
  for (std::size_t m = 0; m < idx(s.rank ? count : 1); ++m) {
    std::size_t const skip = s.rank ? (idx(first) + m) * n : 0;
    std::int32_t const* const x = t.index.data() + skip;
    std::uint32_t const last = limits.last, *const each = limits.each.data();
    bool const wrong = limits.each.empty()
                           ? exceeds(x, n, [last](std::size_t) { return last; })
                           : exceeds(x, n, [last, each](std::size_t k) { return std::min(last, each[k]); });
    for (std::size_t i = 0; wrong && i < n; ++i) {
      if (static_cast<std::uint32_t>(x[i]) <= limits.of(i)) continue;
      graph_node const& by = g.node(limits.reader(i));
      std::string const reader = std::string(by.op.op->name) + (by.name.empty() ? "" : " '" + by.name + "'");
      throw error("input '" + name + "' holds " + std::to_string(x[i]) + " at " +
                      element_place(t.shape, static_cast<i64>(skip + i)),
                  "batch", "0 to " + std::to_string(limits.of(i)) + ", for " + reader);
    }
  }
}

}  // namespace tensorpar::exec::detail
