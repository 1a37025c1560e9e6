// tensorpar/prover/cases/sharding_system.hpp - the shardings of both sides of a rule as linear forms, and
// what they require
#pragma once
#include <map>
#include <optional>
#include <set>
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/parallel_inference.hpp>
#include <tensorpar/prover/cases/setting.hpp>

namespace tensorpar::prover {

/// Degrees are products of unknowns and numbers. How often one prime divides such a product is the sum over
/// the unknowns, plus what that prime has in the numbers: a linear form. All that shardings require is that
/// one degree divides or equals another, which holds if and only if it holds for the exponents of every
/// prime. So a statement about all degrees is one about linear forms with unknowns >= 0, and needs no
/// multiplication. It must hold for each prime of the numbers, and for all others, to which numbers are
/// nothing.
struct degree_form {
  std::vector<int> coefficient;          // by unknown; missing ones are zero
  std::map<i64, int> number = {};        // exponents of primes; none is zero
  bool zero() const {
    for (int c : coefficient) if (c) return false;
    return number.empty();
  }
  int at(std::size_t i) const { return i < coefficient.size() ? coefficient[i] : 0; }
  /// How often this prime divides the number. `any_other_prime`: never.
  int of_number(i64 prime) const {
    auto const it = number.find(prime);
    return it == number.end() ? 0 : it->second;
  }
  static constexpr i64 any_other_prime = 0;
  friend degree_form operator+(degree_form a, degree_form const& b) { return std::move(a.add(b, 1)); }
  friend degree_form operator-(degree_form a, degree_form const& b) { return std::move(a.add(b, -1)); }
  friend bool operator==(degree_form const& a, degree_form const& b) { return (a - b).zero(); }

 private:
  degree_form& add(degree_form const& b, int sign) {
    if (coefficient.size() < b.coefficient.size()) coefficient.resize(b.coefficient.size(), 0);
    for (std::size_t i = 0; i < b.coefficient.size(); ++i) coefficient[i] += sign * b.coefficient[i];
    for (auto const& [prime, times] : b.number)
      if (int& mine = number[prime]; (mine += sign * times) == 0) number.erase(prime);
    return *this;
  }
};

/// A number as a form. nullopt: it is below 1 or above 2^20, more than any machine has devices. O(sqrt(n)).
inline std::optional<degree_form> number_form(i64 n) {
  if (n < 1 || n > i64{1} << 20) return std::nullopt;
  degree_form d;
  for (i64 p = 2; p * p <= n; ++p)
    for (; n % p == 0; n /= p) ++d.number[p];
  if (n > 1) ++d.number[n];
  return d;
}

/// form == 0, or form >= 0.
struct degree_requirement {
  degree_form form;
  bool equal = false;
  bool of_target = false;
  char const* why = "";
};

/// Both sides of a rule in one setting.
struct sharding_system {
  // what each unknown stands for; axes are numbers here
  std::vector<rewrite::rule_factor> unknowns;
  std::vector<degree_requirement> requirements;
  std::vector<ir::degrees_of<degree_form>> source, target;    // of the outputs
  // of all results: by side, node and slot
  std::vector<std::vector<ir::degrees_of<degree_form>>> made[2];

  /// The primes for which numbers count, ascending. What is required of the others is the same for all of
  /// them.
  std::set<i64> primes() const {
    std::set<i64> all;
    auto add = [&](degree_form const& f) { for (auto const& [prime, times] : f.number) all.insert(prime); };
    for (degree_requirement const& q : requirements) add(q.form);
    for (auto const* side : {&source, &target})
      for (auto const& y : *side) {
        for (degree_form const& f : y.axis) add(f);
        add(y.sum);
        add(y.copy);
      }
    return all;
  }
};

/// Degrees as linear forms (see `degree_algebra`). A loop that has units of its own (whole heads, whole
/// groups) is bounded by the parameter that counts them: `units` has its form by the loop's letter.
class valued_degrees {
  sharding_system& system_;
  bool of_target_;
  std::map<char, degree_form> units_;

 public:
  using value = degree_form;
  valued_degrees(sharding_system& s, bool of_target, std::map<char, degree_form> units = {})
      : system_(s), of_target_(of_target), units_(std::move(units)) {}
  degree_form one() const { return {}; }
  bool is_one(degree_form const& x) const { return x.zero(); }
  degree_form times(degree_form const& a, degree_form const& b) const { return a + b; }
  degree_form over(degree_form const& a, degree_form const& b, char const* why) {
    require(a - b, false, why);
    return a - b;
  }
  void same(degree_form const& a, degree_form const& b, char const* why) { require(a - b, true, why); }
  void within(degree_form const& d, ir::node_loop const& l) {
    if (l.units == 1) require(d, true, "this loop cannot be split");
    else if (auto const it = units_.find(l.letter); it != units_.end())
      require(it->second - d, false, "the loop has fewer units");
  }

 private:
  void require(degree_form f, bool equal, char const* why) {
    if (!f.zero()) system_.requirements.push_back({std::move(f), equal, of_target_, why});
  }
};

namespace detail {

class sharding_builder {
  rewrite::rule const& r_;
  rule_setting const& at_;
  std::vector<shape> const& tensors_;
  sharding_system s_;
  double largest_ = 1;                   // product of all numbers

