// tensorpar/search/elimination.hpp - the cheapest choice for every operator where costs simply add up, by eliminating operators
#pragma once
#include <algorithm>
#include <map>
#include <tensorpar/search/evaluate.hpp>

namespace tensorpar {

struct elimination_limits {
  double work = 2e7;              // table cells times choices that eliminating one operator may take; beyond, its costs are split up
};

struct additive_optimum {
  assignment choices;
  double value = 0;               // a lower bound on the sum of any assignment; the optimum where `exact`
  bool exact = true;              // nothing was split up
  int tables = 0;                 // tables computed; operators beyond those were answered from memory
};

namespace detail {

/// Minimises sum of unary[set of v][choice of v] + sum of pair costs. Costs live in tables over classes of choices; eliminating an operator
/// (Bertele and Brioschi 1972, "bucket elimination" in Dechter 1999) joins the tables it occurs in to one over its neighbours. A table is
/// remembered under all that it was made of, compared in full, so equal blocks of a network are joined once, and a chain of n
/// equal blocks takes about log n min-plus products.
class eliminator {
  struct argument { int op, classes; };
  struct factor { int table; std::vector<argument> args; };      // args by ascending operator, the first one the slowest digit
  struct table { std::vector<int> dims; std::vector<double> v; };
  struct step { int op; std::vector<int> factors; };

  mapping_problem const& p_;
  std::vector<std::vector<double>> const& unary_;
  elimination_limits limits_;
  std::vector<choice_classes> classes_;
  std::map<std::vector<int>, int> class_ids_;
  std::map<std::pair<int, int>, int> refined_;
  std::vector<table> tables_;
  std::vector<factor> factors_;
  std::vector<std::vector<int>> of_op_;                          // live factors
  std::vector<char> gone_;
  struct product { int table; std::vector<int> classes; };
  std::map<std::vector<int>, product> known_;
  std::vector<step> steps_;
  double constant_ = 0;
  bool exact_ = true;

  static std::size_t at(int i) { return detail::idx(i); }
  std::vector<int> const& of(int classes) const { return classes_[at(classes)].of; }
  int size(int classes) const { return classes_[at(classes)].count; }
  int choices(int v) const { return p_.choices(v).count(); }

  int add_classes(choice_classes c) {
    std::vector<int> key{c.set};
    key.insert(key.end(), c.of.begin(), c.of.end());
    auto const [it, fresh] = class_ids_.try_emplace(std::move(key), static_cast<int>(classes_.size()));
    if (fresh) classes_.push_back(std::move(c));
    return it->second;
  }
  /// The coarsest classes that are finer than both.
  int refine(int a, int b) {
    if (a == b || a < 0 || b < 0) return a < 0 ? b : a;
    if (a > b) std::swap(a, b);
    auto const [it, fresh] = refined_.try_emplace({a, b}, -1);
    if (fresh) {
      std::map<std::pair<int, int>, int> number;
      choice_classes c{classes_[at(a)].set, 0, {}};
      for (std::size_t i = 0; i < of(a).size(); ++i)
        c.of.push_back(number.try_emplace({of(a)[i], of(b)[i]}, static_cast<int>(number.size())).first->second);
      c.count = static_cast<int>(number.size());
      it->second = add_classes(std::move(c));
    }
    return it->second;
  }
  /// fine class -> coarse class.
  std::vector<int> coarsen(int fine, int coarse) const {
    std::vector<int> r(at(size(fine)), 0);
    for (std::size_t i = 0; i < of(fine).size(); ++i) r[at(of(fine)[i])] = of(coarse)[i];
    return r;
  }

  std::vector<argument> neighbours(int v, std::vector<int> const& factors) {
    std::map<int, int> n;
    for (int f : factors)
      for (argument const& a : factors_[at(f)].args)
        if (a.op != v) { int& c = n.try_emplace(a.op, -1).first->second; c = refine(c, a.classes); }
    std::vector<argument> r;
    for (auto const& [op, c] : n) r.push_back({op, c});
    return r;
  }
  double work(int v) {
    double w = choices(v);
    for (argument const& a : neighbours(v, of_op_[at(v)])) w *= size(a.classes);
    return w;
  }

