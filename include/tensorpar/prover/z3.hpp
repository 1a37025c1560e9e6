// tensorpar/prover/z3.hpp - proofs of rules by Z3: values from axioms, shardings by linear arithmetic
#pragma once
#include <map>
#include <tensorpar/core/index.hpp>
#include <tensorpar/prover/axioms.hpp>
#include <tensorpar/prover/cases/restrict.hpp>
#include <tensorpar/prover/proof.hpp>
#include <tensorpar/rewrite/rule_parser.hpp>
#include <z3++.h>

namespace tensorpar::prover {

/// Proves rules. Keeps Z3's context and the axioms between rules; for one thread at a time.
/// Values: one sort of tensors, "undefined" among them; an operator is a total function of its operands and
/// attributes. For every case of a rule it asks whether the axioms, the definedness of both sides and the
/// equality of extents that they imply leave room for a difference. Shardings: exponents of an arbitrary
/// prime, and of those in numbers (prover/cases/sharding_system.hpp); it asks whether all that both sides
/// require and the conditions leave room for outputs that lie differently.
class z3_prover {
  rewrite::vocabulary const& words_;
  proof_options options_;
  z3::context c_;
  z3::sort tensor_;
  z3::func_decl defined_, extent_, product_;
  std::vector<std::pair<axiom, rewrite::rule>> axioms_;
  std::map<std::string, z3::func_decl> operators_;   // those that axioms mention
  z3::solver values_, shardings_;
  // of the rule at hand: values proved, by ranks and parameters
  std::map<std::pair<std::vector<int>, std::vector<i64>>, bool> known_;

  using env = std::vector<z3::expr>;

  std::string function_name(op::op_info const& o, std::size_t operands) const {
    return std::string(o.name) + "/" + std::to_string(operands);
  }
  /// Functions are one operator with a number for the function, so that axioms can speak of all of them.
  z3::expr apply(op::op_info const* o, z3::expr const* function, env const& attrs, env const& in) {
    z3::sort_vector domain(c_);
    z3::expr_vector args(c_);
    bool const is = !o || rewrite::is_function(*o);
    if (is) {
      domain.push_back(c_.int_sort());
      args.push_back(function ? *function : c_.int_val(static_cast<std::int64_t>(o->id >> 2)));
    }
    for (z3::expr const& a : attrs) { domain.push_back(c_.int_sort()); args.push_back(a); }
    for (z3::expr const& x : in) { domain.push_back(tensor_); args.push_back(x); }
    std::string const name = is ? "function" : function_name(*o, in.size());
    z3::func_decl const f = c_.function(name.c_str(), domain, tensor_);
    operators_.emplace(name, f);
    return f(args);
  }
  z3::expr result(z3::expr const& y, int slot) {
    return c_.function("result", tensor_, c_.int_sort(), tensor_)(y, c_.int_val(slot));
  }
  /// A term as an integer. `axis_of(factor)`, `rank`: axes count from the last one.
  z3::expr number(rewrite::rule_term const& t, env const& parameters, env const& tensors, auto&& axis) {
    std::optional<z3::expr> e;
    auto put = [&](z3::expr x) { e = e ? product_(*e, x) : x; };
    if (t.factors.empty() || t.number != 1) put(c_.int_val(static_cast<std::int64_t>(t.number)));
    for (rewrite::rule_factor const& f : t.factors) {
      if (f.kind == rewrite::term_kind::parameter) put(parameters[idx(f.index)]);
      else put(extent_(axis(f), tensors[idx(f.index)]));
    }
    return *e;
  }