  degree_form unknown(rewrite::rule_factor const& f) {
    std::size_t i = 0;
    while (i < s_.unknowns.size() && !(s_.unknowns[i] == f)) ++i;
    if (i == s_.unknowns.size()) s_.unknowns.push_back(f);
    degree_form d;
    d.coefficient.assign(i + 1, 0);
    d.coefficient[i] = 1;
    return d;
  }
  degree_form parameter(int p) { return unknown({rewrite::term_kind::parameter, p, 0, -1}); }
  /// The product of a number and of parameters that an attribute is. nullopt: the number is no degree, or it
  /// is a product of extents.
  std::optional<degree_form> attribute(rewrite::rule_term const& t) {
    std::optional<degree_form> d = number_form(t.number);
    for (rewrite::rule_factor const& f : t.factors) {
      if (!d || f.kind != rewrite::term_kind::parameter) return std::nullopt;
      d = *d + parameter(f.index);
    }
    return d;
  }
  ir::degrees_of<degree_form> tensor(int x) {
    ir::degrees_of<degree_form> d;
    for (int a = 0; a < at_.rank[idx(x)]; ++a)
      d.axis.push_back(unknown({rewrite::term_kind::degree, x, a, -1}));
    if (!at_.integer[idx(x)] && sums_[idx(x)])
      d.sum = unknown({rewrite::term_kind::sums, x, 0, -1});
    d.copy = unknown({rewrite::term_kind::copies, x, 0, -1});
    return d;
  }
  std::vector<bool> const& sums_;

  bool side(rewrite::pattern_graph const& g, typed_pattern const& t, bool target,
            std::vector<ir::degrees_of<degree_form>>& outputs) {
    std::vector<std::vector<ir::degrees_of<degree_form>>> have;
    auto of = [&](rewrite::pattern_value v) { return v.node < 0 ? tensor(v.slot)
                                             : have[idx(v.node)][idx(v.slot)]; };
    for (std::size_t i = 0; i < g.nodes.size(); ++i) {
      rewrite::pattern_node const& n = g.nodes[i];
      op::any_op const& o = t.op[i];
      std::vector<ir::degrees_of<degree_form>> in;
      std::vector<shape> types;
      for (rewrite::pattern_value v : n.in) { in.push_back(of(v)); types.push_back(t.at(v, tensors_)); }
      if (is_parallel(o)) {
        valued_degrees a(s_, target);
        auto const degree = attribute(n.attr.back());
        if (!degree) return false;
        int axis = 0;
        if (n.attr.size() == 2) {
          auto const x = term_value(n.attr[0], false, tensors_, at_.parameter);
          axis = static_cast<int>(*x < 0 ? *x + types[0].rank : *x);
        }
        if ((largest_ *= static_cast<double>(n.attr.back().number)) > 0x1p40) return false;
        have.push_back({ir::infer_parallel(a, *o.op, axis, *degree, in[0])});
        continue;
      }
      ir::iteration_space const space = ir::space_of(o, types, t.value[i]);
      std::vector<int> ranks;
      for (shape const& y : t.value[i]) ranks.push_back(y.rank);
      int const activations = o.op->arity < 0 ? static_cast<int>(types.size()) : o.op->arity;
      // of a loop: the attribute with which its units change, where it has a parameter
      std::map<char, degree_form> units;
      for (std::size_t k = 0; k < n.attr.size(); ++k) {
        if (n.attr[k].factors.empty() || rewrite::role_of(*o.op,
            static_cast<int>(k)) != rewrite::attr_role::number) continue;
        op::any_op more = o;
        more.attr[k] += more.attr[k];
        for (ir::node_loop const& l : space.loops) {
          i64 const now = o.op->units(o.attr, l.letter, {types.data(), activations});
          if (now == 0 || o.op->units(more.attr, l.letter, {types.data(), activations}) == now) continue;
          // else one requirement less
          if (auto count = attribute(n.attr[k])) units[l.letter] = std::move(*count);
        }
      }
      valued_degrees a(s_, target, std::move(units));
      have.push_back(ir::infer_degrees(a, o, space, in, ranks));
    }
    for (rewrite::pattern_value v : g.outputs) outputs.push_back(of(v));
    s_.made[target] = std::move(have);
    return true;
  }

 public:
  sharding_builder(rewrite::rule const& r, rule_setting const& at, std::vector<shape> const& tensors,
                 std::vector<bool> const& sums)
      : r_(r), at_(at), tensors_(tensors), sums_(sums) {}
  std::optional<sharding_system> build(typed_pattern const& source, typed_pattern const& target) {
    if (!side(r_.source, source, false, s_.source) || !side(r_.target, target, true, s_.target))
      return std::nullopt;
    return std::move(s_);
  }
};

}  // namespace detail

/// The shardings of a rule in one setting. `tensors`: shapes with which both sides were typed; `sums`: which
/// tensor variables may come in partial sums (a product takes them through one operand at a time, so the case
/// is chosen beforehand).
/// nullopt: a degree is no product of parameters and of a number in [1, 2^20], or such numbers make more
/// parts than can be counted.
inline std::optional<sharding_system> shardings_of(rewrite::rule const& r, rule_setting const& at,
                                               std::vector<shape> const& tensors, typed_pattern const& source,
                                               typed_pattern const& target, std::vector<bool> const& sums) {
  return detail::sharding_builder(r, at, tensors, sums).build(source, target);
}

}  // namespace tensorpar::prover
