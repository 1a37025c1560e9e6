// tensorpar/program/passes/chains.hpp - reshards of a program, one behind the other, and what they bring to
// whom
#pragma once
#include <algorithm>
#include <map>
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/op/kinds/pointwise.hpp>
#include <tensorpar/program/core/program.hpp>
#include <utility>
#include <vector>

namespace tensorpar::passes::detail {

/// Chains: reshards, one behind the other, that bring a value to one operator. `gathers` bring a weight that
/// is kept in parts, `reductions` a gradient to its update or its sum, `activations` other results. Chains on
/// the same devices are numbered in groups, as they stand in the program: by operator, reductions by the
/// operator whose weights' gradients they are. O(tasks log).
class reshard_chains {
 protected:
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
  std::vector<chain> chains_;
  std::vector<int> chain_of_;            // by task; -1
  bool pipeline_;                        // groups of devices send each other results
  std::map<place, std::vector<int>> sends_;        // by group of a pipeline: at the end of its passes
  std::vector<std::vector<int>> makers_; // by task: those that made what it reads

  reshard_chains(program& p, computation_graph const& g)
      : p_(p), g_(g), pipeline_(std::any_of(p.tasks.begin(), p.tasks.end(), [](task const& x) {
          return x.kind == task_kind::send;
        })) {}

  task const& at(int t) const { return p_.tasks[idx(t)]; }
  buffer const& of(int b) const { return p_.buffers[idx(b)]; }
  step_phase phase_of(int t) const { return g_.node(at(t).node).phase; }

  chain* chain_with(int t) { return chain_of_[idx(t)] < 0 ? nullptr : &chains_[idx(chain_of_[idx(t)])]; }

  void find_chains() {
    std::vector<int> maker(p_.buffers.size(), -1);
    chain_of_.assign(p_.tasks.size(), -1);
    makers_.resize(p_.tasks.size());
    for (int t = 0; t < static_cast<int>(p_.tasks.size()); ++t) {
      task const& x = at(t);
      if (x.kind == task_kind::reshard && x.node >= 0) join_chain(t, maker[idx(x.in[0])]);
      if (x.kind == task_kind::send) {
        ir::layout const& l = of(x.in[0]).where;
        sends_[{l.start, l.size()}].push_back(t);
      }
      for (int b : x.in) if (maker[idx(b)] >= 0) makers_[idx(t)].push_back(maker[idx(b)]);
      if (x.kind == task_kind::compute)
        for (int m : makers_[idx(t)])
          if (chain* const c = chain_with(m); c && c->reader < 0) c->reader = t;
      for (int b : x.out) maker[idx(b)] = t;
    }
  }

 private:
  void join_chain(int t, int before) {
    task const& x = at(t);
    bool const goes_on = before >= 0 && chain_of_[idx(before)] >= 0 && at(before).node == x.node &&
                         at(before).micro_batch == x.micro_batch;
    chain_of_[idx(t)] = goes_on ? chain_of_[idx(before)] : static_cast<int>(chains_.size());
    if (!goes_on) {
      bool const update = phase_of(t) == step_phase::update;
      bool const made = before >= 0 && at(before).kind == task_kind::compute,
                 backward = made && phase_of(before) == step_phase::backward;
      bool const stays = pipeline_ && !g_.node(x.node).op.is<add>();        // not a micro-batch's, to its sum
      role const what = of(x.in[0]).persistent ? (update ? role::none : role::gather)
                        : update ? (backward && !stays ? role::reduction : role::none)
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

 protected:
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
};

}  // namespace tensorpar::passes::detail