  /// The terms that trigger an axiom, in its own tensors and parameters.
  rewrite::rule trigger_of(axiom const& a, rewrite::rule const& r) const {
    std::string const all = rewrite::spell(r, r.source) + ", " + std::string(a.trigger);
    rewrite::rule both = rewrite::parse_rule(all + " => " + all, words_, "trigger of " + std::string(a.name));
    both.source.outputs.erase(both.source.outputs.begin());
    return both;
  }
  z3::expr triggered(z3::expr_vector const& bound, z3::expr const& body, env const& terms) {
    std::vector<Z3_app> variables;
    for (unsigned i = 0; i < bound.size(); ++i) variables.push_back(bound[static_cast<int>(i)]);
    std::vector<Z3_ast> together;
    for (z3::expr const& t : terms) together.push_back(t);
    Z3_pattern const pattern = Z3_mk_pattern(c_, static_cast<unsigned>(together.size()), together.data());
    return z3::to_expr(c_, Z3_mk_forall_const(c_, 0, static_cast<unsigned>(variables.size()),
                                              variables.data(), 1, &pattern, body));
  }
  void assert_axioms() {
    for (std::size_t i = 0; i < axioms_.size(); ++i) {
      if (i < options_.without.size() && options_.without[i]) continue;
      auto const& [a, r] = axioms_[i];
      env tensors, parameters;
      z3::expr_vector bound(c_);
      for (std::string const& x : r.tensors) {
        tensors.push_back(c_.constant(("?" + x).c_str(), tensor_));
        bound.push_back(tensors.back());
      }
      for (rewrite::rule_parameter const& p : r.parameters) {
        parameters.push_back(c_.int_const(("?" + p.name).c_str()));
        bound.push_back(parameters.back());
      }
      auto axis = [&](rewrite::rule_factor const& f) {
        return f.axis_parameter >= 0 ? parameters[idx(f.axis_parameter)] : c_.int_val(f.axis);
      };
      auto build = [&](rewrite::pattern_graph const& g) {   // its outputs
        env node, outputs;
        auto of = [&](rewrite::pattern_value v) {
          if (v.node < 0) return tensors[idx(v.slot)];
          op::op_info const* o = g.nodes[idx(v.node)].op;
          z3::expr const& y = node[idx(v.node)];
          // the one operator of several results that axioms know
          return o && o->id == op::info<split_axes>.id ? result(y, v.slot) : y;
        };
        for (rewrite::pattern_node const& n : g.nodes) {
          env attrs, in;
          for (rewrite::rule_term const& t : n.attr)
            if (!t.open) attrs.push_back(number(t, parameters, tensors, axis));
          for (rewrite::pattern_value v : n.in) in.push_back(of(v));
          node.push_back(apply(n.op, n.op ? nullptr : &parameters[idx(n.function)], attrs, in));
        }
        for (rewrite::pattern_value v : g.outputs) outputs.push_back(of(v));
        return outputs;
      };
      z3::expr const left = build(r.source)[0], right = build(r.target)[0];
      z3::expr body = left == right;
      if (a.kind == axiom_kind::forward) body = z3::implies(defined_(left), body);
      if (a.kind == axiom_kind::guarded) body = z3::implies(defined_(left) && defined_(right), body);
      for (rewrite::rule_condition const& k : r.conditions) {
        z3::expr const x = number(k.a, parameters, tensors, axis);
        if (k.kind == rewrite::condition_kind::different)
          body = z3::implies(x != number(k.b, parameters, tensors, axis), body);
        for (i64 last = 1; k.kind == rewrite::condition_kind::inner && last <= k.b.number; ++last)
          body = z3::implies(x != c_.int_val(static_cast<std::int64_t>(-last)), body);
      }
      z3::expr const whole = a.trigger.empty() ? z3::forall(bound, body)
                                               : triggered(bound, body, build(trigger_of(a, r).source));
      values_.add(whole, ("a" + std::to_string(i)).c_str());
    }
    for (auto const& [name, f] : operators_) {   // an operator of something undefined is undefined
      z3::expr_vector args(c_);
      z3::expr whole = c_.bool_val(true);
      for (unsigned k = 0; k < f.arity(); ++k) {
        args.push_back(c_.constant(("?" + std::to_string(k)).c_str(), f.domain(k)));
        if (z3::eq(f.domain(k), tensor_)) whole = whole && defined_(args.back());
      }
      values_.add(z3::forall(args, z3::implies(defined_(f(args)), whole)));
    }
    // numbers multiply in any order
    z3::expr const x = c_.int_const("?x"), y = c_.int_const("?y"), z = c_.int_const("?z");
    values_.add(z3::forall(x, y, product_(x, y) == product_(y, x)));
    values_.add(z3::forall(x, y, z, product_(product_(x, y), z) == product_(x, product_(y, z))));
  }

