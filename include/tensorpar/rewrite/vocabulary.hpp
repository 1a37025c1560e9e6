// tensorpar/rewrite/vocabulary.hpp - the operators that rules may be written with, by name
#pragma once
#include <string>
#include <tensorpar/op/kinds/parallel.hpp>
#include <tensorpar/op/operators.hpp>
#include <vector>

namespace tensorpar::rewrite {

/// Operators by name. A user's own are added with `with<my_op, ...>()`; of two with one name the later is
/// found.
class vocabulary {
  std::vector<op::op_info const*> ops_;

 public:
  template <op::operator_... Op> vocabulary with() const {
    vocabulary r = *this;
    (r.ops_.push_back(&op::info<Op>), ...);
    return r;
  }
  template <class... Op> vocabulary with(op::op_set<Op...>) const { return with<Op...>(); }
  /// nullptr: there is none. O(operators).
  op::op_info const* find(std::string_view name) const {
    for (std::size_t i = ops_.size(); i-- > 0;)
      if (ops_[i]->name == name) return ops_[i];
    return nullptr;
  }
  std::string names() const {
    std::string s;
    for (op::op_info const* o : ops_) s += (s.empty() ? "" : ", ") + std::string(o->name);
    return s;
  }
  auto begin() const { return ops_.begin(); }
  auto end() const { return ops_.end(); }
};

/// The operators that shard tensors.
using parallel_operators = op::op_set<parallel::partition, parallel::combine, parallel::replicate,
                                  parallel::reduce, parallel::pipeline, parallel::batch>;

/// What models are written with, and the operators that shard.
inline vocabulary const& standard_vocabulary() {
  static vocabulary const v = vocabulary{}.with(op::forward_operators{}).with(parallel_operators{});
  return v;
}

/// Does a rule's function parameter stand for it? One operand, no attributes, every index kept, real numbers:
/// relu, gelu, sigmoid, tanh and whatever a user adds of that kind.
inline bool is_function(op::op_info const& o) {
  if (o.arity != 1 || o.attrs != 0 || !o.fixed || is_parallel(o)) return false;
  op::loops const& n = *o.notation;
  return n.n == 0 && n.operands == 1 && n.results == 1 && n.lead_in[0] && n.lead_out[0];
}

/// May its two operands change places?
inline bool is_commutative(op::op_info const& o) {
  return o.id == core::name_hash(add::name) || o.id == core::name_hash(mul::name);
}

}  // namespace tensorpar::rewrite
