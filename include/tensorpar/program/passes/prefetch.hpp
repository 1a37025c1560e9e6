// tensorpar/program/passes/prefetch.hpp - collectives started ahead of the operators that wait for them
#pragma once
#include <algorithm>
#include <map>
#include <queue>
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/program/core/lifetimes.hpp>
#include <tensorpar/program/core/program.hpp>
#include <utility>
#include <vector>

namespace tensorpar::passes {

namespace detail {

// 1. Chains: reshards, one behind the other, that bring a value to one operator. `gathers` bring a weight
//    that is kept in parts, `reductions` a gradient to its update or its sum, `activations` other results. A
//    device's own part is cut out of what arrived by the device that computes: such slices stay with who
//    reads them.
// 2. Groups of chains on the same devices, numbered as they stand in the program: by operator, reductions by
//    the operator whose weights' gradients they are.
// 3. A key for every task: its place, or the place where it is wanted.
// 4. Tasks in the order of their keys, as far as what they read and write allows.
class prefetcher {
  enum class role : int { none, gather, activation, reduction };
  using place = std::pair<int, i64>;     // first device and number of devices: the same in every listing
  struct chain {
    role what = role::none;
    int first = 0, last = 0;             // tasks
    int waits = -1;                      // from this one on they compute with what was communicated
    int root = -1;                       // the task that makes what is moved
    int served = -1;                     // the operator that it counts with
    int group = 0;                       // among those of its role and place
    place where{};
    int reader = -1;                     // of what was brought: the first task that computes with it
  };

  program& p_;
  computation_graph const& g_;
  int ahead_;
  std::vector<chain> chains_;
  std::vector<int> chain_of_;            // by task; -1
  std::vector<i64> key_;                 // by task: four times its place, and before or behind it
  std::vector<std::vector<int>> next_;   // by task: those that must follow
  std::vector<int> waits_;               // by task: for how many
  std::vector<int> readers_;             // of what was reduced, and of what follows: tasks
  std::vector<int> now_;                 // by task: its new place

  task const& at(int t) const { return p_.tasks[idx(t)]; }
  buffer const& of(int b) const { return p_.buffers[idx(b)]; }
  step_phase phase_of(int t) const { return g_.node(at(t).node).phase; }

  void find_chains() {
    std::vector<int> maker(p_.buffers.size(), -1);
    chain_of_.assign(p_.tasks.size(), -1);
    for (int t = 0; t < static_cast<int>(p_.tasks.size()); ++t) {
      task const& x = at(t);
      if (x.kind == task_kind::reshard && x.node >= 0) join_chain(t, maker[idx(x.in[0])]);
      for (int b : x.out) maker[idx(b)] = t;
    }
  }
  void join_chain(int t, int before) {
    task const& x = at(t);
    bool const goes_on = before >= 0 && chain_of_[idx(before)] >= 0 && at(before).node == x.node &&
                         at(before).micro_batch == x.micro_batch;
    chain_of_[idx(t)] = goes_on ? chain_of_[idx(before)] : static_cast<int>(chains_.size());
    if (!goes_on) {
      bool const update = phase_of(t) == step_phase::update;
      bool const made = before >= 0 && at(before).kind == task_kind::compute,
                 backward = made && phase_of(before) == step_phase::backward;
      role const what = of(x.in[0]).persistent ? (update ? role::none : role::gather)
                        : update ? (backward ? role::reduction : role::none)
                        : made   ? role::activation
                                 : role::none;
      int const origin = g_.node(x.node).origin;
      int const of_operator = what == role::reduction ? origin : int(x.node);
      chains_.push_back({what, t, t, -1, before, of_operator, 0, {}, -1});
    }
    chain& c = chains_[idx(chain_of_[idx(t)])];
    c.last = t;
    bool const computes = x.step.kind == ir::reshard_kind::slice;
    if (computes && t != c.first && c.waits < 0) c.waits = t;
    if (x.step.kind == ir::reshard_kind::exchange) c.what = role::none;      // others take part
  }
  /// Numbers the groups of one role. Returns by device set and group the first task, or the root.
  std::map<place, std::vector<int>> number_groups(role what) {
    std::map<place, std::vector<int>> r;
    std::map<place, std::pair<int, int>> latest;             // operator, micro-batch
    for (chain& c : chains_) {
      if (c.what != what) continue;
      ir::layout const& l = of(at(c.last).out[0]).where;
      c.where = {l.start, l.size()};
      std::vector<int>& groups = r[c.where];
      std::pair<int, int> const now{c.served, at(c.first).micro_batch};
      auto const [known, fresh] = latest.try_emplace(c.where, now);
      if (fresh || known->second != now) groups.push_back(what == role::reduction ? c.root : c.first);
      if (what == role::reduction) groups.back() = std::max(groups.back(), c.root);
      known->second = now;
      c.group = static_cast<int>(groups.size()) - 1;
    }
    return r;
  }

