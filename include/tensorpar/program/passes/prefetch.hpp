// tensorpar/program/passes/prefetch.hpp - collectives started ahead of the operators that wait for them
#pragma once
#include <algorithm>
#include <deque>
#include <map>
#include <queue>
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/op/kinds/pointwise.hpp>
#include <tensorpar/program/core/lifetimes.hpp>
#include <tensorpar/program/core/program.hpp>
#include <tensorpar/program/passes/chains.hpp>
#include <utility>
#include <vector>

namespace tensorpar::passes {

namespace detail {

// 1. Chains, and their groups on the same devices (chains.hpp). A device's own part is cut out of what
//    arrived by the device that computes: such slices stay with who reads them.
// 2. In a pipeline, what stages send each other goes first: reductions stay where they are, and a weight that
//    is gathered once is so while the pass before the one that reads it computes.
// 3. A key for every task: its place, or the place where it is wanted.
// 4. What is computed again to be communicated goes with it.
// 5. Gradients of weights, for which nobody waits, are computed while others wait for what is brought.
// 6. What is brought first is what is read first.
// 7. Tasks in the order of their keys, as far as what they read and write allows.
class prefetcher : reshard_chains {
  int ahead_;
  std::vector<i64> key_;                 // by task: four times its place, and before or behind it
  std::vector<std::vector<int>> next_;   // by task: those that must follow
  std::vector<int> waits_;               // by task: for how many
  std::vector<int> readers_;             // of what was reduced, and of what follows: tasks
  std::vector<int> now_;                 // by task: its new place

