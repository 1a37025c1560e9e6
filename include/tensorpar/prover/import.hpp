// tensorpar/prover/import.hpp - rules of other systems as ours, where they can be
#pragma once
#include <optional>
#include <set>
#include <tensorpar/core/index.hpp>
#include <tensorpar/prover/foreign_rules.hpp>
#include <tensorpar/rewrite/rule.hpp>
#include <tensorpar/rewrite/vocabulary.hpp>

namespace tensorpar::prover {

/// A rule, or why there is none. Reasons begin with what they are: "unbound variable", "replica semantics"
/// (in the other system one axis counts copies and partial sums alike), "unsupported".
struct imported_rule {
  std::optional<rewrite::rule> what;
  std::string reason;
};

namespace detail {

/// Translates one rule. Where the collection has a replica axis, it is the first one and ours count from the
/// next.
/// Every degree in the files is 2: it becomes one degree k. Fused activations become operators of their own.
/// A split undoes a concatenation: its parts are windows of the extents that were joined. Tensors are
/// matrices or images; a matrix's second axis is the last.
/// A convolution of joined images with joined filters is a grouped one, though the files do not say so.
class rule_importer {
  foreign_rule const& f_;
  int replica_;                          // axes that come before the data's
  rewrite::rule r_;
  std::map<int, int> variable_;
  std::string problem_;

  bool fail(std::string why) {
    if (problem_.empty()) problem_ = std::move(why);
    return false;
  }
  static i64 parameter(foreign_operator const& o, char const* key, i64 otherwise) {
    auto const it = o.parameter.find(key);
    return it == o.parameter.end() ? otherwise : it->second;
  }
  rewrite::rule_term degree() {
    for (std::size_t i = 0; i < r_.parameters.size(); ++i)
      if (r_.parameters[i].name == "k") return rewrite::parameter_term(static_cast<int>(i));
    r_.parameters.push_back({"k", rewrite::parameter_kind::degree});
    return rewrite::parameter_term(static_cast<int>(r_.parameters.size()) - 1);
  }
  /// The axis of an operator, by the number of axes that the file says its tensors have (parallel operators:
  /// matrices).
  int axis_of(foreign_operator const& o, char const* key) const {
    int const a = static_cast<int>(parameter(o, key, 0)) - replica_,
              axes = static_cast<int>(parameter(o, "PM_NUMDIM", 2 + replica_)) - replica_;
    return a == 1 && axes == 2 ? -1 : a < 0 ? -2 : a;
  }
  template <class Op> static rewrite::pattern_node node(std::vector<rewrite::pattern_value> in) {
    rewrite::pattern_node n;
    n.op = &op::info<Op>;
    n.in = std::move(in);
    for (int i = 0; i < n.op->attrs; ++i) {
      rewrite::attr_role const role = rewrite::role_of(*n.op, i);
      n.attr.push_back(role == rewrite::attr_role::follows ||
                       role == rewrite::attr_role::label ? rewrite::open_term() : rewrite::number_term(0));
    }
    return n;
  }

