// tensorpar/typed/audit.hpp - what can be said of a model only once it is complete: unused tensors, names given twice
#pragma once
#include <string_view>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/typed/tables.hpp>

namespace tensorpar {

namespace detail {

/// A set of hashed names in one open table: linear in constant evaluation, where sorting is not.
class name_table {
  struct entry {
    u64 hash;
    int kind, id;
  };
  pool<entry> slot_;
  u64 mask_ = 0;

 public:
  constexpr explicit name_table(int most) {
    u64 size = 16;
    while (size < 2 * static_cast<u64>(most) + 2) size *= 2;
    mask_ = size - 1;
    slot_ = pool<entry>(static_cast<int>(size), entry{0, -1, -1});
  }
  /// The entry that was there with this hash and kind, -1 if none was; then this one is.
  constexpr int insert(u64 hash, int kind, int id) {
    for (u64 i = hash & mask_;; i = (i + 1) & mask_) {
      entry& e = slot_[static_cast<int>(i)];
      if (e.kind < 0) { e = {hash, kind, id}; return -1; }
      if (e.hash == hash && e.kind == kind) return e.id;
    }
  }
};
constexpr u64 hash_of(label const& l) { return mix(name_hash(l.text) + static_cast<u64>(l.index + 1)); }

struct operator_id {
  u64 name, (*type)();   // hashing a type's whole name is for the few operators of a model, not for all that there are
};
template <class... Op> inline constexpr operator_id ids_of[] = {{name_hash(Op::name), &type_hash<Op>}...};
/// Names that belong to the library: its operators by type, those that spread tensors by name alone (their header is not included here).
template <class... A, class... B> constexpr bool own_name_taken(op_info const& o, op_set<A...>, op_set<B...>) {
  for (operator_id const& k : ids_of<A..., B...>) if (k.name == o.id) return k.type() != o.type;
  for (char const* s : {"partition", "combine", "replicate", "reduce", "pipeline", "batch"}) if (name_hash(s) == o.id) return true;
  return false;
}

/// Operators are told apart by the hash of their names, so two types must not share it.
constexpr model_complaint find_operator_clash(graph_view const& g) {
  name_table t(g.nodes.n);
  for (int v = 0; v < g.nodes.n; ++v) {
    model_node const& n = g.nodes[v];
    int const before = t.insert(n.op->id, 0, v);
    if (before < 0 ? own_name_taken(*n.op, forward_operators{}, backward_operators{}) : g.nodes[before].op->type != n.op->type)
      return {complaint_kind::name_clash, mismatch("two operator types have one name", scalar, scalar), n.op, n.name, n.at};
  }
  return {};
}

constexpr model_complaint find_clash(graph_view const& g) {
  auto ports = [&](slice<model_port> a, slice<model_port> b, char const* why) -> model_complaint {
    name_table t(a.n + b.n);
    for (slice<model_port> side : {a, b})
      for (model_port const& p : side)
        if (p.name.text && t.insert(hash_of(p.name), 0, 0) >= 0)
          return {complaint_kind::name_clash, mismatch(why, g.values[p.value].type, scalar), nullptr, p.name, p.at};
    return {};
  };
  if (auto c = ports(g.inputs, g.weights, "two inputs or weights have one name"); !c.ok()) return c;
  if (auto c = ports(g.outputs, {nullptr, 0}, "two outputs have one name"); !c.ok()) return c;
  int named = 0;
  for (model_node const& n : g.nodes) named += n.name != nullptr;
  if (named == 0) return {};
  name_table t(named);
  for (model_node const& n : g.nodes)
    if (n.name && t.insert(hash_of(n.name), 0, 0) >= 0)
      return {complaint_kind::name_clash, mismatch("two operators have one name", g.values[n.out0].type, scalar), n.op, n.name, n.at};
  return {};
}

/// Every result, input and weight is an operand, an output, carried to the next turn, or discarded on purpose.
constexpr model_complaint find_dangling(graph_view const& g) {
  pool<char> used(g.values.n, 0);
  for (int x : g.operands) used[x] = 1;
  for (model_value const& v : g.values) if (v.source >= 0) used[v.source] = 1;
  for (model_port const& p : g.outputs) used[p.value] = 1;
  auto complain = [&](int x, op_info const* op, label name, place at) -> model_complaint {
    return {complaint_kind::dangling_tensor, mismatch("neither used nor an output", g.values[x].type, scalar), op, name, at};
  };
  for (model_port const& p : g.inputs) if (!used[p.value] && !g.values[p.value].discarded) return complain(p.value, nullptr, p.name, p.at);
  for (model_port const& p : g.weights) if (!used[p.value] && !g.values[p.value].discarded) return complain(p.value, nullptr, p.name, p.at);
  for (int x = 0; x < g.values.n; ++x) {
    model_value const& v = g.values[x];
    if (used[x] || v.discarded) continue;
    if (v.role == model_role::activation) { model_node const& n = g.nodes[v.producer]; return complain(x, n.op, n.name, n.at); }
  }
  for (model_region const& r : g.regions)
    for (int i = 0; i < r.carried; ++i) {
      if (!used[r.value0 + i] && !g.values[r.value0 + i].discarded) return complain(r.value0 + i, nullptr, "block's argument", r.at);
      if (!used[r.value_end + i] && !g.values[r.value_end + i].discarded) return complain(r.value_end + i, nullptr, "block's result", r.at);
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