  void set_keys() {
    auto const gathers = number_groups(role::gather), activations = number_groups(role::activation),
               reductions = number_groups(role::reduction);
    auto const earlier = [&](chain const& c, std::map<place, std::vector<int>> const& groups) {
      return 4 * i64{groups.at(c.where)[idx(std::max(0, c.group - ahead_))]} - 1;
    };
    std::vector<int> once(p_.buffers.size(), 0);             // how often a weight is gathered
    for (chain const& c : chains_) once[idx(at(c.first).in[0])] += c.what == role::gather;
    key_.resize(p_.tasks.size());
    for (std::size_t t = 0; t < key_.size(); ++t) {
      key_[t] = 4 * static_cast<i64>(t);
      if (chain_of_[t] < 0) continue;
      chain const& c = chains_[idx(chain_of_[t])];
      bool const waits = c.waits >= 0 && static_cast<int>(t) >= c.waits;
      if (c.what == role::gather && !waits)
        key_[t] = pipeline_ && once[idx(at(c.first).in[0])] == 1 ? a_pass_before(c)
                  : c.group < ahead_                             ? -1
                                                                 : earlier(c, gathers);
      if (c.what == role::activation && !waits) {
        bool const recomputed = again(c.root);
        key_[t] = std::max(recomputed ? 0 : 4 * i64{c.root} + 1, earlier(c, activations));
      }
      if (c.what == role::reduction)
        key_[t] = waits ? latest(c, reductions) : 4 * i64{c.root} + 1;
    }
    for (chain& c : chains_)
      if (c.what == role::activation && c.root >= 0 && again(c.root))
        move_ahead(c.root, earlier(c, activations) - 1);
    compute_late();
    for (std::size_t t = 0; t < key_.size(); ++t)
      for (int m : makers_[t]) {
        chain const* const c = chain_with(m);
        if (p_.tasks[t].kind != task_kind::compute || !c || c->what != role::reduction) continue;
        key_[t] = std::max(key_[t], latest(*c, reductions));
        readers_.push_back(static_cast<int>(t));
      }
    follow_roots();
  }
  /// Where the pass of a group begins that comes before the one that reads this; -1 in the first two.
  i64 a_pass_before(chain const& c) const {
    auto const all = sends_.find(c.where);
    if (all == sends_.end()) return 4 * i64{c.first};
    auto const next = std::lower_bound(all->second.begin(), all->second.end(), c.first);
    return next - all->second.begin() < 2 ? -1 : 4 * i64{*(next - 2)} + 1;
  }
  /// Is it computed once more, or moved for that?
  bool again(int t) const { return at(t).node >= 0 && g_.node(at(t).node).recomputed; }
  /// With what it needs, as far as that is computed again, too. Not into another pass.
  void move_ahead(int t, i64 key) {
    if (key_[idx(t)] <= key || key < 0) return;
    int const before = static_cast<int>(key / 4);
    if (at(before).node < 0 || phase_of(before) != step_phase::backward) return;
    key_[idx(t)] = key;
    for (int m : makers_[idx(t)])
      if (again(m) && at(m).micro_batch == at(t).micro_batch) move_ahead(m, key);
  }
  /// By task: a gradient of weights, which only sums, updates and their reshards read.
  std::vector<char> weight_gradients() const {
    std::vector<char> r(p_.tasks.size(), 0);
    auto const computes = [&](int t) { return at(t).kind == task_kind::compute && at(t).node >= 0; };
    for (int t = 0; t < static_cast<int>(r.size()); ++t)
      r[idx(t)] = computes(t) && phase_of(t) == step_phase::backward && !again(t);
    for (int t = static_cast<int>(r.size()) - 1; t >= 0; --t) {
      bool const reduced = chain_of_[idx(t)] >= 0 && chains_[idx(chain_of_[idx(t)])].what == role::reduction;
      bool const adds = at(t).op.is<add>() && r[idx(t)];
      if (reduced || adds || (computes(t) && phase_of(t) == step_phase::update)) continue;
      for (int m : makers_[idx(t)]) r[idx(m)] = 0;
    }
    for (int t = 0; t < static_cast<int>(r.size()); ++t)
      if (r[idx(t)] && at(t).op.is<add>()) r[idx(t)] = 0;
    return r;
  }
  /// Each gradient of weights moves to where the next result is waited for, unless `ahead` others are made
  /// before.
  void compute_late() {
    std::vector<char> const late = weight_gradients();
    std::vector<std::size_t> waits(p_.tasks.size(), 0);          // by task: results that are brought to it
    for (chain const& c : chains_)
      if (c.what == role::activation && c.reader >= 0 && !again(c.root)) ++waits[idx(c.reader)];
    std::map<place, std::deque<int>> open;
    for (int t = 0; t < static_cast<int>(p_.tasks.size()); ++t) {
      task const& x = at(t);
      if (x.kind != task_kind::compute || x.node < 0) continue;
      std::deque<int>& queue = open[{x.mesh.start, x.mesh.size()}];
      if (late[idx(t)]) {
        queue.push_back(t);
        if (static_cast<int>(queue.size()) > ahead_) queue.pop_front();
      } else if (phase_of(t) == step_phase::update) {
        queue.clear();
      } else if (!again(t)) {
        for (std::size_t n = std::min(queue.size(), waits[idx(t)]); n > 0; --n, queue.pop_front())
          key_[idx(queue.front())] = 4 * i64{t} - 2;
      }
    }
  }
  /// Reshards stand behind what makes their operand. Of results on the same devices, those that are read
  /// first are brought first.
  void follow_roots() {
    std::vector<chain const*> all;
    for (chain const& c : chains_) {
      if (c.what == role::reduction && c.root >= 0) bring(c, key_[idx(c.root)] + 1);
      if (c.what == role::activation && c.reader >= 0) all.push_back(&c);
    }
    std::stable_sort(all.begin(), all.end(), [&](chain const* a, chain const* b) {
      return key_[idx(a->reader)] < key_[idx(b->reader)];
    });
    std::map<place, i64> latest_key;
    for (chain const* c : all) {
      i64& k = latest_key.try_emplace(c->where, 0).first->second;
      bring(*c, std::max(k, key_[idx(c->root)] + 1));
      k = std::max(k, key_[idx(c->first)]);
    }
  }
  /// The reshards of a chain not before this key, but for those that wait.
  void bring(chain const& c, i64 key) {
    int const end = c.waits >= 0 ? c.waits : c.last + 1;
    for (int t = c.first; t < end; ++t)
      if (chain_with(t) == &c) key_[idx(t)] = std::max(key_[idx(t)], key);
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
    all.reserve(p_.tasks.size());
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
  prefetcher(program& p, computation_graph const& g, int ahead) : reshard_chains(p, g), ahead_(ahead) {}
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

/// Starts collectives ahead, as FSDP and Megatron do, so that a device computes while it communicates:
/// - Weights that are kept in parts are gathered while the `ahead` operators with such weights before theirs
///   compute, the first ones from the start.
/// - Other results are brought to who reads them as soon as they are made, before at most `ahead` others.
///   What is recomputed for that comes before them.
/// - A gradient of weights is computed where the device would wait for such a result, unless `ahead` others
///   are made before.
/// - Gradients are reduced as soon as they are made. What reads the result, an update or a sum, waits until
///   the gradients of `ahead` further operators are on their way.
/// - In a pipeline weights that are gathered once are so one pass ahead, and gradients that are reduced once
///   are so where they stand.
/// What is communicated lives longer. Values on the same devices are counted together; what goes to other
/// devices stays where it is. Sets the lifetimes of buffers; persistent ones are left to the caller.
/// Precondition: no offsets yet, `g` is the graph of the program's nodes. O(tasks log).
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
