// tensorpar/typed/tables.hpp - a declared model as plain tables: what the builder writes and everything else
// reads
#pragma once
#include <tensorpar/op/core/any_op.hpp>

namespace tensorpar {

/// The name of an input, output or weight; an index tells apart those written in a loop: `g.input({"sparse",
/// i}, ...)` is "sparse.i".
struct label {
  char const* text;
  int index;
  label() = default;                   // label{}: no name
  constexpr label(char const* s, int i = -1) : text(s), index(i) {}
};

/// What a value of a model is. carried: stands for a tensor that enters a repeated block (inside) or leaves
/// it (outside).
enum class model_role : int { activation, input, parameter, carried };

struct model_node {
  op::op_info const* op;
  char const* name;                   // nullptr: unnamed
  op::place at;
  int attr0;                          // attrs[attr0 ...]
  int in0, activations, operand_count; // operands[in0 ...]: value ids, weights last
  int out0, result_count;             // results are values out0, out0 + 1 ...
  int pred0, pred_count;              // producers[pred0 ...]: node ids of the operands that have a producer
  int block;                         // -1: outside of repeated blocks
};
struct model_value {
  int producer;                       // node id, or -1
  // carried: the value it stands for in the first repetition (inside) or after the last (outside)
  int source;
  model_role role;
  int block;
  op::init start;                         // parameters
  bool open_start;                    // a shared weight whose start its first operator decides
  bool discarded;                     // the model says that it is not used
  shape type;
};
/// A block that runs `times` times; nodes [first, last), values [value0, value_end). It carries `carried`
/// tensors from repetition to repetition: value0 + i stands for tensor i inside, its source is the first
/// repetition's; value_end + i is what leaves, its source is given to the next repetition.
struct model_block {
  i64 times;
  int parent, first, last, value0, value_end, carried;
  op::place at;
};
struct model_port {
  label name;
  int value;
  op::place at;
};

/// A non-owning model, declared at compile time or at run time alike. Nodes stand in topological order.
/// Models `topology` (graph/concepts.hpp) with operators as nodes; inputs and weights are values, and a
/// repeated block is there once.
struct graph_view {
  core::slice<model_node> nodes;
  core::slice<model_value> values;
  core::slice<int> operands, producers;
  core::slice<i64> attrs;
  core::slice<model_block> blocks;
  core::slice<model_port> inputs, weights, outputs;   // weights: those that the model declares itself

  constexpr int node_count() const { return nodes.n; }
  constexpr core::slice<int> predecessors(int v) const {
    return {producers.p + nodes[v].pred0, nodes[v].pred_count};
  }
  /// How often nodes and weights of a block exist once repeated blocks are unrolled.
  constexpr i64 times(int block) const {
    i64 t = 1;
    for (; block >= 0; block = blocks[block].parent) t *= blocks[block].times;
    return t;
  }
  /// The operator of node v with its attributes, name and place.
  constexpr op::any_op op(int v) const {
    op::any_op o;
    model_node const& n = nodes[v];
    o.op = n.op;
    for (int i = 0; i < n.op->attrs; ++i) o.attr[i] = attrs[n.attr0 + i];
    o.name = n.name;
    o.at = n.at;
    return o;
  }
};

/// What a complaint about an input, output or weight names: an operator without a name. No nullptr: under
/// -fsanitize=undefined g++ 12 compares no pointer in constants, and the error type would have no name.
inline constexpr op::op_info no_operator{};

/// Why a model is refused. Of several complaints the first one is told.
enum class complaint_kind : int {
  none,
  shape_mismatch,
  dangling_tensor,
  name_clash,
  // of these two the shapes are counts: as many were given; as many would do, one axis for each such number
  operand_count,
  too_many_axes
};
struct model_complaint {
  complaint_kind kind = complaint_kind::none;
  op::complaint why{nullptr, scalar, scalar};
  op::op_info const* op = &no_operator;     // of an input, output or weight no_operator
  label name;                           // of the operator, input, output or weight
  op::place at{nullptr, 0};
  constexpr bool ok() const { return kind == complaint_kind::none; }
};

}  // namespace tensorpar