  bool prove_values(rewrite::rule const& r, rule_case const& k, std::set<int>& used) {
    auto const source = detail::type_pattern(r.source, k.tensors, k.at.parameter, words_);
    auto const target = detail::type_pattern(r.target, k.tensors, k.at.parameter, words_);
    values_.push();
    env tensors, parameters;
    for (std::string const& x : r.tensors) tensors.push_back(c_.constant(x.c_str(), tensor_));
    for (std::size_t p = 0; p < r.parameters.size(); ++p) {
      // what shapes depend on is fixed in a case; degrees, functions and factors stay open
      rewrite::rule_parameter const& q = r.parameters[p];
      bool const factor = rewrite::detail::is_factor(r.source, static_cast<int>(p)) ||
                          rewrite::detail::is_factor(r.target, static_cast<int>(p));
      using enum rewrite::parameter_kind;
      bool const open = q.kind == degree || q.kind == function || factor;
      parameters.push_back(open ? c_.int_const(q.name.c_str())
                                : c_.int_val(static_cast<std::int64_t>(k.at.parameter[p])));
    }
    // every value, with the classes of its axes' extents
    std::vector<std::pair<z3::expr, std::vector<int>>> known;
    env outputs[2];
    for (int side = 0; side < 2; ++side) {
      rewrite::pattern_graph const& g = side ? r.target : r.source;
      typed_pattern const& t = side ? *target : *source;
      std::vector<env> node;
      auto of = [&](rewrite::pattern_value v) { return rewrite::detail::value_of(v, tensors, node); };
      for (std::size_t i = 0; i < g.nodes.size(); ++i) {
        rewrite::pattern_node const& n = g.nodes[i];
        env attrs, in;
        for (rewrite::pattern_value v : n.in) in.push_back(of(v));
        for (std::size_t j = 0; j < n.attr.size(); ++j) {
          if (n.attr[j].open) continue;
          if (rewrite::role_of(*n.op, static_cast<int>(j)) == rewrite::attr_role::axis) {
            int const rank = t.at(n.in[0], k.tensors).rank;
            auto const a = detail::term_value(n.attr[j], false, k.tensors, k.at.parameter);
            attrs.push_back(c_.int_val(static_cast<std::int64_t>(*a < 0 ? *a : *a - rank)));
          } else {
            attrs.push_back(number(n.attr[j], parameters, tensors, [&](rewrite::rule_factor const& f) {
              int const rank = k.at.rank[idx(f.index)];
              return c_.int_val(detail::axis_value(f, rank, k.at.parameter) - rank);
            }));
          }
        }
        z3::expr const y = apply(n.op, n.op ? nullptr : &parameters[idx(n.function)], attrs, in);
        node.emplace_back();
        if (t.value[i].size() == 1) {
          node.back().push_back(y);
        } else {
          for (std::size_t slot = 0; slot < t.value[i].size(); ++slot)
            node.back().push_back(result(y, static_cast<int>(slot)));
        }
        for (std::size_t slot = 0; slot < node.back().size(); ++slot) {
          values_.add(defined_(node.back()[slot]));
          known.emplace_back(node.back()[slot],
                             k.extents.of_node(side, static_cast<int>(i), static_cast<int>(slot)));
        }
      }
      for (rewrite::pattern_value v : g.outputs) outputs[side].push_back(of(v));
    }
    for (std::size_t x = 0; x < tensors.size(); ++x) {
      values_.add(defined_(tensors[x]));
      std::vector<int> classes;
      for (int d = 0; d < k.at.rank[x]; ++d) classes.push_back(k.extents.of(static_cast<int>(x), d));
      known.emplace_back(tensors[x], classes);
    }
    if (mentions_extents(r))
      for (auto const& [e, classes] : known)
        for (std::size_t d = 0; d < classes.size(); ++d)
          values_.add(extent_(c_.int_val(static_cast<int>(d) - static_cast<int>(classes.size())), e) ==
                      c_.int_const(("extent" + std::to_string(classes[d])).c_str()));
    z3::expr differ = c_.bool_val(false);
    for (std::size_t o = 0; o < outputs[0].size(); ++o) differ = differ || outputs[0][o] != outputs[1][o];
    values_.add(differ);
    bool const proved = values_.check() == z3::unsat;
    if (proved) {
      z3::expr_vector const core = values_.unsat_core();
      for (unsigned i = 0; i < core.size(); ++i)
        used.insert(std::stoi(core[static_cast<int>(i)].decl().name().str().substr(1)));
    }
    values_.pop();
    return proved;
  }
  /// Empty: proved; else which half was not. Cases that differ in partial sums alone have the same values.
  std::string prove_case(rewrite::rule const& r, rule_case const& k, std::set<int>& used) {
    bool const shardings = prove_shardings(k.shardings);
    auto const [it, fresh] = known_.emplace(std::pair(k.at.rank, k.at.parameter), true);
    if (fresh) it->second = prove_values(r, k, used);
    if (shardings) return it->second ? "" : "values";
    return it->second ? "shardings" : "values and shardings";
  }
  static bool mentions_extents(rewrite::rule const& r) {
    bool is = false;
    rewrite::detail::each_term(r, [&](rewrite::rule_term const& t) {
      for (rewrite::rule_factor const& f : t.factors) is = is || f.kind == rewrite::term_kind::extent;
    });
    return is;
  }
  bool prove_shardings(sharding_system const& s) {
    bool all = prove_shardings(s, degree_form::any_other_prime);
    for (i64 prime : s.primes()) all = all && prove_shardings(s, prime);
    return all;
  }
  /// The exponents of one prime.
  bool prove_shardings(sharding_system const& s, i64 prime) {
    z3::solver& q = shardings_;
    q.push();
    env x;
    for (std::size_t i = 0; i < s.unknowns.size(); ++i) {
      x.push_back(c_.int_const(("u" + std::to_string(i)).c_str()));
      q.add(x.back() >= 0);
    }
    auto value = [&](degree_form const& f) {
      z3::expr e = c_.int_val(f.of_number(prime));
      for (std::size_t i = 0; i < x.size(); ++i) if (int const c = f.at(i)) e = e + c * x[i];
      return e;
    };
    for (degree_requirement const& r : s.requirements)
      q.add(r.equal ? value(r.form) == 0 : value(r.form) >= 0);
    z3::expr differ = c_.bool_val(false);
    auto compare = [&](degree_form const& a, degree_form const& b) {
      if (!(a == b)) differ = differ || value(a) != value(b);
    };
    for (std::size_t k = 0; k < s.source.size(); ++k) {
      for (std::size_t d = 0; d < s.source[k].axis.size(); ++d)
        compare(s.source[k].axis[d], s.target[k].axis[d]);
      compare(s.source[k].sum, s.target[k].sum);
      compare(s.source[k].copy, s.target[k].copy);
    }
    q.add(differ);
    bool const same = differ.is_false() || q.check() == z3::unsat;
    q.pop();
    return same;
  }