  void set_keys() {
    auto const gathers = number_groups(role::gather), activations = number_groups(role::activation),
               reductions = number_groups(role::reduction);
    auto const earlier = [&](chain const& c, std::map<place, std::vector<int>> const& groups) {
      return 4 * i64{groups.at(c.where)[idx(std::max(0, c.group - ahead_))]} - 1;
    };
    key_.resize(p_.tasks.size());
    for (std::size_t t = 0; t < key_.size(); ++t) {
      key_[t] = 4 * static_cast<i64>(t);
      if (chain_of_[t] < 0) continue;
      chain const& c = chains_[idx(chain_of_[t])];
      bool const waits = c.waits >= 0 && static_cast<int>(t) >= c.waits;
      if (c.what == role::gather && !waits) key_[t] = earlier(c, gathers);
      if (c.what == role::activation && !waits)
        key_[t] = std::max(4 * i64{c.root} + 1, earlier(c, activations));
      if (c.what == role::reduction)
        key_[t] = waits ? latest(c, reductions) : 4 * i64{c.root} + 1;
    }
    std::vector<int> maker(p_.buffers.size(), -1);
    for (std::size_t t = 0; t < key_.size(); ++t) {
      task const& x = p_.tasks[t];
      for (int b : x.in) {
        int const m = maker[idx(b)], c = m < 0 ? -1 : chain_of_[idx(m)];
        if (x.kind != task_kind::compute || c < 0) continue;
        if (chains_[idx(c)].reader < 0) chains_[idx(c)].reader = static_cast<int>(t);
        if (chains_[idx(c)].what != role::reduction) continue;
        key_[t] = std::max(key_[t], latest(chains_[idx(c)], reductions));
        readers_.push_back(static_cast<int>(t));
      }
      for (int b : x.out) maker[idx(b)] = static_cast<int>(t);
    }
  }
  /// Behind the last reduction that a reader of this one waits for.
  i64 latest(chain const& c, std::map<place, std::vector<int>> const& reductions) const {
    std::vector<int> const& all = reductions.at(c.where);
    std::size_t const until = idx(c.group + ahead_);
    return 4 * (until < all.size() ? i64{all[until]} : static_cast<i64>(p_.tasks.size())) + 2;
  }