  /// min over v's choices of unary + factors, over the classes of the neighbours.
  std::vector<double> join(int v, std::vector<int> const& factors, std::vector<argument> const& around, bool with_unary) {
    int mine = -1;
    for (int f : factors) for (argument const& a : factors_[at(f)].args) if (a.op == v) mine = refine(mine, a.classes);
    int const groups = mine < 0 ? 1 : size(mine);
    std::vector<double> base(at(groups), never);
    for (int i = 0; i < choices(v); ++i) {
      double& b = base[mine < 0 ? 0 : at(of(mine)[at(i)])];
      b = std::min(b, with_unary ? unary_[at(p_.set_of[at(v)])][at(i)] : 0.0);
    }
    int const n = static_cast<int>(around.size());
    std::vector<int> dims;
    std::size_t cells = 1;
    for (argument const& a : around) { dims.push_back(size(a.classes)); cells *= at(size(a.classes)); }
    int const inner = n ? dims.back() : 1;
    // every factor as group of v -> its neighbours' joint classes, last neighbour contiguous
    struct expanded { std::vector<double> v; std::vector<std::size_t> stride; std::size_t block; bool last; };
    std::vector<expanded> e;
    for (int f : factors) {
      factor const& q = factors_[at(f)];
      table const& t = tables_[at(q.table)];
      expanded x{{}, std::vector<std::size_t>(at(n), 0), 1, false};
      std::vector<std::vector<std::size_t>> offset(at(n));
      std::vector<std::size_t> own(at(groups), 0);
      std::size_t stride = 1;
      std::vector<int> which;
      for (std::size_t k = q.args.size(); k-- > 0;) {
        argument const& a = q.args[k];
        if (a.op == v) {
          auto const m = coarsen(mine, a.classes);
          for (std::size_t j = 0; j < m.size(); ++j) own[j] = at(m[j]) * stride;
        } else {
          int i = 0;
          while (around[at(i)].op != a.op) ++i;
          for (int m : coarsen(around[at(i)].classes, a.classes)) offset[at(i)].push_back(at(m) * stride);
          x.stride[at(i)] = x.block;
          x.block *= at(dims[at(i)]);
          which.push_back(i);                                        // descending: args ascend
          x.last = x.last || i == n - 1;
        }
        stride *= at(t.dims[k]);
      }
      x.v.resize(at(groups) * x.block);
      for (int j = 0; j < groups; ++j) {
        double* to = x.v.data() + at(j) * x.block;
        std::vector<int> c(which.size(), 0);
        for (std::size_t y = 0; y < x.block; ++y) {
          std::size_t from = own[at(j)];
          for (std::size_t k = 0; k < which.size(); ++k) from += offset[at(which[k])][at(c[k])];
          to[y] = t.v[from];
          for (std::size_t k = 0; k < which.size() && ++c[k] == dims[at(which[k])]; ++k) c[k] = 0;
        }
      }
      e.push_back(std::move(x));
    }
    std::vector<double> out(cells, never), row(at(inner), 0);
    std::vector<int> c(at(n), 0);
    for (int j = 0; j < groups; ++j) {
      if (!(base[at(j)] < never)) continue;
      std::fill(c.begin(), c.end(), 0);
      for (std::size_t cell = 0; cell < cells; cell += at(inner)) {
        double start = base[at(j)];
        bool first = true;
        for (expanded const& x : e) {
          std::size_t from = at(j) * x.block;
          for (int i = 0; i + 1 < n; ++i) from += x.stride[at(i)] * at(c[at(i)]);
          if (!x.last) { start += x.v[from]; continue; }
          double const* s = x.v.data() + from;
          if (first) for (int y = 0; y < inner; ++y) row[at(y)] = s[y];
          else for (int y = 0; y < inner; ++y) row[at(y)] += s[y];
          first = false;
        }
        double* to = out.data() + cell;
        double const* r = row.data();
        if (first) for (int y = 0; y < inner; ++y) to[y] = start < to[y] ? start : to[y];
        else for (int y = 0; y < inner; ++y) { double const z = r[y] + start; to[y] = z < to[y] ? z : to[y]; }
        for (int i = n - 2; i >= 0 && ++c[at(i)] == dims[at(i)]; --i) c[at(i)] = 0;
      }
    }
    return out;
  }

