// tensorpar/search/solve/savings.hpp - choices that take less memory: sharded updates and weights, operators
// computed again
#pragma once
#include <array>
#include <memory>
#include <tensorpar/core/index.hpp>
#include <tensorpar/program/passes/memory_pass.hpp>
#include <tensorpar/search/problem/split.hpp>
#include <tensorpar/search/solve/objective.hpp>

namespace tensorpar::search {

/// Operators that may be computed again: those between two results that are kept. Kept are the candidates for
/// cuts (search/problem/split.hpp), so that no more has to be there again at one time than what lies between
/// two of them; and whatever makes the loss.
inline std::vector<char> recomputable(computation_graph const& forward, training_graph const& t) {
  std::vector<char> r(forward.nodes.size(), 1);
  std::vector<int> const cuts = cut_candidates(forward, t);
  if (cuts.empty()) return std::vector<char>(forward.nodes.size(), 0);
  for (int v : cuts) r[idx(v)] = 0;
  for (int v = 0; v < forward.node_count(); ++v)
    if (forward.type(forward.node(v).out[0]).rank == 0) r[idx(v)] = 0;
  return r;
}

namespace detail {

/// One problem over shardings with what they save, put together from the problems of graphs all of whose
/// operators save the same. Seconds and bytes of a choice are those of the graph where all do what it does.
/// What two operators exchange depends on whether the reader is computed again (then it reads once more), and
/// on whether only the producer is (then the reader's derivatives do). Where they share a weight, it depends
/// on whether that is kept in parts.
template <cost::cost_model M> class saving_builder {
  static constexpr int sharded = 3, repeated = 2;
  enum meeting : int { both_kept, producer_again, reader_again, meetings };

  choice_book<M>& book_;
  std::vector<char> again_;                                   // may it be computed again?
  std::vector<training_graph> graphs_;                        // [weights in parts][again]
  std::vector<std::unique_ptr<objective_builder<M>>> builders_;   // [weights in parts][meeting]
  std::array<std::array<std::vector<int>, repeated>, sharded> sets_;
  // as builders_; those in parts only where weights are shared
  std::vector<std::map<std::pair<int, int>, operator_pair>> pairs_;
  mapping_problem out_;
  struct option { int sharding; choice_saving saving; };
  std::vector<std::vector<option>> options_;                  // by new set

  static int graph_of(bool parts, bool again) { return 2 * parts + again; }
  static training_graph everything(training_graph const& t, bool parts, bool again) {
    plan p;
    p.nodes.assign(idx(t.forward_nodes),
                   {{}, parts ? ir::zero_stage::weights : ir::zero_stage::none, again});
    return passes::memory_pass(t, std::move(p)).graph;
  }
  choice_set const& set(choice_saving s, int f) const {
    return book_.tables.sets[idx(sets_[idx(static_cast<int>(s.zero))][s.recompute][idx(f)])];
  }

  /// What the choices of operator f may save: whatever takes less bytes than saving less does.
  void make_set(int f) {
    choice_set c;
    std::vector<option> all;
    choice_set const& plain = set({}, f);
    for (int i = 0; i < plain.count(); ++i)
      for (bool again : {false, true}) {
        if (again &&
            (!again_[idx(f)] || set({ir::zero_stage::none, true}, f).bytes[idx(i)] >= plain.bytes[idx(i)]))
          continue;
        i64 least = std::numeric_limits<i64>::max();
        for (ir::zero_stage w : {ir::zero_stage::none, ir::zero_stage::updates, ir::zero_stage::weights}) {
          choice_set const& from = set({w, again}, f);
          if (from.bytes[idx(i)] >= least) continue;
          least = from.bytes[idx(i)];
          c.shardings.push_back(plain.shardings[idx(i)]);
          c.savings.push_back({w, again});
          c.sizes.push_back(plain.sizes[idx(i)]);
          c.seconds.push_back(from.seconds[idx(i)]);
          c.bytes.push_back(least);
          all.push_back({i, {w, again}});
        }
      }
    out_.sets.push_back(std::move(c));
    options_.push_back(std::move(all));
  }
  void make_sets(int operators) {
    std::map<std::vector<int>, int> known;
    for (int f = 0; f < operators; ++f) {
      std::vector<int> key{again_[idx(f)]};
      for (auto const& by : sets_) for (auto const& s : by) key.push_back(s[idx(f)]);
      auto const [at, fresh] = known.try_emplace(std::move(key), static_cast<int>(out_.sets.size()));
      if (fresh) make_set(f);
      out_.set_of.push_back(at->second);
    }
  }

  operator_pair const* pair(std::size_t which, std::pair<int, int> ab) const {
    if (which >= pairs_.size()) return nullptr;
    auto const at = pairs_[which].find(ab);
    return at == pairs_[which].end() ? nullptr : &at->second;
  }
  /// Choices of one side that exchange the same whatever the other does: by class in every graph, and by what
  /// they save.
  choice_classes classes(std::pair<int, int> ab, bool first, std::vector<int>& some) const {
    int const s = out_.set_of[idx(first ? ab.first : ab.second)];
    interner number;
    choice_classes c{s, 0, {}};
    std::vector<i64> key;
    for (std::size_t k = 0; k < options_[idx(s)].size(); ++k) {
      option const& o = options_[idx(s)][k];
      key = {o.saving.recompute, pairs_.size() > meetings && o.saving.zero == ir::zero_stage::weights};
      for (std::size_t w = 0; w < pairs_.size(); ++w)
        if (operator_pair const* q = pair(w, ab))
          key.push_back(book_.tables.classes[idx(first ? q->rows : q->cols)].of[idx(o.sharding)]);
      int const n = number(key);
      if (n == static_cast<int>(some.size())) some.push_back(static_cast<int>(k));
      c.of.push_back(n);
    }
    c.count = number.size();
    return c;
  }
  void make_pairs() {
    std::map<std::pair<int, int>, char> all;
    for (auto const& p : pairs_) for (auto const& [ab, q] : p) all[ab] = 1;
    std::map<std::vector<int>, std::array<int, 3>> known;
    std::map<std::vector<int>, int> known_classes;
    auto const number = [&](choice_classes c) {
      std::vector<int> key{c.set};
      key.insert(key.end(), c.of.begin(), c.of.end());
      auto const [at, fresh] =
          known_classes.try_emplace(std::move(key), static_cast<int>(out_.classes.size()));
      if (fresh) out_.classes.push_back(std::move(c));
      return at->second;
    };
    for (auto const& [ab, unused] : all) {
      std::vector<int> key{out_.set_of[idx(ab.first)], out_.set_of[idx(ab.second)]};
      for (std::size_t w = 0; w < pairs_.size(); ++w) {
        operator_pair const* q = pair(w, ab);
        key.insert(key.end(), {q ? q->cost : -1, q ? q->rows : -1, q ? q->cols : -1});
      }
      auto const [at, fresh] = known.try_emplace(std::move(key));
      if (fresh) {
        std::vector<int> rows, cols;
        choice_classes const r = classes(ab, true, rows), c = classes(ab, false, cols);
        pair_cost cost{r.count, c.count, {}};
        for (int i : rows)
          for (int j : cols) {
            option const &a = options_[idx(r.set)][idx(i)], &b = options_[idx(c.set)][idx(j)];
            std::size_t const parts =
                pairs_.size() > meetings && a.saving.zero == ir::zero_stage::weights ? meetings : 0;
            int const who = b.saving.recompute   ? reader_again
                            : a.saving.recompute ? producer_again
                                                 : both_kept;
            operator_pair const* q = pair(parts + idx(who), ab);
            cost.seconds.push_back(q ? book_.tables.seconds(*q, a.sharding, b.sharding) : 0.0);
          }
        at->second = {static_cast<int>(out_.costs.size()), number(r), number(c)};
        out_.costs.push_back(std::move(cost));
      }
      out_.pairs.push_back({ab.first, ab.second, at->second[0], at->second[1], at->second[2]});
    }
  }

 public:
  saving_builder(training_graph const& t, choice_book<M>& book, std::vector<char> again,
                 std::vector<std::pair<int, int>> const& order)
      : book_(book), again_(std::move(again)) {
    bool shared = false;
    for (int v = 0; v < t.forward_nodes; ++v)
      for (int x : t.graph.node(v).in) shared = shared || (t.home[idx(x)] >= 0 && t.home[idx(x)] != v);
    for (bool parts : {false, true})
      for (bool repeat : {false, true}) graphs_.push_back(everything(t, parts, repeat));
    for (bool parts : {false, true})
      for (int m = 0; m < meetings; ++m)
        builders_.push_back(std::make_unique<objective_builder<M>>(
            graphs_[idx(graph_of(parts, m != both_kept))], book, order, m == producer_again));
    pairs_.resize(shared ? 2 * meetings : meetings);
  }
  /// The problem over the shardings within these limits. The book starts afresh.
  mapping_problem make(sharding_limits const& l) {
    book_.start(l);
    out_ = builders_[0]->frame();
    options_.clear();
    for (auto& q : pairs_) q.clear();
    for (ir::zero_stage w : {ir::zero_stage::none, ir::zero_stage::updates, ir::zero_stage::weights})
      for (bool again : {false, true})
        sets_[idx(static_cast<int>(w))][again] =
            builders_[idx((w == ir::zero_stage::weights ? meetings : 0) +
                          (again ? reader_again : both_kept))]
                ->choose(choice_saving{w, again});
    for (std::size_t w = 0; w < pairs_.size(); ++w) {
      bool const parts = w >= meetings;
      auto const& sets = sets_[parts ? 2 : 0][w % meetings != both_kept];
      for (operator_pair const& q : builders_[w]->pairs(sets)) pairs_[w].insert({{q.first, q.second}, q});
    }
    make_sets(static_cast<int>(again_.size()));
    make_pairs();
    return std::move(out_);
  }
};

}  // namespace detail

/// The mapping problem whose choices may save memory: `make_problem` with, for every sharding, sharded
/// updates, sharded weights and recomputation as further choices where they take less. What is computed again
/// while its part of the backward pass runs is not in the bytes; unroll tells. `again`: which operators may
/// be computed again, by forward operator.
template <cost::cost_model M>
mapping_problem make_saving_problem(training_graph const& t, machine const& on, M const& model,
                                    std::vector<char> const& again, sharding_limits const& l = {},
                                    objective_options const& o = {}) {
  choice_book<M> book(on, model, o);
  return detail::saving_builder<M>(t, book, again, {}).make(l);
}
template <class M>
  requires(!cost::cost_model<M>)
cost::cost_model_lack<M> make_saving_problem(training_graph const&, machine const&, M const&,
                                       std::vector<char> const&, sharding_limits const& = {},
                                       objective_options const& = {});

}  // namespace tensorpar::search
