// tensorpar/op/core/any_op.hpp - the operator concept's erasure: any operator as plain data, open to new
// operators
#pragma once
#include <bit>
#include <source_location>
#include <tensorpar/core/hash.hpp>
#include <tensorpar/op/core/concepts.hpp>
#include <tensorpar/op/core/derivative.hpp>

namespace tensorpar::op {

inline constexpr int max_attrs = 8;

struct attr_info {
  std::string_view name;
  // 'i' integer, 'b' bool, 'f' real, 'a' axis
  char kind;
};

/// What is known of an operator type, as constants and function pointers. Compared by `id` (see name_hash),
/// never by address. What operators leave to a default they share: a unit compiles the functions of every
/// operator that it names.
struct op_info {
  std::string_view name;
  u64 id;
  int arity;                                                            // number of activations; -1: any
  int attrs;
  attr_info const* attr;
  // one notation for all attributes and operands (under -fsanitize=undefined g++ 12 compares no pointer in
  // constants)
  bool fixed;
  loops const* notation;                                                // if fixed
  loops (*notation_for)(i64 const*, shapes);                            // if not
  inference (*infer)(i64 const*, shapes);
  weight_list (*weights)(i64 const*, shapes);
  double (*flops)(i64 const*, shapes, shapes);
  // how often a loop may be split at most; 0: by its extents
  i64 (*units)(i64 const*, char, shapes);
  // an operand of indices: they are below this; 0: it is none
  i64 (*index_extent)(i64 const*, int, shapes);
  void (*derive)(i64 const*, gradient_builder&);                        // nullptr: not differentiable
  // of the C++ type: tells two types of one name apart; not stable
  u64 type;
  bool weighty;                                                         // it may bring weights along
  // of bf16 numbers it may leave sums in f32
  bool sums_wide;
  // bit k: operand k is f32 beside bf16 ones
  unsigned wide_operands;
  // operand whose bytes the first result may take, once nothing else reads them; -1: none
  int overwrites;
  // of an operator and a function in one: both; else nullptr
  op_info const *first, *then;
  work_kind work = work_kind::other;

