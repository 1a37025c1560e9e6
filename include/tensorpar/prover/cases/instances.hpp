// tensorpar/prover/cases/instances.hpp - rules with everything filled in: ranks, extents, degrees, at random
// or all of them
#pragma once
#include <random>
#include <tensorpar/core/index.hpp>
#include <tensorpar/prover/cases/drawn_numbers.hpp>
#include <tensorpar/prover/cases/exponents.hpp>

namespace tensorpar::prover {

/// A rule in one setting with all that follows from it.
struct rule_case {
  rule_setting at;
  std::vector<shape> tensors;            // shapes with which both sides were typed
  sharding_system shardings;
  detail::extent_classes extents;
};
/// A rule with everything filled in.
struct rule_instance {
  rule_setting at;
  std::vector<ir::parallel_shape> tensors;
  typed_pattern source, target;
};

namespace detail {

/// Which tensor variables reach this operand of one of these operators.
inline std::vector<bool> reaching(rewrite::rule const& r, std::initializer_list<std::string_view> operators,
                                  std::size_t operand) {
  std::vector<bool> is(r.tensors.size(), false);
  for (rewrite::pattern_graph const* g : {&r.source, &r.target}) {
    std::vector<bool> node(g->nodes.size(), false);
    for (std::size_t i = g->nodes.size(); i-- > 0;) {
      rewrite::pattern_node const& n = g->nodes[i];
      bool named = false;
      for (std::string_view o : operators) named = named || (n.op && n.op->name == o);
      for (std::size_t k = 0; k < n.in.size(); ++k) {
        if (!(named ? k == operand : node[i])) continue;
        if (n.in[k].node < 0) is[idx(n.in[k].slot)] = true;
        else node[idx(n.in[k].node)] = true;
      }
    }
  }
  return is;
}

inline bool holds_on_axes(rewrite::rule const& r, rule_setting const& at, std::vector<shape> const& tensors) {
  for (rewrite::rule_condition const& c : r.conditions) {
    if (c.kind != rewrite::condition_kind::different && c.kind != rewrite::condition_kind::inner) continue;
    auto const a = term_value(c.a, false, tensors, at.parameter);
    if (c.kind == rewrite::condition_kind::inner) {
      i64 const rank = at.rank[idx(c.tensor)];
      if ((*a < 0 ? *a + rank : *a) >= rank - c.b.number) return false;
    } else if (*a == *term_value(c.b, false, tensors, at.parameter)) {
      return false;
    }
  }
  return true;
}

/// The form of a term of degrees and counts; nullopt if it is about something else.
inline std::optional<degree_form> form_of(rewrite::rule_term const& t, sharding_system const& s,
                                          rule_setting const& at) {
  degree_form d;
  for (rewrite::rule_factor f : t.factors) {
    if (f.kind == rewrite::term_kind::extent) return std::nullopt;
    if (f.kind == rewrite::term_kind::degree) {
      int const a = axis_value(f, at.rank[idx(f.index)], at.parameter);
      if (a < 0) return std::nullopt;
      f = {rewrite::term_kind::degree, f.index, a, -1};
    }
    std::size_t i = 0;
    while (i < s.unknowns.size() && !(s.unknowns[i] == f)) ++i;
    if (i == s.unknowns.size()) {
      if (f.kind == rewrite::term_kind::sums) continue;   // a variable without partial sums in this case
      return std::nullopt;
    }
    degree_form one;
    one.coefficient.assign(i + 1, 0);
    one.coefficient[i] = 1;
    d = d + one;
  }
  auto const n = number_form(t.number);
  return n ? std::optional(d + *n) : std::nullopt;
}
/// Conditions on degrees, as requirements.
inline void add_conditions(rewrite::rule const& r, sharding_system& s, rule_setting const& at) {
  for (rewrite::rule_condition const& c : r.conditions) {
    if (c.kind != rewrite::condition_kind::divides && c.kind != rewrite::condition_kind::equal) continue;
    auto const a = form_of(c.a, s, at), b = form_of(c.b, s, at);
    if (a && b)
      s.requirements.push_back({*b - *a, c.kind == rewrite::condition_kind::equal, false, "a condition"});
  }
}

/// Are there partial sums that some requirement rules out? They belong to a case with fewer.
inline bool has_idle_sums(sharding_system const& s) {
  bool idle = false;
  for (degree_requirement const& q : s.requirements) {
    int lone = -1, count = 0;
    for (std::size_t i = 0; i < s.unknowns.size(); ++i)
      if (q.form.at(i)) {
        lone = static_cast<int>(i);
        ++count;
      }
    idle = idle ||
           (q.equal && count == 1 && s.unknowns[idx(lone)].kind == rewrite::term_kind::sums);
  }
  return idle;
}
/// Do some degrees above one fit? A rule that shards nothing, whatever its degrees, says nothing in this
/// case; nor does one whose numbers fit nothing.
inline bool fits_some_degrees(sharding_system const& s) {
  std::set<i64> const primes = s.primes();
  bool some =
      !primes.empty() || detail::exponent_search(s, 1, 6, 400, degree_form::any_other_prime).any();
  for (i64 prime : primes)
    some = some &&
           detail::exponent_search(s, 0, 6 + 2 * detail::max_of_numbers(s, prime), 400, prime).any();
  return some;
}

}  // namespace detail

/// The cases of a rule in which both sides can be typed and sharded by degrees above one. That is every
/// choice of ranks up to the limit, axes, and numbers that decide shapes, and of the tensors that come in
/// partial sums. In a fixed order; at most `limits.most`. O(choices * size of the rule); a rule of three
/// tensors and two axes has a few thousand.
inline std::vector<rule_case> cases_of(rewrite::rule const& r,
                                       rewrite::vocabulary const& words = rewrite::standard_vocabulary(),
                                       case_limits limits = {}) {
  std::vector<rule_case> all;
  rule_setting at;
  at.rank.assign(r.tensors.size(), 1);
  at.integer = detail::reaching(r, {"embedding", "embedding_bag"}, 0);
  // of one element: what keeps its size keeps it then
  std::vector<bool> const filter = detail::reaching(r, {"conv2d"}, 1);
  at.parameter.assign(r.parameters.size(), 1);
  std::vector<std::vector<i64>> const choices = detail::parameter_choices(r, limits);
  auto typed = [&](unsigned doubled) {
    std::vector<shape> tensors;
    for (std::size_t x = 0; x < r.tensors.size(); ++x) {
      shape s{};
      s.type = at.integer[x] ? dtype::i64 : dtype::f32;
      for (int d = 0; d < at.rank[x]; ++d, doubled >>= 1)
        s.d[s.rank++] = dim(filter[x] && d >= 2 ? 1 : doubled & 1 ? 24 : 12);
      tensors.push_back(s);
    }
    if (!detail::holds_on_axes(r, at, tensors)) return;
    auto const source = detail::type_pattern(r.source, tensors, at.parameter, words);
    if (!source) return;
    auto const target = detail::type_pattern(r.target, tensors, at.parameter, words);
    if (!target) return;
    for (std::size_t k = 0; k < r.source.outputs.size(); ++k)
      if (source->at(r.source.outputs[k], tensors).rank != target->at(r.target.outputs[k], tensors).rank)
        return;
    detail::extent_classes const extents(r, tensors, *source, *target);
    for (unsigned sums = 0; sums < 1u << r.tensors.size() && static_cast<int>(all.size()) < limits.most;
         ++sums) {
      std::vector<bool> may(r.tensors.size());
      bool sensible = true;
      for (std::size_t x = 0; x < may.size(); ++x) {
        may[x] = sums >> x & 1;
        sensible = sensible && !(may[x] && at.integer[x]);
      }
      if (!sensible) continue;
      auto s = shardings_of(r, at, tensors, *source, *target, may);
      if (!s) return;
      detail::add_conditions(r, *s, at);
      if (detail::has_idle_sums(*s) || !detail::fits_some_degrees(*s)) continue;
      all.push_back({at, tensors, std::move(*s), extents});
    }
  };
  // Extents are all equal; where nothing fits then, every axis is tried with twice as much, as where two are
  // joined.
  bool unequal = false;
  auto over_parameters = [&](auto& self, std::size_t p) -> void {
    if (static_cast<int>(all.size()) >= limits.most) return;
    if (p == choices.size()) {
      int axes = 0;
      for (int k : at.rank) axes += k;
      std::size_t const before = all.size();
      for (unsigned d = unequal ? 1 : 0; d < (unequal && axes < 9 ? 1u << axes : 1) && all.size() == before;
           ++d)
        typed(d);
      return;
    }
    for (i64 c : choices[p]) { at.parameter[p] = c; self(self, p + 1); }
  };
  auto over_ranks = [&](auto& self, std::size_t x) -> void {
    if (x == at.rank.size()) return over_parameters(over_parameters, 0);
    for (int k = 1; k <= limits.max_rank; ++k) { at.rank[x] = k; self(self, x + 1); }
  };
  over_ranks(over_ranks, 0);
  if (all.empty()) {
    unequal = true;
    over_ranks(over_ranks, 0);
  }
  return all;
}

namespace detail {
/// Random degrees for the unknowns of a case, most of {1, 2, 3, 4, 6}. What is above `most`, which numbers
/// raise, is too large.
struct degrees_of_case {
  std::vector<i64> of;                   // by unknown
  i64 most = 6;
};
/// nullopt: none were found.
inline std::optional<degrees_of_case> random_degrees(sharding_system const& s, auto& draw) {
  degrees_of_case d{std::vector<i64>(s.unknowns.size(), 1)};
  auto& [degree, most] = d;
  auto times = [&](i64 prime, std::vector<int> const& exponent) {
    for (std::size_t u = 0; u < degree.size(); ++u)
      for (int n = exponent[u]; n > 0 && degree[u] <= most; --n) degree[u] *= prime;
  };
  std::set<i64> primes = s.primes();
  for (i64 prime : primes)
    for (int n = max_of_numbers(s, prime); n > 0 && most < 600; --n) most *= prime;
  int const more2 = max_of_numbers(s, 2), more3 = max_of_numbers(s, 3);
  auto const two = random_exponents(s, draw() % 4 ? 1 : 0, 2 + more2, draw, 400, 2);
  auto const three = draw() % 2 || primes.count(3)
                         ? random_exponents(s, draw() % 2 ? 1 : 0, 1 + more3, draw, 400, 3)
                         : std::nullopt;
  if (!two || (!three && primes.count(3))) return std::nullopt;
  times(2, *two);
  if (three) times(3, *three);
  for (i64 prime : primes) {
    if (prime < 5) continue;
    auto const more = random_exponents(s, 0, max_of_numbers(s, prime), draw, 400, prime);
    if (!more) return std::nullopt;
    times(prime, *more);
  }
  return d;
}
/// The number that a form is with these degrees for its unknowns. Precondition: it is a whole one.
inline i64 value_of(degree_form const& f, std::vector<i64> const& degree) {
  i64 up = 1, down = 1;
  for (auto const& [prime, n] : f.number)
    for (int k = n; k; k += k > 0 ? -1 : 1) (k > 0 ? up : down) *= prime;
  for (std::size_t u = 0; u < degree.size(); ++u)
    for (int k = f.at(u); k; k += k > 0 ? -1 : 1) (k > 0 ? up : down) *= degree[u];
  return up / down;
}
/// Do the conditions on degrees, copies, sums and extents hold? (`cases_of` knows those on axes.)
inline bool holds_on_degrees(rewrite::rule const& r, rule_instance const& g) {
  auto value = [&](rewrite::rule_term const& t) -> std::optional<i64> {
    i64 n = t.number;
    for (rewrite::rule_factor const& f : t.factors) {
      i64 times = 1;
      if (f.kind == rewrite::term_kind::parameter) {
        times = g.at.parameter[idx(f.index)];
      } else {
        ir::parallel_shape const& s = g.tensors[idx(f.index)];
        bool const along = f.kind == rewrite::term_kind::extent || f.kind == rewrite::term_kind::degree;
        int const a = along ? axis_value(f, s.type.rank, g.at.parameter) : 0;
        if (a < 0) return std::nullopt;
        times = f.kind == rewrite::term_kind::extent   ? s.type.d[a].n
                : along                       ? s.degree[a]
                : f.kind == rewrite::term_kind::copies ? s.copy
                                              : s.sum;
      }
      if (__builtin_mul_overflow(n, times, &n)) return std::nullopt;
    }
    return n;
  };
  for (rewrite::rule_condition const& c : r.conditions) {
    if (c.kind != rewrite::condition_kind::divides && c.kind != rewrite::condition_kind::equal) continue;
    auto const a = value(c.a), b = value(c.b);
    if (!a || !b || (c.kind == rewrite::condition_kind::equal ? *a != *b : *a == 0 || *b % *a != 0))
      return false;
  }
  return true;
}
}  // namespace detail

/// The rule in this case with random degrees, extents and numbers; nullopt where the draw was not valid,
/// against the rule's conditions, or too large (more than `max_elements` in a tensor). Both sides are typed.
inline std::optional<rule_instance> random_instance(rewrite::rule const& r, rule_case const& c, auto& draw,
                                                    rewrite::vocabulary const& words =
                                                        rewrite::standard_vocabulary(),
                                                    i64 max_elements = 600) {
  auto const drawn = detail::random_degrees(c.shardings, draw);
  if (!drawn) return std::nullopt;
  std::vector<i64> const& degree = drawn->of;
  rule_instance g;
  g.at = c.at;
  for (std::size_t p = 0; p < r.parameters.size(); ++p) {
    g.at.parameter[p] = detail::drawn_number(c.at.parameter[p], draw);
    if (r.parameters[p].kind == rewrite::parameter_kind::function)
      g.at.parameter[p] = static_cast<i64>(draw() % 64);
  }
  for (shape s : c.tensors) g.tensors.emplace_back(s);
  for (std::size_t u = 0; u < c.shardings.unknowns.size(); ++u) {
    i64 const k = degree[u];
    if (k > drawn->most) return std::nullopt;
    rewrite::rule_factor const& f = c.shardings.unknowns[u];
    if (f.kind == rewrite::term_kind::parameter) {
      g.at.parameter[idx(f.index)] = k;
      continue;
    }
    ir::parallel_shape& s = g.tensors[idx(f.index)];
    if (f.kind == rewrite::term_kind::degree) s.degree[f.axis] = k;
    else (f.kind == rewrite::term_kind::copies ? s.copy : s.sum) = k;
  }
  // every axis a multiple of all degrees in which it is split somewhere
  std::vector<i64> extent(idx(c.extents.count()), 1);
  for (i64& e : extent) e = 1 + static_cast<i64>(draw() % 3);
  auto needs = [&](int axis_class, i64 k) {
    i64& e = extent[idx(axis_class)];
    e = e / ir::detail::gcd(e, k) * k;
  };
  for (std::size_t x = 0; x < g.tensors.size(); ++x)
    for (int d = 0; d < g.tensors[x].type.rank; ++d)
      needs(c.extents.of(static_cast<int>(x), d), g.tensors[x].degree[d]);
  for (int side = 0; side < 2; ++side)
    for (std::size_t v = 0; v < c.shardings.made[side].size(); ++v)
      for (std::size_t slot = 0; slot < c.shardings.made[side][v].size(); ++slot) {
        auto const classes = c.extents.of_node(side, static_cast<int>(v), static_cast<int>(slot));
        for (std::size_t d = 0; d < classes.size(); ++d) {
          i64 const k = detail::value_of(c.shardings.made[side][v][slot].axis[d], degree);
          if (k > 1) needs(classes[d], k);
        }
      }
  std::vector<shape> types;
  for (std::size_t x = 0; x < g.tensors.size(); ++x) {
    shape& s = g.tensors[x].type;
    for (int d = 0; d < s.rank; ++d)
      s.d[d] = dim(extent[idx(c.extents.of(static_cast<int>(x), d))]);
    if (s.elements() > max_elements) return std::nullopt;
    types.push_back(s);
  }
  if (!detail::holds_on_degrees(r, g)) return std::nullopt;
  auto source = detail::type_pattern(r.source, types, g.at.parameter, words);
  if (!source) return std::nullopt;
  auto target = detail::type_pattern(r.target, types, g.at.parameter, words);
  if (!target) return std::nullopt;
  g.source = std::move(*source);
  g.target = std::move(*target);
  return g;
}

}  // namespace tensorpar::prover