  void find_dependences() {
    next_.resize(p_.tasks.size());
    waits_.assign(p_.tasks.size(), 0);
    struct uses { int writer = -1; std::vector<int> readers; };
    std::vector<uses> of_buffer(p_.buffers.size());
    auto const after = [&](int before, int t) {
      if (before < 0 || before == t) return;
      next_[idx(before)].push_back(t);
      ++waits_[idx(t)];
    };
    auto const write = [&](int b, int t) {
      uses& u = of_buffer[idx(b)];
      for (int r : u.readers) after(r, t);
      after(u.writer, t);
    };
    for (int t = 0; t < static_cast<int>(p_.tasks.size()); ++t) {
      task const& x = at(t);
      for (int b : x.in) after(of_buffer[idx(b)].writer, t);
      if (x.kind == task_kind::receive) after(x.other_half, t);
      for (int b : x.out) {
        write(b, t);
        if (of(b).in_place_of >= 0) write(of(b).in_place_of, t);
      }
      for (int b : x.in) of_buffer[idx(b)].readers.push_back(t);
      for (int b : x.out) of_buffer[idx(b)] = {t, {}};
    }
  }
  void reorder() {
    using entry = std::pair<i64, int>;
    std::priority_queue<entry, std::vector<entry>, std::greater<>> ready;
    for (std::size_t t = 0; t < waits_.size(); ++t)
      if (waits_[t] == 0) ready.push({key_[t], static_cast<int>(t)});
    std::vector<task> all;
    now_.assign(p_.tasks.size(), -1);
    while (!ready.empty()) {
      int const t = ready.top().second;
      ready.pop();
      now_[idx(t)] = static_cast<int>(all.size());
      all.push_back(std::move(p_.tasks[idx(t)]));
      for (int n : next_[idx(t)]) if (--waits_[idx(n)] == 0) ready.push({key_[idx(n)], n});
    }
    for (task& x : all) if (x.other_half >= 0) x.other_half = now_[idx(x.other_half)];
    p_.tasks = std::move(all);
  }
  /// By use. But what is communicated ahead, and the space to pack it in, is kept until somebody waits for
  /// the communication: whoever took over its bytes before would wait, too.
  void set_lifetimes() {
    live_by_use(p_);
    std::vector<int> places;
    for (int t : readers_) places.push_back(now_[idx(t)]);
    std::sort(places.begin(), places.end());
    std::map<place, std::vector<int>> reduced;                 // by group: when all of it is on its way
    for (chain const& c : chains_) {
      if (c.what != role::reduction) continue;
      std::vector<int>& groups = reduced[c.where];
      if (idx(c.group) >= groups.size()) groups.resize(idx(c.group) + 1, 0);
      groups[idx(c.group)] = std::max(groups[idx(c.group)], now_[idx(c.last)]);
    }
    for (std::size_t old = 0; old < chain_of_.size(); ++old) {
      int const t = now_[old];
      if (chain_of_[old] < 0 || at(t).step.kind == ir::reshard_kind::slice) continue;
      chain const& c = chains_[idx(chain_of_[old])];
      if (c.what == role::none && phase_of(t) != step_phase::update) continue;
      int const reader = c.reader;
      auto const next = std::upper_bound(places.begin(), places.end(), t);
      int until = reader >= 0 ? now_[idx(reader)] : next != places.end() ? *next : t;
      if (c.what == role::reduction) {            // what is added up is read as late as the next micro-batch
        std::vector<int> const& groups = reduced[c.where];
        if (idx(c.group + ahead_) < groups.size()) until = std::min(until, groups[idx(c.group + ahead_)]);
      }
      for (int b : {at(t).in[0], at(t).workspace})
        if (b >= 0) p_.buffers[idx(b)].last = std::max(p_.buffers[idx(b)].last, until);
    }
  }

 public:
  prefetcher(program& p, computation_graph const& g, int ahead) : p_(p), g_(g), ahead_(ahead) {}
  void run() {
    find_chains();
    if (std::none_of(chains_.begin(), chains_.end(), [](chain const& c) { return c.what != role::none; }))
      return;
    set_keys();
    find_dependences();
    reorder();
    set_lifetimes();
  }
};

}  // namespace detail

/// Starts collectives ahead, as FSDP and Megatron do. Weights that are kept in parts are gathered while the
/// `ahead` operators with such weights before theirs compute. Other results are brought to who reads them as
/// soon as they are made, before at most `ahead` others. Gradients are reduced as soon as they are made; what
/// reads the result, an update or a sum, waits until the gradients of `ahead` further operators are on their
/// way. So a device computes while it communicates, and what is communicated lives longer. Values on the same
/// devices are counted together; what goes to other devices stays where it is. Sets the lifetimes of buffers;
/// persistent ones are left to the caller. Precondition: no offsets yet, `g` is the graph of the program's
/// nodes. O(tasks log).
/// Laws: the same tasks in another order, in which every task reads and overwrites what it did; one device's
/// tasks, or one of those that do the same, are in the order of the whole program.
template <class = void>
void prefetch(program& p, computation_graph const& g, int ahead) {
  if (ahead > 0) detail::prefetcher(p, g, ahead).run();
}

#ifdef TENSORPAR_COMPILED
extern template void prefetch<>(program& p, computation_graph const& g, int ahead);
#endif

}  // namespace tensorpar::passes
