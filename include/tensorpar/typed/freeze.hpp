// tensorpar/typed/freeze.hpp - the edge: a model's tables as constants of one type
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/typed/audit.hpp>
#include <tensorpar/typed/check.hpp>
#include <tensorpar/typed/compose.hpp>

namespace tensorpar {

/// A model is a struct whose define composes tensors: `struct mlp { static constexpr void define(auto& g);
/// };`
template <class M> concept model_definition = requires(model_builder& g) { M::define(g); };

namespace detail {

struct table_sizes {
  int nodes, values, operands, producers, attrs, blocks, inputs, weights, outputs;
};
template <table_sizes const& Z> struct frozen {
  template <class T, int N> using row = T[idx(N > 0 ? N : 1)];
  row<model_node, Z.nodes> nodes;
  row<model_value, Z.values> values;
  row<int, Z.operands> operands;
  row<int, Z.producers> producers;
  row<i64, Z.attrs> attrs;
  row<model_block, Z.blocks> blocks;
  row<model_port, Z.inputs> inputs;
  row<model_port, Z.weights> weights;
  row<model_port, Z.outputs> outputs;
};
inline constexpr table_sizes draft_sizes{4096, 2048, 8192, 8192, 8192, 256, 1024, 1024, 1024};

/// What one evaluation of a model's define leaves, with room for most models (untouched elements cost
/// nothing, see pool). It has the sizes that the type of its tables needs, and where they fit the tables as
/// well, so that define need not run again.
struct draft {
  table_sizes size;
  model_complaint first;
  bool fits;
  frozen<draft_sizes> tables;
};
// From arrays to arrays, without iterators, calls and pointers: one step for each element.
constexpr void copy_tables(auto const& from, table_sizes const& z, auto& to) {
  for (int i = 0, n = z.nodes; i < n; ++i) to.nodes[i] = from.nodes[i];
  for (int i = 0, n = z.values; i < n; ++i) to.values[i] = from.values[i];
  for (int i = 0, n = z.operands; i < n; ++i) to.operands[i] = from.operands[i];
  for (int i = 0, n = z.producers; i < n; ++i) to.producers[i] = from.producers[i];
  for (int i = 0, n = z.attrs; i < n; ++i) to.attrs[i] = from.attrs[i];
  for (int i = 0, n = z.blocks; i < n; ++i) to.blocks[i] = from.blocks[i];
  for (int i = 0, n = z.inputs; i < n; ++i) to.inputs[i] = from.inputs[i];
  for (int i = 0, n = z.weights; i < n; ++i) to.weights[i] = from.weights[i];
  for (int i = 0, n = z.outputs; i < n; ++i) to.outputs[i] = from.outputs[i];
}
constexpr graph_view tables_view(auto const& f, table_sizes const& z) {
  return {{f.nodes, z.nodes},         {f.values, z.values},   {f.operands, z.operands},
          {f.producers, z.producers}, {f.attrs, z.attrs},     {f.blocks, z.blocks},
          {f.inputs, z.inputs},       {f.weights, z.weights}, {f.outputs, z.outputs}};
}
template <class M> consteval draft make_draft() {
  draft r{};
  model_builder g(r.tables);
  M::define(g);
  graph_view const v = g.view();
  r.size = {v.nodes.n,   v.values.n, v.operands.n, v.producers.n, v.attrs.n,
            v.blocks.n, v.inputs.n, v.weights.n,  v.outputs.n};
  if (!g.ok()) r.first = g.complaints()[0];
  r.fits = g.in_place();
  return r;
}
}  // namespace detail
namespace refused {
/// The draft. Where define is no constant expression (`constexpr` forgotten, a size that is known at run time
/// only), compilers print this name, and then the reason.
template <class M>
inline constexpr detail::draft DEFINE_MUST_BE_A_CONSTANT_EXPRESSION = detail::make_draft<M>();
}  // namespace refused
namespace detail {
template <class M> inline constexpr draft const& draft_of = refused::DEFINE_MUST_BE_A_CONSTANT_EXPRESSION<M>;
/// False where define is no constant expression. The compiler has said so then, once: what follows from it is
/// silent.
template <class M> concept drafted = requires { typename std::bool_constant<draft_of<M>.fits || true>; };
template <class M> consteval table_sizes sizes() {
  if constexpr (drafted<M>) return draft_of<M>.size;
  else return {};
}
template <class M> inline constexpr table_sizes sizes_of = sizes<M>();
template <class M> consteval auto freeze() {
  frozen<sizes_of<M>> f{};
  if constexpr (!drafted<M>) {
    return f;
  } else if constexpr (draft_of<M>.fits) {
    copy_tables(draft_of<M>.tables, sizes_of<M>, f);
  } else {
    model_builder g;
    M::define(g);
    copy_tables(g.view(), sizes_of<M>, f);
  }
  return f;
}
template <class M> inline constexpr auto frozen_of = freeze<M>();
template <class M> constexpr graph_view view_of() { return tables_view(frozen_of<M>, sizes_of<M>); }
/// The first complaint of the builder, else the first one about the whole. A constant evaluation of its own:
/// compilers count steps per evaluation.
template <class M> consteval model_complaint verdict() {
  if constexpr (!drafted<M>) return {};
  else if constexpr (draft_of<M>.first.ok()) return audit(view_of<M>());
  else return draft_of<M>.first;
}
template <class M> inline constexpr model_complaint verdict_of = verdict<M>();

}  // namespace detail

/// A model's graph as a type without state. Instantiating it checks the model; a fault names itself (see
/// check.hpp).
/// Models `topology`. Converts to graph_view, the common currency of models.
template <model_definition M> struct typed_graph {
  using model_type = M;
  // a fault in the model ends here
  enum : std::size_t { checked = sizeof(typename detail::verdict_type<M, detail::verdict_of<M>>::type) };
  static constexpr graph_view view() { return detail::view_of<M>(); }
  static constexpr int size() { return detail::sizes_of<M>.nodes; }
  static constexpr int node_count() { return size(); }
  static constexpr core::slice<int> predecessors(int v) { return view().predecessors(v); }
  constexpr operator graph_view() const { return view(); }
};

/// `constexpr auto net = typed<mlp>;`
template <model_definition M> inline constexpr typed_graph<M> typed{};

/// A sequential model without a struct: `typed<chain<body, in>>`, both constexpr variables (a stage and the
/// shape of its input).
template <auto const& Body, auto const& In> struct chain {
  static constexpr void define(auto& g) { g.output("y", g.input("x", In) | Body); }
};

namespace detail {
template <model_definition M> struct part_t {
  op::place at;
  constexpr auto operator()(ref x) const { return (*this)(all(x)); }
  constexpr auto operator()(bundle const& x) const {
    constexpr graph_view s = typed_graph<M>::view();
    static_assert(
        s.inputs.n >= 1 && s.inputs.n <= bundle::max && s.outputs.n >= 1 && s.outputs.n <= bundle::max,
        "tensorpar: a part has 1 to 32 inputs and outputs");
    model_builder& g = *x.r[0].g;
    bundle y{};
    y.n = s.outputs.n;
    bool good = true;
    for (int i = 0; i < x.n; ++i) good = good && x.r[i].v >= 0;
    if (good && x.n != s.inputs.n) {
      g.fail(detail::at(part_op{}, at),
             op::mismatch("a part takes as many as its inputs", shape{dim(x.n)}, shape{dim(s.inputs.n)}));
      good = false;
    }
    for (int i = 0; good && i < x.n; ++i) {
      shape const &given = x.r[i].type(), &declared = s.values[s.inputs[i].value].type;
      if (fits(given, declared) && given.type == declared.type) continue;
      g.fail(detail::at(part_op{}, at), op::mismatch("the argument does not fit the input", given, declared));
      good = false;
    }
    if (good) g.splice(s, x.r, y.r);
    else for (int i = 0; i < y.n; ++i) y.r[i] = {&g, -1};
    if constexpr (s.outputs.n == 1) return y.r[0];
    else return y;
  }
};
}  // namespace detail

/// A model as a block of another: `x | part<encoder>()`. Its finished tables are copied in, so each model has
/// its own budget of constant evaluation (125 steps a node here): with it a model may be larger than a
/// compiler's limit on one evaluation allows.
template <model_definition M>
constexpr detail::part_t<M> part(std::source_location l = std::source_location::current()) {
  return {detail::place_of(l)};
}

}  // namespace tensorpar
