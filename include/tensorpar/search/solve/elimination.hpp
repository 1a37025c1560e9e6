// tensorpar/search/solve/elimination.hpp - the cheapest choice for every operator where costs simply add up,
// by eliminating operators
#pragma once
#include <algorithm>
#include <map>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/core/thread_pool.hpp>
#include <tensorpar/search/problem/evaluate.hpp>
#include <tensorpar/search/solve/mapping_options.hpp>
#include <tensorpar/search/solve/min_cells.hpp>
#include <tensorpar/search/solve/min_rows.hpp>
#include <tensorpar/search/solve/refined_classes.hpp>

namespace tensorpar::search {

struct additive_optimum {
  assignment choices;
  double value = 0;               // a lower bound on the sum of any assignment; the optimum where `exact`
  bool exact = true;              // nothing was split up
  int tables = 0;                 // tables computed; operators beyond those were answered from memory
};

namespace detail {

/// Minimises sum of unary[set of v][choice of v] + sum of pair costs. Costs live in tables over classes of
/// choices; eliminating an operator (Bertele and Brioschi 1972, "bucket elimination" in Dechter 1999) joins
/// the tables it occurs in to one over its neighbours. A table is remembered under all that it was made of,
/// compared in full, so equal blocks of a network are joined once, and a chain of n equal blocks takes about
/// log n min-plus products. One eliminator serves any number of problems over the same choices and costs, and
/// remembers what they have in common.
class eliminator {
  struct argument { int op, classes; };
  // args by ascending operator, the first one the slowest digit
  struct factor { int table; std::vector<argument> args; };
  // v: own, or a cost's, which stay where they are
  struct table { std::vector<int> dims; std::vector<double> own; double const* v; };
  struct step { int op; std::vector<int> factors; };

  mapping_tables const& t_;                                      // may grow between problems, as `unary_` may
  std::vector<std::vector<double>> const& unary_;
  elimination_limits limits_;
  std::vector<int> given_classes_, given_costs_;                 // of t_ -> numbers here
  refined_classes classes_;
  std::vector<table> tables_;
  struct product { int table; std::vector<int> classes; };
  std::map<std::vector<int>, product> known_;
  int joined_ = 0, asked_ = 0;
  std::vector<std::vector<double>> expanded_;                    // of the join at hand, kept for their memory
  // of the problem at hand
  std::vector<int> const* set_of_ = nullptr;
  std::vector<factor> factors_;
  std::vector<std::vector<int>> of_op_;                          // live factors
  std::vector<char> gone_;                                       // or kept
  std::vector<step> steps_;
  double constant_ = 0;
  bool exact_ = true;

  std::vector<int> const& of(int classes) const { return classes_.of(classes); }
  int size(int classes) const { return classes_.size(classes); }
  int set_of(int v) const { return (*set_of_)[idx(v)]; }
  int choices(int v) const { return t_.sets[idx(set_of(v))].count(); }

  std::vector<argument> neighbours(int v, std::vector<int> const& factors) {
    std::map<int, int> n;
    for (int f : factors)
      for (argument const& a : factors_[idx(f)].args)
        if (a.op != v) { int& c = n.try_emplace(a.op, -1).first->second; c = classes_.refine(c, a.classes); }
    std::vector<argument> r;
    for (auto const& [op, c] : n) r.push_back({op, c});
    return r;
  }
  double work(int v) {
    double w = choices(v);
    for (argument const& a : neighbours(v, of_op_[idx(v)])) w *= size(a.classes);
    return w;
  }

