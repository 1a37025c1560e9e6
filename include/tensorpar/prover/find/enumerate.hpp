// tensorpar/prover/find/enumerate.hpp - every small graph over a family, and which of them compute the same
#pragma once
#include <algorithm>
#include <random>
#include <tensorpar/core/index.hpp>
#include <tensorpar/prover/find/family.hpp>
#include <tensorpar/prover/values/evaluate.hpp>
#include <tensorpar/prover/values/field_numbers.hpp>
#include <tensorpar/prover/cases/setting.hpp>
#include <tensorpar/ir/parallel_inference.hpp>
#include <unordered_map>

namespace tensorpar::prover {

/// A term: a tensor variable (step -1, `in[0]` is its number) or a step applied to earlier terms. Sub-terms
/// are shared.
struct family_term {
  static constexpr int most = 5;
  int step = -1;
  int in[3] = {-1, -1, -1};
  signed char operators = 0;             // distinct applications in it
  int part[most] = {-1, -1, -1, -1, -1}; // those
};

/// Two terms with one fingerprint: they agreed in every sample. `left` was found first and is no larger.
struct term_pair {
  int left, right;
};

struct enumeration {
  std::vector<family_term> terms;
  std::vector<term_pair> pairs;
  i64 tried = 0, valid = 0;              // applications looked at; those that make sense
};

namespace detail {

/// Exponents of degrees as plain numbers drawn at random: equal forms agree, different ones differ but for
/// bad luck.
struct drawn_degrees {
  using value = i64;
  bool ok = true;
  i64 one() const { return 0; }
  bool is_one(i64 x) const { return x == 0; }
  i64 times(i64 a, i64 b) const { return a + b; }
  i64 over(i64 a, i64 b, char const*) {
    ok = ok && a >= b;
    return a - b;
  }
  void same(i64 a, i64 b, char const*) { ok = ok && a == b; }
  void within(i64 d, ir::node_loop const& l) { ok = ok && (l.units > 1 || d == 0); }
};

class enumerator {
  using T = prime_field;
  struct worth {                         // of one term
    std::vector<elements<T>> value;      // by sample
    std::vector<ir::degrees_of<i64>> sharding; // by sample
  };
  family const& f_;
  rewrite::vocabulary const& words_;
  int samples_;
  std::vector<std::vector<i64>> parameter_;   // by sample
  std::vector<std::vector<shape>> tensors_;   // the family's, by sample
  std::vector<i64> degree_;                   // of degree parameters: exponents
  std::vector<worth> worth_;                  // by term; let go for the largest
  enumeration e_;
  std::unordered_map<u64, int> first_;        // fingerprint -> term; looked up only, never walked
  field_numbers a_;

  static u64 fingerprint(worth const& w) {
    core::hasher h;
    for (auto const& d : w.sharding) {
      for (i64 k : d.axis) h.add(k);
      h.add(d.sum).add(d.copy);
    }
    for (auto const& x : w.value) {
      h.add(x.type.rank).add(x.type.type);
      for (int d = 0; d < x.type.rank; ++d) h.add(x.type.d[d].n);
      for (T v : x.data) h.add(v.v);
      for (i64 i : x.index) h.add(i);
    }
    return h.value();
  }