  /// The extent of a value along an axis (-1: a matrix's second), as a variable's; nullopt: it is a sum of
  /// some.
  std::optional<rewrite::rule_factor> extent(rewrite::pattern_graph const& g, rewrite::pattern_value v,
                                             int axis) const {
    if (v.node < 0) return rewrite::rule_factor{rewrite::term_kind::extent, v.slot, axis, -1};
    rewrite::pattern_node const& n = g.nodes[idx(v.node)];
    std::string_view const o = n.op->name;
    if (o == "concat") return n.attr[0].number == axis ? std::nullopt : extent(g, n.in[0], axis);
    if (o == "linear") return axis == -1 ? extent(g, n.in[1], 0) : extent(g, n.in[0], axis);
    if (o == "matmul") return extent(g, n.in[axis == -1 ? 1 : 0], axis);
    if (o == "conv2d" && axis == 1) return extent(g, n.in[1], 0);
    if (o == "slice" && n.attr[0].number == axis)
      return n.attr[2].factors.empty() ? std::nullopt : std::optional(n.attr[2].factors[0]);
    if (o == "transpose") return extent(g, n.in[0], -1 - axis);
    return extent(g, n.in[0], axis);
  }
  /// The two values that were joined to make this extent, and along which axis of theirs.
  struct joint { rewrite::pattern_value first, second; int axis; };
  std::optional<joint> joined(rewrite::pattern_graph const& g, rewrite::pattern_value v, int axis,
                              std::set<std::pair<int, int>>& seen) const {
    if (v.node < 0) return std::nullopt;
    rewrite::pattern_node const& n = g.nodes[idx(v.node)];
    std::string_view const o = n.op->name;
    if (o == "concat" && n.attr[0].number == axis) return joint{n.in[0], n.in[1], axis};
    if (o == "linear") return axis == -1 ? joined(g, n.in[1], 0, seen) : joined(g, n.in[0], axis, seen);
    if (o == "matmul") return joined(g, n.in[axis == -1 ? 1 : 0], axis, seen);
    if (o == "conv2d") return axis == 1 ? joined(g, n.in[1], 0, seen) : joined(g, n.in[0], axis, seen);
    for (rewrite::pattern_value w : n.in)
      if (seen.insert({w.node, axis}).second)
        if (auto j = joined(g, w, axis, seen)) return j;
    return std::nullopt;
  }
  std::optional<joint> joined(rewrite::pattern_graph const& g, rewrite::pattern_value v, int axis) const {
    // nodes and axes: a value that is read twice is looked into once
    std::set<std::pair<int, int>> seen;
    return joined(g, v, axis, seen);
  }

  static rewrite::pattern_value append(rewrite::pattern_graph& g, rewrite::pattern_node n) {
    g.nodes.push_back(std::move(n));
    return {static_cast<int>(g.nodes.size()) - 1, 0};
  }
  bool convolution(foreign_operator const& o, std::vector<rewrite::pattern_value> const& in,
                   rewrite::pattern_graph& g, std::vector<rewrite::pattern_value>& out) {
    if (parameter(o, "PM_GROUP", 1) != 1) return fail("unsupported: grouped convolution");
    rewrite::pattern_node n = node<conv2d>(in);
    auto joins = [&](rewrite::pattern_value v, i64 axis) {
      return v.node >= 0 && g.nodes[idx(v.node)].op->name == "concat" &&
             g.nodes[idx(v.node)].attr[0].number == axis;
    };
    i64 const groups = joins(in[0], 1) && joins(in[1], 0) ? 2 : 1;
    for (int k = 0; k < n.op->attrs; ++k) {
      std::string_view const name = n.op->attr_name(k);
      rewrite::rule_term& t = n.attr[idx(k)];
      if (name == "stride") t = rewrite::number_term(parameter(o, "PM_STRIDE_H", 1));
      if (name == "pad" || name == "pad_w")
        t = rewrite::number_term(parameter(o, "PM_PAD", 0) == 0 ? -1 : name == "pad" ? 0 : -1);
      if (name == "groups") t = rewrite::number_term(groups);
    }
    out = {append(g, std::move(n))};
    return true;
  }
  bool joining(foreign_operator const& o, std::vector<rewrite::pattern_value> const& in,
               rewrite::pattern_graph& g, std::vector<rewrite::pattern_value>& out) {
    int const axis = axis_of(o, "PM_AXIS");
    if (axis == -2) return fail("replica semantics: " + o.type + " along the axis that counts replicas");
    if (o.type == "OP_CONCAT") {
      if (in.size() < 2) return fail("unsupported: OP_CONCAT of one operand");
      rewrite::pattern_node n = node<concat>(in);
      n.attr = {rewrite::number_term(axis)};
      out = {append(g, std::move(n))};
    } else {
      // a split does not say how many axes there are: a matrix's second axis, else an image's
      int along = axis;
      auto j = joined(g, in[0], along);
      if (!j && axis == -1 && !o.parameter.count("PM_NUMDIM")) j = joined(g, in[0], along = 1);
      auto const first = j ? extent(g, j->first, j->axis) : std::nullopt,
                 second = j ? extent(g, j->second, j->axis) : std::nullopt;
      if (!first || !second || parameter(o, "PM_NUM_OUTPUTS", 2) != 2)
        return fail("unsupported: OP_SPLIT of what was not joined of two variables");
      for (bool later : {false, true}) {
        rewrite::pattern_node n = node<slice_axis>(in);
        n.attr = {rewrite::number_term(along), later ? rewrite::rule_term{1, {*first}, false}
                  : rewrite::number_term(0), rewrite::rule_term{1,
            {later ? *second : *first}, false}};
        out.push_back(append(g, std::move(n)));
      }
    }
    return true;
  }
  bool parallel_operator(foreign_operator const& o, std::vector<rewrite::pattern_value> const& in,
                         rewrite::pattern_graph& g, std::vector<rewrite::pattern_value>& out) {
    int const axis = axis_of(o, "PM_PARALLEL_DIM");
    bool const moves = o.type == "OP_PARTITION" || o.type == "OP_COMBINE";
    if (moves && axis == -2)
      return fail("replica semantics: " + o.type + " of the axis that counts replicas");
    if (!moves && axis != -2)
      return fail("replica semantics: " + o.type +
                  " along an axis of the data repeats or adds its elements");
    rewrite::pattern_node n = o.type == "OP_PARTITION" ? node<parallel::partition>(in)
                     : o.type == "OP_COMBINE" ? node<parallel::combine>(in)
                     : o.type == "OP_REPLICATE" ? node<parallel::replicate>(in)
                                                : node<parallel::reduce>(in);
    if (moves) n.attr = {rewrite::number_term(axis), degree()};
    else n.attr = {degree()};
    out = {append(g, std::move(n))};
    return true;
  }