 public:
  explicit z3_prover(rewrite::vocabulary const& words = rewrite::standard_vocabulary(),
                     proof_options options = {})
      : words_(words), options_(std::move(options)),
        tensor_(c_.uninterpreted_sort("tensor")),
        defined_(c_.function("defined", tensor_, c_.bool_sort())),
        extent_(c_.function("extent", c_.int_sort(), tensor_, c_.int_sort())),
        product_(c_.function("product", c_.int_sort(), c_.int_sort(), c_.int_sort())),
        values_(c_, z3::solver::simple()), shardings_(c_, "QF_LIA") {
    for (axiom const& a : axioms)
      axioms_.emplace_back(a, rewrite::parse_rule(a.text, words_, "axiom " + std::string(a.name)));
    z3::params p(c_);
    p.set("rlimit", options_.values);
    p.set("unsat_core", true);
    p.set("auto_config", false);
    p.set("mbqi", false);      // instances are made where terms match: that is how equations are used
    values_.set(p);
    z3::params q(c_);
    q.set("rlimit", options_.shardings);
    shardings_.set(q);
    assert_axioms();
  }

  /// Is the rule true in every case? Deterministic. O(cases * what Z3 needs, bounded).
  proof prove(rewrite::rule const& r) {
    proof result;
    auto const cases = cases_of(r, words_, options_.cases);
    result.status = cases.empty() ? proof_status::impossible : proof_status::proved;
    known_.clear();
    for (rule_case const& k : cases) {
      ++result.cases;
      if (std::string const half = prove_case(r, k, result.used); !half.empty()) {
        result.status = proof_status::unproved;
        result.open = describe(r, k) + ": " + half;
        break;
      }
    }
    return result;
  }
  /// The same, with conditions on axes added to the rule where it needs them and they are enough.
  proof prove_restricted(rewrite::rule& r) {
    proof result;
    std::set<int> used;
    known_.clear();
    int count = 0;
    auto const s = restricted(r, [&](rule_case const& k) {
      ++count;
      std::string const half = prove_case(r, k, used);
      if (!half.empty() && result.open.empty()) result.open = describe(r, k) + ": " + half;
      return half.empty();
    }, words_, options_.cases);
    result.cases = count;
    if (count == 0) result.status = proof_status::impossible;
    if (!s) return result;
    r = *s;
    return {proof_status::proved, count, used, {}};
  }
  static std::string describe(rewrite::rule const& r, rule_case const& k) {
    using enum rewrite::parameter_kind;
    std::string s;
    for (std::size_t x = 0; x < r.tensors.size(); ++x)
      s += (x ? ", " : "") + r.tensors[x] + " of rank " + std::to_string(k.at.rank[x]);
    for (std::size_t p = 0; p < r.parameters.size(); ++p)
      if (r.parameters[p].kind == axis || r.parameters[p].kind == number)
        s += ", " + r.parameters[p].name + " = " + std::to_string(k.at.parameter[p]);
    return s;
  }
};

}  // namespace tensorpar::prover