  /// nullopt: the step does not apply.
  bool apply(family_step const& s, int const* in, worth& out) {
    out.value.clear();
    out.sharding.clear();
    auto const n = idx(s.operands);
    auto operand = [&](std::size_t k) -> worth const& { return worth_[idx(in[k])]; };
    for (std::size_t m = 0; m < idx(samples_); ++m) {
      std::vector<shape> types;
      std::vector<ir::degrees_of<i64>> shardings;
      for (std::size_t k = 0; k < n; ++k) {
        types.push_back(operand(k).value[m].type);
        shardings.push_back(operand(k).sharding[m]);
      }
      auto const& parameter = parameter_[m];
      op::op_info const* o = s.node.op;
      if (!o)
        o = functions_of(
            words_)[idx(parameter[idx(s.node.function)])];
      auto const typed = type_operator(*o, s.node, types, tensors_[m], parameter);
      auto const slot = idx(s.slot);
      if (!typed || typed->out.size() <= slot) return false;
      op::any_op const& op = typed->op;
      std::vector<shape> const& result = typed->out;
      drawn_degrees d;
      if (s.shardings) {
        i64 k = 0;
        for (rewrite::rule_factor const& f : s.node.attr.back().factors)
          k += degree_[idx(f.index)];
        out.sharding.push_back(
            ir::infer_parallel(d, *o, o->attrs == 2 ? static_cast<int>(op.attr[0]) : 0, k, shardings[0]));
        if (!d.ok) return false;
        out.value.push_back(operand(0).value[m]);
        continue;
      }
      std::vector<int> ranks;
      for (shape const& y : result) ranks.push_back(y.rank);
      out.sharding.push_back(
          std::move(ir::infer_degrees(d, op, ir::space_of(op, types, result), shardings, ranks)[slot]));
      if (!d.ok) return false;
      std::vector<elements<T>> operands;
      for (std::size_t k = 0; k < n; ++k) operands.push_back(operand(k).value[m]);
      auto r = evaluate(a_, op, operands, result);
      if (r.empty())
        throw error("it is not known what " + op::spell(op) + " computes", "family " + f_.name,
                    "an operator that evaluate knows");
      out.value.push_back(std::move(r[slot]));
    }
    return true;
  }

  static bool contains(family_term const& t, int x) {
    for (int i = 0; i < t.operators; ++i) if (t.part[i] == x) return true;
    return false;
  }
  /// Adds the applications of operand k to those of the operands before; false if they are too many for a
  /// step of `most` in all.
  bool gather(family_term& t, int k, int most) const {
    family_term const& u = e_.terms[idx(t.in[k])];
    bool const once = f_.steps[idx(t.step)].once;
    for (int i = 0; i < u.operators; ++i)
      if (!contains(t, u.part[i])) {
        if (t.operators + 1 >= most || (once && e_.terms[idx(u.part[i])].step == t.step))
          return false;
        t.part[static_cast<int>(t.operators++)] = u.part[i];
      }
    return true;
  }

  void variables(std::mt19937& draw) {
    static constexpr i64 primes[] = {2, 3, 5, 7};
    std::map<char, std::vector<i64>> extents;
    std::map<char, i64> split;
    for (family_tensor const& t : f_.tensors)
      for (std::string const& axis : t.axes)
        for (char c : axis)
          if (!split.count(c)) {
            split[c] = c >= 'A' && c <= 'Z' ? 0 : 1000 + static_cast<i64>(draw() % 1000000);
            for (int m = 0; m < samples_; ++m) extents[c].push_back(primes[(draw() >> 4) % 2]);
          }
    for (int m = 0; m < samples_; ++m) {
      std::vector<i64> p;
      for (family_parameter const& q : f_.parameters) {
        i64 v = 1;
        if (!q.values.empty()) v = q.values[idx(m) % q.values.size()];
        else if (q.what.kind == rewrite::parameter_kind::function)
          v = static_cast<i64>(p.size()) % static_cast<i64>(functions_of(words_).size());
        else if (q.what.kind == rewrite::parameter_kind::number)
          v = std::bit_cast<i64>(static_cast<double>(2 + draw() % 1000));
        p.push_back(v);
      }
      parameter_.push_back(std::move(p));
    }
    for (family_parameter const& q : f_.parameters)
      degree_.push_back(q.what.kind == rewrite::parameter_kind::degree ? 10 + static_cast<i64>(draw() % 300)
                        : 0);
    tensors_.resize(idx(samples_));
    i64 const replicas = 5000 + static_cast<i64>(draw() % 1000),
              sums = 3000 + static_cast<i64>(draw() % 1000);
    i64 counted = 0;
    for (i64 k : degree_) if (counted == 0) counted = k;
    for (std::size_t x = 0; x < f_.tensors.size(); ++x) {
      family_tensor const& t = f_.tensors[x];
      family_term term;
      term.in[0] = static_cast<int>(x);
      worth w;
      ir::degrees_of<i64> sharding{{}, t.summed ? sums : t.counted ? counted : 0, replicas};
      for (auto const& [c, k] : split)
        if (std::none_of(t.axes.begin(), t.axes.end(),
                         [c = c](std::string const& axis) { return axis.find(c) != axis.npos; }))
          sharding.copy += k;
      for (std::string const& axis : t.axes) {
        bool const one = axis.find_first_not_of(axis[0]) == axis.npos;
        sharding.axis.push_back(one ? split[axis[0]] : 0);
      }
      if (t.beside_sums) sharding.copy += sums;
      w.sharding.assign(idx(samples_), sharding);
      for (int m = 0; m < samples_; ++m) {
        shape type{};
        type.type = t.integer ? dtype::i64 : dtype::f32;
        for (std::string const& axis : t.axes) {
          i64 n = 0;
          for (char c : axis) n += extents[c][idx(m)];
          type.d[type.rank++] = dim(n);
        }
        tensors_[idx(m)].push_back(type);
        w.value.push_back(random_elements(type, draw, 4));
      }
      first_.emplace(fingerprint(w), static_cast<int>(x));
      e_.terms.push_back(term);
      worth_.push_back(std::move(w));
    }
  }