  bool side(std::vector<foreign_operator> const& ops, rewrite::pattern_graph& g,
            std::vector<std::vector<rewrite::pattern_value>>& results) {
    for (std::size_t i = 0; i < ops.size(); ++i) {
      foreign_operator const& o = ops[i];
      std::vector<rewrite::pattern_value> in;
      for (foreign_value const& v : o.input) {
        if (v.op < 0) {
          auto const [it, fresh] = variable_.emplace(v.op, static_cast<int>(r_.tensors.size()));
          if (fresh) r_.tensors.push_back("x" + std::to_string(-v.op));
          in.push_back({-1, it->second});
        } else {
          auto const& made = results[idx(v.op)];
          if (v.slot >= static_cast<int>(made.size()))
            return fail("unsupported: " + o.type + " reads a result that is not there");
          in.push_back(made[idx(v.slot)]);
        }
      }
      auto add = [&](rewrite::pattern_node n) { return append(g, std::move(n)); };
      auto takes = [&](std::size_t n) {
        return in.size() == n ||
               fail("unsupported: " + o.type + " of " + std::to_string(in.size()) + " operands");
      };
      std::vector<rewrite::pattern_value> out;
      if (o.type == "OP_RELU" && takes(1)) out = {add(node<relu>(in))};
      else if (o.type == "OP_SIGMOID" && takes(1)) out = {add(node<sigmoid>(in))};
      else if (o.type == "OP_TANH" && takes(1)) out = {add(node<tanh_>(in))};
      else if (o.type == "OP_EW_ADD" && takes(2)) out = {add(node<tensorpar::add>(in))};
      else if (o.type == "OP_EW_MUL" && takes(2)) out = {add(node<mul>(in))};
      else if (o.type == "OP_LINEAR" && takes(2)) out = {add(node<linear>(in))};
      else if (o.type == "OP_MATMUL" && takes(2)) out = {add(node<matmul>(in))};
      else if (o.type == "OP_TRANSPOSE" && takes(1)) {
        rewrite::pattern_node n = node<tensorpar::transpose>(in);
        n.attr = {rewrite::number_term(-2), rewrite::number_term(-1)};
        out = {add(std::move(n))};
      } else if (o.type == "OP_CONV2D" && takes(2)) {
        if (!convolution(o, in, g, out)) return false;
      } else if ((o.type == "OP_POOL2D_MAX" || o.type == "OP_POOL2D_AVG") && takes(1)) {
        rewrite::pattern_node n = node<pool2d>(in);
        i64 const kernel = parameter(o, "PM_KERNEL_H", 2);
        n.attr = {rewrite::number_term(kernel), rewrite::number_term(parameter(o, "PM_STRIDE_H", 1)),
                  rewrite::number_term(parameter(o, "PM_PAD", 0) == 0 ? kernel / 2 : 0),
                  rewrite::number_term(o.type == "OP_POOL2D_AVG")};
        out = {add(std::move(n))};
      } else if (o.type == "OP_CONCAT" || o.type == "OP_SPLIT") {
        if (o.type == "OP_SPLIT" && !takes(1)) return false;
        if (!joining(o, in, g, out)) return false;
      } else if (o.type == "OP_PARTITION" || o.type == "OP_COMBINE" || o.type == "OP_REPLICATE" ||
                 o.type == "OP_REDUCE") {
        if (!takes(1) || !parallel_operator(o, in, g, out)) return false;
      } else {
        return fail("unsupported: " + o.type);
      }
      if (!problem_.empty()) return false;
      switch (parameter(o, "PM_ACTI", 0)) {
        case 0: break;
        case 1: out = {add(node<sigmoid>(out))}; break;
        case 2: out = {add(node<relu>(out))}; break;
        case 3: out = {add(node<tanh_>(out))}; break;
        default: return fail("unsupported: activation " + std::to_string(parameter(o, "PM_ACTI", 0)));
      }
      results.push_back(std::move(out));
    }
    return true;
  }