  void eliminate_part(int v, std::vector<int> factors, bool with_unary) {
    auto const around = neighbours(v, factors);
    auto const local = [&](int op) {
      if (op == v) return -1;
      int i = 0;
      while (around[at(i)].op != op) ++i;
      return i;
    };
    std::vector<std::vector<int>> parts;
    for (int f : factors) {
      std::vector<int> k{factors_[at(f)].table, static_cast<int>(factors_[at(f)].args.size())};
      for (argument const& a : factors_[at(f)].args) { k.push_back(local(a.op)); k.push_back(a.classes); }
      k.push_back(f);
      parts.push_back(std::move(k));
    }
    std::sort(parts.begin(), parts.end());                            // one order of summation, whatever the factors' numbers
    std::vector<int> key{p_.set_of[at(v)], with_unary};
    for (std::size_t i = 0; i < parts.size(); ++i) {
      factors[i] = parts[i].back();
      key.insert(key.end(), parts[i].begin(), parts[i].end() - 1);
    }
    auto const [it, fresh] = known_.try_emplace(std::move(key), product{-1, {}});
    if (fresh) {
      table t{{}, join(v, factors, around, with_unary)};
      for (argument const& a : around) { t.dims.push_back(size(a.classes)); it->second.classes.push_back(a.classes); }
      it->second.table = static_cast<int>(tables_.size());
      tables_.push_back(std::move(t));
    }
    if (around.empty()) { constant_ += tables_[at(it->second.table)].v.front(); return; }
    factor f{it->second.table, around};
    int const id = static_cast<int>(factors_.size());
    for (argument const& a : around) of_op_[at(a.op)].push_back(id);
    factors_.push_back(std::move(f));
  }

  void eliminate(int v) {
    std::vector<int> const all = of_op_[at(v)];
    steps_.push_back({v, all});
    gone_[at(v)] = 1;
    for (int f : all)
      for (argument const& a : factors_[at(f)].args)
        if (a.op != v) { auto& l = of_op_[at(a.op)]; l.erase(std::find(l.begin(), l.end(), f)); }
    std::vector<int> bucket;
    bool unary = true;
    for (std::size_t i = 0; i < all.size(); ++i) {  // mini-buckets: parts that are small enough, each with its own minimum
      bucket.push_back(all[i]);
      double w = choices(v);
      for (argument const& a : neighbours(v, bucket)) w *= size(a.classes);
      if (w <= limits_.work || bucket.size() == 1) continue;
      bucket.pop_back();
      eliminate_part(v, bucket, unary);
      unary = exact_ = false;
      bucket = {all[i]};
    }
    eliminate_part(v, bucket, unary);
  }

 public:
  eliminator(mapping_problem const& p, std::vector<std::vector<double>> const& unary, elimination_limits l)
      : p_(p), unary_(unary), limits_(l) {
    of_op_.resize(at(p.operators()));
    gone_.assign(at(p.operators()), 0);
    std::vector<int> mine;                                            // the problem's classes here
    for (choice_classes const& c : p.classes) mine.push_back(add_classes(c));
    for (pair_cost const& c : p.costs) tables_.push_back({{c.rows, c.cols}, c.seconds});
    for (operator_pair const& q : p.pairs) {
      int const id = static_cast<int>(factors_.size());
      factors_.push_back({q.cost, {{q.first, mine[at(q.rows)]}, {q.second, mine[at(q.cols)]}}});
      of_op_[at(q.first)].push_back(id);
      of_op_[at(q.second)].push_back(id);
    }
  }