 public:
  enumerator(family const& f, rewrite::vocabulary const& words, int samples)
      : f_(f), words_(words), samples_(samples) {}
  enumeration run(u64 seed) {
    std::mt19937 draw(static_cast<std::uint32_t>(seed));
    variables(draw);
    for (int size = 1; size <= f_.max_operators; ++size) {
      int const known = static_cast<int>(e_.terms.size());
      worth w;
      for (std::size_t s = 0; s < f_.steps.size(); ++s) {
        family_step const& step = f_.steps[s];
        family_term t;
        t.step = static_cast<int>(s);
        auto operands = [&](auto& self, int k) -> void {
          if (k == step.operands) {
            if (t.operators + 1 != size) return;
            ++e_.tried;
            if (!apply(step, t.in, w)) return;
            ++e_.valid;
            int const id = static_cast<int>(e_.terms.size());
            auto const [it, fresh] = first_.emplace(fingerprint(w), id);
            family_term mine = t;
            mine.part[static_cast<int>(mine.operators++)] = id;
            e_.terms.push_back(mine);
            if (!fresh && e_.terms[idx(it->second)].operators <= f_.min_side)
              e_.pairs.push_back({it->second, id});
            if (size < f_.max_operators && fresh) worth_.push_back(w);
            else worth_.emplace_back();
            return;
          }
          int const from = step.commutative && k == 1 ? t.in[0] : 0;
          for (int x = from; x < known; ++x) {
            if (worth_[idx(x)].value.empty()) continue;   // an equal one stands for it
            t.in[k] = x;
            signed char const before = t.operators;
            if (gather(t, k, size)) self(self, k + 1);
            t.operators = before;
          }
        };
        operands(operands, 0);
      }
    }
    return std::move(e_);
  }
};

}  // namespace detail

/// Every term of a family up to its number of operators, by sharing; a term equal to an earlier one is paired
/// with it and not built upon. Equal: the same values, shapes and shardings in every sample, of random
/// extents, axes, degrees and numbers. Deterministic for a seed. O(steps * terms^operands).
inline enumeration enumerate(family const& f, u64 seed,
                             rewrite::vocabulary const& words = rewrite::standard_vocabulary(),
                             int samples = 2) {
  return detail::enumerator(f, words, samples).run(seed);
}

}  // namespace tensorpar::prover