  /// The iteration space of the activations.
  constexpr loops pattern(i64 const* a, shapes in) const { return fixed ? *notation : notation_for(a, in); }
  constexpr std::string_view attr_name(int i) const { return attr[i].name; }
  constexpr char attr_kind(int i) const { return attr[i].kind; }
};

namespace detail {
// spells T; source_location does not under nvcc
template <class T> constexpr u64 type_hash() { return core::name_hash(__PRETTY_FUNCTION__); }
template <class T> constexpr char kind_of_attr() {
  return std::is_same_v<T, axis>       ? 'a'
         : std::is_floating_point_v<T> ? 'f'
         : std::is_same_v<T, bool>     ? 'b'
                                       : 'i';
}
// Visitors of `describe`. Not lambdas: what those capture costs constant evaluation a step more for every
// attribute of every operator.
struct attr_saver {
  i64* to;
  template <class T> constexpr void operator()(char const*, T const& x) {
    if constexpr (std::is_same_v<T, axis>) *to++ = static_cast<i64>(x.id);
    else if constexpr (std::is_floating_point_v<T>) *to++ = std::bit_cast<i64>(static_cast<double>(x));
    else *to++ = static_cast<i64>(x);
  }
};
struct attr_loader {
  i64 const* from;
  template <class T> constexpr void operator()(char const*, T& x) {
    if constexpr (std::is_same_v<T, axis>) x.id = static_cast<u64>(*from++);
    else if constexpr (std::is_floating_point_v<T>) x = static_cast<T>(std::bit_cast<double>(*from++));
    else x = static_cast<T>(*from++);
  }
};
}  // namespace detail

/// Attributes in the order in which `describe` lists them.
template <class Op> constexpr int save(Op const& op, i64* to) {
  if constexpr (described<Op>) {
    detail::attr_saver s{to};
    Op::describe(op, s);
    return static_cast<int>(s.to - to);
  } else return 0;
}
template <class Op> constexpr Op load(i64 const* from) {
  Op op{};
  if constexpr (described<Op>) {
    detail::attr_loader l{from};
    Op::describe(op, l);
  }
  return op;
}
template <class Op> constexpr int attr_count() {
  int n = 0;
  if constexpr (described<Op>) { Op op{}; Op::describe(op, [&](auto&&...) { ++n; }); }
  return n;
}

namespace detail {
struct attr_list { attr_info x[max_attrs]; };
[[gnu::cold]] constexpr weight_list no_weights(i64 const*, shapes) { return {}; }
[[gnu::cold]] constexpr i64 no_units(i64 const*, char, shapes) { return 0; }
[[gnu::cold]] constexpr i64 no_indices(i64 const*, int, shapes) { return 0; }
/// Every loop once; a reduction multiplies and adds.
[[gnu::cold]] constexpr double points(loops const& s, shapes in, shapes out) {
  double n = 1, twice = 1;
  if (!out.empty()) n = static_cast<double>(out[0].elements());
  for (int i = 0; i < s.n; ++i) {
    if (!s.l[i].reduced) continue;
    twice = 2;
    for (int k = 0; k < loop::max_in && k < in.n; ++k)
      if (s.l[i].in[k] != -1) { n *= static_cast<double>(extent_at(in[k], s.l[i].in[k])); break; }
  }
  return twice * n;
}

/// At run time all but the work is asked when graphs are made: cold, because optimising it for speed is what
/// compiling a model would take.
template <class Op> struct erased {
  [[gnu::cold]] static constexpr inference infer(i64 const* a, shapes in) { return load<Op>(a).infer(in); }
  [[gnu::cold]] static constexpr weight_list weights(i64 const* a, shapes in) {
    return load<Op>(a).weights(in);
  }
  [[gnu::cold]] static constexpr loops pattern(i64 const* a, shapes in) {
    return parse_notation(load<Op>(a).notation_for(in).view());
  }
  template <class O> struct fixed { static constexpr loops pattern = parse_notation(O::notation); };
  [[gnu::cold]] static constexpr i64 units(i64 const* a, char letter, shapes in) {
    return load<Op>(a).units(letter, in);
  }
  [[gnu::cold]] static constexpr i64 indices(i64 const* a, int k, shapes in) {
    return load<Op>(a).index_extent(k, in);
  }
  static constexpr double flops(i64 const* a, shapes in, shapes out) {
    if constexpr (requires(Op const& o) { o.flops(in, out); }) return load<Op>(a).flops(in, out);
    else if constexpr (requires(Op const& o) { o.notation_for(in); }) return points(pattern(a, in), in, out);
    else return points(fixed<Op>::pattern, in, out);
  }
  [[gnu::cold]] static void derive(i64 const* a, gradient_builder& g) { load<Op>(a).derive(g); }
  static constexpr attr_list attrs = [] {
    attr_list r{};
    if constexpr (described<Op>) {
      Op op{};
      int n = 0;
      Op::describe(op, [&](char const* s, auto& x) {
        r.x[n++] = {s, kind_of_attr<std::remove_cvref_t<decltype(x)>>()};
      });
    }
    return r;
  }();
  template <class Other> static constexpr op_info const* of();
  static constexpr int arity() { if constexpr (requires { Op::arity; }) return Op::arity; else return 1; }
  static constexpr op_info make() {
    op_info r{Op::name,        core::name_hash(Op::name),
              arity(),         attr_count<Op>(),
              attrs.x,         false,
              nullptr,         nullptr,
              &infer,          &no_weights,
              &flops,          &no_units,
              &no_indices,     nullptr,
              type_hash<Op>(), false,
              false,           0,
              -1,              nullptr,
              nullptr};
    if constexpr (requires(Op const& o, shapes in) { o.notation_for(in); }) r.notation_for = &pattern;
    else { r.fixed = true; r.notation = &fixed<Op>::pattern; }
    if constexpr (requires(Op const& o, shapes in) { o.weights(in); }) {
      r.weights = &weights;
      r.weighty = true;
    }
    if constexpr (requires(Op const& o, shapes in) { o.units('a', in); }) r.units = &units;
    if constexpr (requires(Op const& o, shapes in) { o.index_extent(0, in); }) r.index_extent = &indices;
    if constexpr (differentiable<Op>) r.derive = &derive;
    if constexpr (requires { Op::sums_wide; }) r.sums_wide = Op::sums_wide;
    if constexpr (requires { Op::wide_operands; }) r.wide_operands = Op::wide_operands;
    if constexpr (requires { Op::overwrites; }) r.overwrites = Op::overwrites;
    if constexpr (requires { Op::work; }) r.work = Op::work;
    if constexpr (requires { typename Op::first; typename Op::then; }) {
      r.first = of<typename Op::first>();
      r.then = of<typename Op::then>();
    }
    return r;
  }
};
}  // namespace detail

template <operator_ Op> inline constexpr op_info info = detail::erased<Op>::make();
template <class Op> template <class Other> constexpr op_info const* detail::erased<Op>::of() {
  return &info<Other>;
}

/// Where an operator was written.
struct place {
  char const* file;
  int line;
};

/// Any operator, as data: 8 attribute words and a pointer to its information. The converting constructor
/// notes where it was written.
struct any_op {
  op_info const* op;
  i64 attr[max_attrs];
  char const* name;
  place at;
  constexpr any_op() : op(nullptr), attr{}, name(nullptr), at{nullptr, 0} {}
  template <operator_ Op>
  constexpr any_op(Op const& o, std::source_location here = std::source_location::current())
      : op(&info<Op>), attr{}, name(nullptr), at{here.file_name(), static_cast<int>(here.line())} {
    static_assert(attr_count<Op>() <= max_attrs, "tensorpar: an operator has at most 8 attributes");
    save(o, attr);
  }
  template <class Op> constexpr bool is() const { return op && op->id == core::name_hash(Op::name); }
  template <class Op> constexpr Op as() const { return load<Op>(attr); }