  /// min over v's choices of unary + factors, over the classes of the neighbours.
  std::vector<double> join(int v, std::vector<int> const& factors, std::vector<argument> const& around,
                           bool with_unary) {
    int mine = -1;
    for (int f : factors)
      for (argument const& a : factors_[idx(f)].args)
        if (a.op == v) mine = classes_.refine(mine, a.classes);
    int const groups = mine < 0 ? 1 : size(mine);
    std::vector<double> base(idx(groups), infinity);
    for (int i = 0; i < choices(v); ++i) {
      double& b = base[mine < 0 ? 0 : idx(of(mine)[idx(i)])];
      b = std::min(b, with_unary ? unary_[idx(set_of(v))][idx(i)] : 0.0);
    }
    int const n = static_cast<int>(around.size());
    std::vector<int> dims;
    std::size_t cells = 1;
    for (argument const& a : around) { dims.push_back(size(a.classes)); cells *= idx(size(a.classes)); }
    std::vector<expanded_table> e;
    if (expanded_.size() < factors.size()) expanded_.resize(factors.size());
    for (int f : factors) {
      factor const& q = factors_[idx(f)];
      table const& t = tables_[idx(q.table)];
      expanded_table x{nullptr, std::vector<std::size_t>(idx(n), 0), 1, false};
      std::vector<std::vector<std::size_t>> offset(idx(n));
      std::vector<std::size_t> own(idx(groups), 0);
      std::size_t stride = 1;
      std::vector<int> which;
      for (std::size_t k = q.args.size(); k-- > 0;) {
        argument const& a = q.args[k];
        if (a.op == v) {
          auto const m = classes_.coarsen(mine, a.classes);
          for (std::size_t j = 0; j < m.size(); ++j) own[j] = idx(m[j]) * stride;
        } else {
          int i = 0;
          while (around[idx(i)].op != a.op) ++i;
          for (int m : classes_.coarsen(around[idx(i)].classes, a.classes))
            offset[idx(i)].push_back(idx(m) * stride);
          x.stride[idx(i)] = x.block;
          x.block *= idx(dims[idx(i)]);
          which.push_back(i);                                        // descending: args ascend
          x.last = x.last || i == n - 1;
        }
        stride *= idx(t.dims[k]);
      }
      std::vector<std::size_t> from(1, 0);                           // of a block: places in the table
      for (std::size_t k = which.size(); k-- > 0;) {
        std::vector<std::size_t> const& o = offset[idx(which[k])];
        std::vector<std::size_t> wider;
        wider.reserve(from.size() * o.size());
        for (std::size_t a : from) for (std::size_t b : o) wider.push_back(a + b);
        from = std::move(wider);
      }
      x.v = rows_at(t.v, own, from, expanded_[e.size()]);
      e.push_back(std::move(x));
    }
    return min_cells(base, dims, e, [&](std::size_t rows, auto const& make_rows) {
      if (!limits_.workers || static_cast<double>(idx(groups) * cells) < limits_.shared) make_rows(0, rows);
      else
        limits_.workers->run_blocks(rows, (rows + 15) / 16, [&](std::size_t first, std::size_t last, int) {
          make_rows(first, last);
        });
    });
  }

  void eliminate_part(int v, std::vector<int> factors, bool with_unary) {
    auto const around = neighbours(v, factors);
    auto const local = [&](int op) {
      if (op == v) return -1;
      int i = 0;
      while (around[idx(i)].op != op) ++i;
      return i;
    };
    std::vector<std::vector<int>> parts;
    for (int f : factors) {
      std::vector<int> k{factors_[idx(f)].table, static_cast<int>(factors_[idx(f)].args.size())};
      for (argument const& a : factors_[idx(f)].args) { k.push_back(local(a.op)); k.push_back(a.classes); }
      k.push_back(f);
      parts.push_back(std::move(k));
    }
    // one order of summation, whatever the factors' numbers
    std::sort(parts.begin(), parts.end());
    std::vector<int> key{set_of(v), with_unary};
    for (std::size_t i = 0; i < parts.size(); ++i) {
      factors[i] = parts[i].back();
      key.insert(key.end(), parts[i].begin(), parts[i].end() - 1);
    }
    auto const [it, fresh] = known_.try_emplace(std::move(key), product{-1, {}});
    ++asked_;
    if (fresh) {
      table t{{}, join(v, factors, around, with_unary), nullptr};
      t.v = t.own.data();
      for (argument const& a : around) {
        t.dims.push_back(size(a.classes));
        it->second.classes.push_back(a.classes);
      }
      it->second.table = static_cast<int>(tables_.size());
      tables_.push_back(std::move(t));
      ++joined_;
    }
    if (around.empty()) { constant_ += tables_[idx(it->second.table)].v[0]; return; }
    factor f{it->second.table, around};
    int const id = static_cast<int>(factors_.size());
    for (argument const& a : around) of_op_[idx(a.op)].push_back(id);
    factors_.push_back(std::move(f));
  }