 public:
  rule_importer(foreign_rule const& f, int replica) : f_(f), replica_(replica) {}
  imported_rule run(std::string name) {
    r_.name = std::move(name);
    std::map<int, bool> bound;
    for (foreign_operator const& o : f_.source)
      for (foreign_value const& v : o.input)
        if (v.op < 0) bound[v.op] = true;
    for (foreign_operator const& o : f_.target)
      for (foreign_value const& v : o.input)
        if (v.op < 0 && !bound.count(v.op))
          return {std::nullopt, "unbound variable: " + std::to_string(v.op) + " is in the target alone"};
    std::vector<std::vector<rewrite::pattern_value>> source, target;
    if (!side(f_.source, r_.source, source) || !side(f_.target, r_.target, target))
      return {std::nullopt, problem_};
    for (foreign_output const& o : f_.outputs) {
      auto pick = [&](std::vector<std::vector<rewrite::pattern_value>> const& made,
                      foreign_value v) -> std::optional<rewrite::pattern_value> {
        if (v.op < 0) {
          auto const it = variable_.find(v.op);
          return it == variable_.end() ? std::nullopt : std::optional(rewrite::pattern_value{-1, it->second});
        }
        auto const& slots = made[idx(v.op)];
        return v.slot < static_cast<int>(slots.size())
                   ? std::optional(slots[idx(v.slot)])
                   : std::nullopt;
      };
      auto const a = pick(source, o.source), b = pick(target, o.target);
      if (!a || !b) return {std::nullopt, "unsupported: an output that no operator makes"};
      r_.source.outputs.push_back(*a);
      r_.target.outputs.push_back(*b);
    }
    if (auto const all = rewrite::problems(r_); !all.empty())
      return {std::nullopt, "unsupported: " + all.front()};
    return {std::move(r_), {}};
  }
};

}  // namespace detail

/// Does a collection count replicas in a first axis? FlexFlow's do (they hold parallel operators), TASO's do
/// not.
inline bool counts_replicas(std::vector<foreign_rule> const& all) {
  for (foreign_rule const& r : all)
    for (auto const* side : {&r.source, &r.target})
      for (foreign_operator const& o : *side)
        if (o.type == "OP_PARTITION" || o.type == "OP_COMBINE" || o.type == "OP_REPLICATE" ||
            o.type == "OP_REDUCE")
          return true;
  return false;
}
/// One rule as ours. Its form is good; whether it holds is the business of try_rule and of the prover.
inline imported_rule import_rule(foreign_rule const& f, bool replicas, std::string name) {
  return detail::rule_importer(f, replicas ? 1 : 0).run(std::move(name));
}

}  // namespace tensorpar::prover