  /// Same operator and attributes; its name and place are labels, not values.
  friend constexpr bool operator==(any_op const& a, any_op const& b) {
    if ((a.op == nullptr) != (b.op == nullptr)) return false;
    if (a.op && a.op->id != b.op->id) return false;
    for (int i = 0; i < max_attrs; ++i) if (a.attr[i] != b.attr[i]) return false;
    return true;
  }
  constexpr u64 hash() const {
    core::hasher h;
    h.add(op ? op->id : 0);
    for (i64 x : attr) h.add(x);
    return h.value();
  }
};

/// Results of an operator on these operands, of which so many are activations and the others its weights.
/// Shape rules do not see weights, of an embedding's table they know the width alone: what is made with bf16
/// weights is bf16.
[[gnu::cold]] inline inference infer_results(any_op const& o, shapes in, int activations) {
  inference r = o.op->infer(o.attr, {in.begin(), activations});
  bool narrow = false;
  for (int k = activations; k < in.n; ++k) narrow = narrow || in[k].type == dtype::bf16;
  if (r.ok() && narrow) for (int k = 0; k < r.n; ++k) r.out[k].type = dtype::bf16;
  return r;
}

}  // namespace tensorpar::op

namespace tensorpar {

/// Gives an operator a label: `named("head", linear{10})`.
template <op::operator_ Op>
constexpr op::any_op named(char const* n, Op const& o,
                       std::source_location here = std::source_location::current()) {
  op::any_op r(o, here);
  r.name = n;
  return r;
}
template <class T>
  requires(!op::operator_<T>)
constexpr op::refused::NOT_AN_OPERATOR<T> named(char const*, T const&);

}  // namespace tensorpar