  void eliminate(int v) {
    std::vector<int> const all = of_op_[idx(v)];
    steps_.push_back({v, all});
    gone_[idx(v)] = 1;
    for (int f : all)
      for (argument const& a : factors_[idx(f)].args)
        if (a.op != v) { auto& l = of_op_[idx(a.op)]; l.erase(std::find(l.begin(), l.end(), f)); }
    std::vector<int> bucket;
    bool unary = true;
    // mini-buckets: parts that are small enough, each with its own minimum
    for (std::size_t i = 0; i < all.size(); ++i) {
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

  void begin(std::vector<int> const& sets, std::vector<operator_pair> const& pairs) {
    set_of_ = &sets;
    factors_.clear();
    of_op_.assign(sets.size(), {});
    gone_.assign(sets.size(), 0);
    steps_.clear();
    constant_ = 0;
    exact_ = true;
    while (given_classes_.size() < t_.classes.size())
      given_classes_.push_back(classes_.add(t_.classes[given_classes_.size()]));
    while (given_costs_.size() < t_.costs.size()) {
      pair_cost const& c = t_.costs[given_costs_.size()];
      given_costs_.push_back(static_cast<int>(tables_.size()));
      tables_.push_back({{c.rows, c.cols}, {}, c.seconds.data()});
    }
    for (operator_pair const& q : pairs) {
      int const id = static_cast<int>(factors_.size());
      factors_.push_back({given_costs_[idx(q.cost)],
                          {{q.first, given_classes_[idx(q.rows)]}, {q.second, given_classes_[idx(q.cols)]}}});
      of_op_[idx(q.first)].push_back(id);
      of_op_[idx(q.second)].push_back(id);
    }
  }

  /// Eliminates all operators that are not gone.
  void eliminate_all() {
    int const n = static_cast<int>(gone_.size());
    int left = 0;
    for (char g : gone_) left += !g;
    std::vector<double> cost(idx(n), -1);                              // -1: to be computed
    while (left > 0) {
      // a round: operators that are cheap to eliminate and no neighbours of each other, equal ones together
      struct candidate { double work; int set, op; };
      std::vector<candidate> c;
      for (int v = 0; v < n; ++v)
        if (!gone_[idx(v)]) {
          if (cost[idx(v)] < 0) cost[idx(v)] = work(v);
          c.push_back({cost[idx(v)], set_of(v), v});
        }
      std::sort(c.begin(), c.end(), [](candidate const& a, candidate const& b) {
        return a.work != b.work ? a.work < b.work : a.set != b.set ? a.set < b.set : a.op < b.op;
      });
      double const enough = 4 * c.front().work;
      std::vector<char> touched(gone_.size(), 0);
      for (candidate const& x : c) {
        if (x.work > enough) break;
        if (touched[idx(x.op)]) continue;
        for (int f : of_op_[idx(x.op)])
          for (argument const& a : factors_[idx(f)].args) {
            touched[idx(a.op)] = 1;
            cost[idx(a.op)] = -1;
          }
        eliminate(x.op);
        --left;
      }
    }
  }

 public:
  eliminator(mapping_tables const& t, std::vector<std::vector<double>> const& unary, elimination_limits l)
      : t_(t), unary_(unary), limits_(l) {}
  eliminator(eliminator const&) = delete;                          // tables point to their numbers
  eliminator& operator=(eliminator const&) = delete;

  /// The least sum over choices of all operators but the kept ones, whose own seconds do not count, by the
  /// choices of these (the first one the slowest digit). A lower bound where not `exact`. Precondition: at
  /// most two are kept.
  struct remainder { std::vector<double> seconds; bool exact; };
  remainder min_beside(std::vector<int> const& sets, std::vector<operator_pair> const& pairs,
                         std::vector<int> const& kept) {
    begin(sets, pairs);
    for (int v : kept) gone_[idx(v)] = 1;
    eliminate_all();
    std::size_t cells = 1;
    for (int v : kept) cells *= idx(choices(v));
    remainder r{std::vector<double>(cells, constant_), exact_};
    std::vector<char> added(factors_.size(), 0);
    for (int v : kept)
      for (int f : of_op_[idx(v)]) {
        if (added[idx(f)]) continue;
        added[idx(f)] = 1;
        factor const& q = factors_[idx(f)];
        table const& t = tables_[idx(q.table)];
        for (std::size_t cell = 0; cell < cells; ++cell) {
          std::size_t from = 0;
          for (std::size_t k = 0; k < q.args.size(); ++k) {
            bool const second = kept.size() > 1 && q.args[k].op == kept[1];
            std::size_t const fast = kept.size() > 1 ? idx(choices(kept[1])) : 1,
                              choice = second ? cell % fast : cell / fast;
            from = from * idx(t.dims[k]) + idx(of(q.args[k].classes)[choice]);
          }
          r.seconds[cell] += t.v[from];
        }
      }
    return r;
  }

  /// Tables worked out so far, and how often one was there already.
  int joined() const { return joined_; }
  int remembered() const { return asked_ - joined_; }

  additive_optimum least(std::vector<int> const& sets, std::vector<operator_pair> const& pairs) {
    begin(sets, pairs);
    int const before = joined_;
    eliminate_all();
    additive_optimum r{assignment(sets.size(), 0), constant_, exact_, joined_ - before};
    for (std::size_t s = steps_.size(); s-- > 0;) {
      int const v = steps_[s].op;
      double best = infinity;
      std::vector<double> sum = unary_[idx(set_of(v))];
      for (int f : steps_[s].factors) {
        factor const& q = factors_[idx(f)];
        table const& t = tables_[idx(q.table)];
        std::size_t from = 0, stride = 1, jump = 0;
        std::vector<int> const* own = nullptr;
        for (std::size_t k = q.args.size(); k-- > 0;) {
          argument const& a = q.args[k];
          if (a.op == v) { own = &of(a.classes); jump = stride; }
          else from += stride * idx(of(a.classes)[idx(r.choices[idx(a.op)])]);
          stride *= idx(t.dims[k]);
        }
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += t.v[from + jump * idx((*own)[i])];
      }
      for (std::size_t i = 0; i < sum.size(); ++i)
        if (sum[i] < best) { best = sum[i]; r.choices[idx(v)] = static_cast<int>(i); }
    }
    return r;
  }
};

}  // namespace detail
}  // namespace tensorpar::search