  additive_optimum run() {
    int left = p_.operators();
    std::size_t const given = tables_.size();
    std::vector<double> cost(at(left), -1);                           // -1: to be computed
    while (left > 0) {
      // a round: operators that are cheap to eliminate and no neighbours of each other, equal ones together
      struct candidate { double work; int set, op; };
      std::vector<candidate> c;
      for (int v = 0; v < p_.operators(); ++v)
        if (!gone_[at(v)]) {
          if (cost[at(v)] < 0) cost[at(v)] = work(v);
          c.push_back({cost[at(v)], p_.set_of[at(v)], v});
        }
      std::sort(c.begin(), c.end(), [](candidate const& a, candidate const& b) {
        return a.work != b.work ? a.work < b.work : a.set != b.set ? a.set < b.set : a.op < b.op;
      });
      double const enough = 4 * c.front().work;
      std::vector<char> touched(gone_.size(), 0);
      for (candidate const& x : c) {
        if (x.work > enough) break;
        if (touched[at(x.op)]) continue;
        for (int f : of_op_[at(x.op)]) for (argument const& a : factors_[at(f)].args) { touched[at(a.op)] = 1; cost[at(a.op)] = -1; }
        eliminate(x.op);
        --left;
      }
    }
    additive_optimum r{assignment(at(p_.operators()), 0), constant_, exact_, static_cast<int>(tables_.size() - given)};
    for (std::size_t s = steps_.size(); s-- > 0;) {
      int const v = steps_[s].op;
      double best = never;
      std::vector<double> sum = unary_[at(p_.set_of[at(v)])];
      for (int f : steps_[s].factors) {
        factor const& q = factors_[at(f)];
        table const& t = tables_[at(q.table)];
        std::size_t from = 0, stride = 1, jump = 0;
        std::vector<int> const* own = nullptr;
        for (std::size_t k = q.args.size(); k-- > 0;) {
          argument const& a = q.args[k];
          if (a.op == v) { own = &of(a.classes); jump = stride; }
          else from += stride * at(of(a.classes)[at(r.choices[at(a.op)])]);
          stride *= at(t.dims[k]);
        }
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += t.v[from + jump * at((*own)[i])];
      }
      for (std::size_t i = 0; i < sum.size(); ++i)
        if (sum[i] < best) { best = sum[i]; r.choices[at(v)] = static_cast<int>(i); }
    }
    return r;
  }
};

}  // namespace detail

/// Changes one operator's choice after another to what is best beside its neighbours, until nothing gets better. O(rounds * pairs *
/// choices).
inline void descend(mapping_problem const& p, std::vector<std::vector<double>> const& unary, assignment& a) {
  std::vector<std::vector<int>> pairs_of(detail::idx(p.operators()));
  for (std::size_t k = 0; k < p.pairs.size(); ++k)
    for (int v : {p.pairs[k].first, p.pairs[k].second}) pairs_of[detail::idx(v)].push_back(static_cast<int>(k));
  bool better = true;
  for (int round = 0; better && round < 100; ++round) {
    better = false;
    for (int v = 0; v < p.operators(); ++v) {
      int& mine = a[detail::idx(v)];
      std::vector<double> sum = unary[detail::idx(p.set_of[detail::idx(v)])];
      for (int k : pairs_of[detail::idx(v)]) {
        operator_pair const& q = p.pairs[detail::idx(k)];
        for (std::size_t i = 0; i < sum.size(); ++i) {
          int const c = static_cast<int>(i);
          sum[i] += q.first == v ? p.seconds(q, c, a[detail::idx(q.second)]) : p.seconds(q, a[detail::idx(q.first)], c);
        }
      }
      int best = mine;
      for (std::size_t i = 0; i < sum.size(); ++i) if (sum[i] < sum[detail::idx(best)]) best = static_cast<int>(i);
      if (sum[detail::idx(best)] < sum[detail::idx(mine)] * (1 - 1e-12)) { mine = best; better = true; }
    }
  }
}

/// The assignment with the least sum of `unary[set][choice]` over operators and of the problem's pair costs; the tree is ignored.
/// Where tables would grow too large, a lower bound, and the assignment found from it improved operator by operator. Ties: the first
/// choice, operators decided in the reverse of a fixed order. Time and memory are exponential in the width of the graph alone: chains,
/// residual networks and attention blocks have width 2. Precondition: unary[s] has a finite entry for every set in use.
inline additive_optimum least_sum(mapping_problem const& p, std::vector<std::vector<double>> const& unary, elimination_limits l = {}) {
  additive_optimum r = detail::eliminator(p, unary, l).run();
  if (!r.exact) descend(p, unary, r.choices);
  return r;
}

}  // namespace tensorpar
