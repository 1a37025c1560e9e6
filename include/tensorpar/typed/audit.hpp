// tensorpar/typed/audit.hpp - what can be said of a model only once it is complete: unused tensors, names
// given twice
#pragma once
#include <string_view>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/typed/tables.hpp>

namespace tensorpar {

namespace detail {

/// The least power of two with room for twice as many.
constexpr int table_size(int most) {
  int size = 16;
  while (size < 2 * most + 2) size *= 2;
  return size;
}
/// A set of hashed names in one open table: linear in constant evaluation, where sorting is not.
class name_table {
  struct entry {
    u64 hash;
    int kind, id;   // kind + 1; 0: free
  };
  core::detail::zeroed<entry> slot_;
  u64 mask_;

 public:
  constexpr explicit name_table(int most)
      : slot_(table_size(most)), mask_(static_cast<u64>(table_size(most)) - 1) {}
  /// The entry that was there with this hash and kind, -1 if none was; then this one is.
  constexpr int insert(u64 hash, int kind, int id) {
    for (u64 i = hash & mask_;; i = (i + 1) & mask_) {
      entry& e = slot_.p[i];
      if (e.kind == 0) { e = {hash, kind + 1, id}; return -1; }
      if (e.hash == hash && e.kind == kind + 1) return e.id;
    }
  }
};
constexpr u64 hash_of(label const& l) {
  return core::mix(core::name_hash(l.text) + static_cast<u64>(l.index + 1));
}

struct operator_id {
  // hashing a type's whole name is for the few operators of a model, not for all that there are
  u64 name, (*type)();
};
template <class... Op>
inline constexpr operator_id ids_of[] = {{core::name_hash(Op::name), &op::detail::type_hash<Op>}...};
/// Names that belong to the library: its operators by type, those that shard tensors by name alone (their
/// header is not included here).
template <class... A, class... B, class... C>
constexpr bool own_name_taken(op::op_info const& o, op::op_set<A...>, op::op_set<B...>, op::op_set<C...>) {
  for (operator_id const& k : ids_of<A..., B..., C...>) if (k.name == o.id) return k.type() != o.type;
  for (char const* s : {"partition", "combine", "replicate", "reduce", "pipeline", "batch"})
    if (core::name_hash(s) == o.id) return true;
  return false;
}

// The loops over all operators and values use plain pointers: in constant evaluation calls are most of the
// price.

/// Operators are told apart by the hash of their names, so two types must not share it.
constexpr model_complaint find_operator_clash(graph_view const& g) {
  model_node const* const nodes = g.nodes.p;
  int const size = table_size(g.nodes.n);
  core::detail::zeros first_(size);   // the first node of an operator, and one; by the hash of the name
  int* const first = first_.p;
  u64 const mask = static_cast<u64>(size) - 1;
  for (int v = 0, n = g.nodes.n; v < n; ++v) {
    op::op_info const& o = *nodes[v].op;
    u64 i = o.id & mask;
    while (first[i] && nodes[first[i] - 1].op->id != o.id) i = (i + 1) & mask;
    bool clash = false;
    if (first[i]) clash = nodes[first[i] - 1].op->type != o.type;
    else {
      first[i] = v + 1;
      clash = own_name_taken(o, op::forward_operators{}, op::backward_operators{}, op::task_operators{});
    }
    if (clash)
      return {complaint_kind::name_clash, op::mismatch("two operator types have one name", scalar, scalar),
              &o, nodes[v].name, nodes[v].at};
  }
  return {};
}

constexpr model_complaint find_clash(graph_view const& g) {
  auto ports = [&](core::slice<model_port> a, core::slice<model_port> b, char const* why) -> model_complaint {
    name_table t(a.n + b.n);
    for (core::slice<model_port> side : {a, b})
      for (model_port const& p : side)
        if (p.name.text && t.insert(hash_of(p.name), 0, 0) >= 0)
          return {complaint_kind::name_clash, op::mismatch(why, g.values[p.value].type, scalar), &no_operator,
                  p.name, p.at};
    return {};
  };
  if (auto c = ports(g.inputs, g.weights, "two inputs or weights have one name"); !c.ok()) return c;
  if (auto c = ports(g.outputs, {nullptr, 0}, "two outputs have one name"); !c.ok()) return c;
  int named = 0;
  model_node const* const nodes = g.nodes.p;
  for (int v = 0, n = g.nodes.n; v < n; ++v) if (nodes[v].name) ++named;
  if (named == 0) return {};
  name_table t(named);
  for (model_node const& n : g.nodes)
    if (n.name && t.insert(hash_of(n.name), 0, 0) >= 0)
      return {complaint_kind::name_clash,
              op::mismatch("two operators have one name", g.values[n.out0].type, scalar), n.op, n.name, n.at};
  return {};
}

/// Every result, input and weight is an operand, an output, carried to the next repetition, or discarded on
/// purpose.
constexpr model_complaint find_dangling(graph_view const& g) {
  core::detail::zeros used_(g.values.n);
  int* const used = used_.p;
  int const* const operands = g.operands.p;
  model_value const* const values = g.values.p;
  int const all = g.values.n;
  for (int i = 0, n = g.operands.n; i < n; ++i) used[operands[i]] = 1;
  if (!g.blocks.empty()) for (int x = 0; x < all; ++x) if (values[x].source >= 0) used[values[x].source] = 1;
  for (model_port const& p : g.outputs) used[p.value] = 1;
  auto complain = [&](int x, op::op_info const* op, label name, op::place at) -> model_complaint {
    return {complaint_kind::dangling_tensor, op::mismatch("neither used nor an output", g.values[x].type,
                                                          scalar),
            op, name, at};
  };
  for (core::slice<model_port> side : {g.inputs, g.weights})
    for (model_port const& p : side)
      if (!used[p.value] && !g.values[p.value].discarded)
        return complain(p.value, &no_operator, p.name, p.at);
  for (int x = 0; x < all; ++x) {
    if (used[x]) continue;
    model_value const& v = values[x];
    if (v.role != model_role::activation || v.discarded) continue;
    model_node const& n = g.nodes[v.producer];
    return complain(x, n.op, n.name, n.at);
  }
  for (model_block const& r : g.blocks)
    for (int i = 0; i < r.carried; ++i) {
      int const argument = r.value0 + i, result = r.value_end + i;
      if (!used[argument] && !g.values[argument].discarded)
        return complain(argument, &no_operator, "block's argument", r.at);
      if (!used[result] && !g.values[result].discarded)
        return complain(result, &no_operator, "block's result", r.at);
    }
  return {};
}

}  // namespace detail

/// The first complaint about a complete model, none if all is well. O(V + E).
constexpr model_complaint audit(graph_view const& g) {
  if (model_complaint const c = detail::find_operator_clash(g); !c.ok()) return c;
  if (model_complaint const c = detail::find_clash(g); !c.ok()) return c;
  return detail::find_dangling(g);
}

}  // namespace tensorpar
