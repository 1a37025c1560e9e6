// tensorpar/program/fuse_tasks.hpp - tasks of a program that one pass over memory does at once, made one
// (op/kinds/fused.hpp)
#pragma once
#include <algorithm>
#include <optional>
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/machine/machine_check.hpp>
#include <tensorpar/op/kinds/fused.hpp>
#include <tensorpar/program/arena.hpp>
#include <tensorpar/program/keep_lse.hpp>

namespace tensorpar::passes {

namespace detail {

/// Is the text "ab..z->z": the sum of everything but the last axis?
inline bool sums_to_last(std::string_view s) {
  return s.find(',') == s.npos && s.size() >= 4 && s.substr(s.size() - 3, 2) == "->" &&
         s[s.size() - 4] == s.back() && s.find(s.back()) == s.size() - 4;
}
/// Of a product "...z,...->zx..." whose first operand keeps its last axis alone: may sums of the first
/// operand to that axis be its second result?
inline bool keeps_last_of_first(std::string_view s) {
  auto const comma = s.find(','), arrow = s.find("->");
  if (comma == s.npos || comma == 0) return false;
  std::string_view const a = s.substr(0, comma), out = s.substr(arrow + 2);
  for (char const c : a.substr(0, comma - 1)) if (out.find(c) != out.npos) return false;
  return out.find(a.back()) != out.npos;
}

class task_fuser {
  program p_;
  kernel_rule can_;
  workspace_rule workspace_;
  std::vector<char> gone_;                             // by task
  std::vector<std::vector<int>> readers_, writers_;    // by buffer: tasks, ascending
  // by buffer: lives beyond its last use; is a value that no task ever used
  std::vector<char> kept_, idle_;
  std::vector<int> next_;                              // by buffer: the one in its place, or -1
  // by buffer: the task until which it is kept from others although it is not used, or -1
  std::vector<int> longer_;

  task& at(int t) { return p_.tasks[idx(t)]; }
  buffer const& of(int b) const { return p_.buffers[idx(b)]; }
  static void put(std::vector<int>& all, int t) {
    auto const i = std::lower_bound(all.begin(), all.end(), t);
    if (i == all.end() || *i != t) all.insert(i, t);
  }
  static void remove(std::vector<int>& all, int t) {
    all.erase(std::remove(all.begin(), all.end(), t), all.end());
  }
  /// Has the list a task in [from, to)?
  static bool any_in(std::vector<int> const& all, int from, int to) {
    auto const i = std::lower_bound(all.begin(), all.end(), from);
    return i != all.end() && *i < to;
  }
  void note(int t) {
    for (int b : at(t).in) put(readers_[idx(b)], t);
    for (int b : at(t).out) put(writers_[idx(b)], t);
  }
  void forget(int t) {
    for (int b : at(t).in) remove(readers_[idx(b)], t);
    for (int b : at(t).out) remove(writers_[idx(b)], t);
  }
  bool alike(int a, int b) const { return of(a).where == of(b).where && of(a).type == of(b).type; }
  /// Is b for reader j alone, and no other's place but that of what j makes?
  bool for_one(int b, int j) {
    if (kept_[idx(b)] || of(b).persistent || readers_[idx(b)] != std::vector<int>{j} ||
        writers_[idx(b)].size() != 1)
      return false;
    return next_[idx(b)] < 0 || next_[idx(b)] == at(j).out[0];
  }
  /// May task j be done where i is? All that it reads but i's own results must be there, and where it writes
  /// nothing else.
  bool early(int i, int j) {
    task const &a = at(i), &b = at(j);
    if (a.devices != b.devices || a.micro_batch != b.micro_batch || b.kind != task_kind::compute)
      return false;
    auto const own = [&](int x) { return std::find(a.out.begin(), a.out.end(), x) != a.out.end(); };
    for (int x : b.in) if (!own(x) && any_in(writers_[idx(x)], i, j)) return false;
    for (int x : b.out) {
      int const before = of(x).in_place_of;
      if (own(x) || any_in(writers_[idx(x)], i, j) || any_in(readers_[idx(x)], i, j)) return false;
      if (before >= 0 && any_in(readers_[idx(before)], i, j)) return false;
    }
    return true;
  }
  /// Makes task i, with j's work, this one; if there is a kernel for it.
  bool become(int i, int j, op::any_op const& o, std::vector<int> in, std::vector<int> out) {
    bool narrow = false;
    for (auto const* side : {&in, &out}) for (int b : *side) narrow = narrow || is_narrow(of(b).type.type);
    if (!can_(o, narrow)) return false;
    forget(i);
    forget(j);
    gone_[idx(j)] = true;
    task& t = at(i);
    if (t.workspace < 0) t.workspace = at(j).workspace;
    detail::become(p_, t, o, std::move(in), std::move(out), workspace_);
    t.name += " + " + std::string(at(j).op.op->name);
    std::size_t const n = p_.buffers.size();
    readers_.resize(n);
    writers_.resize(n);
    kept_.resize(n, false);
    next_.resize(n, -1);
    note(i);
    return true;
  }
  /// The other operand of a sum of b and something; -1: b and b.
  int other_of(int j, int b) {
    std::vector<int> const& in = at(j).in;
    return in[0] == in[1] ? -1 : in[0] == b ? in[1] : in[0];
  }
  static std::vector<int> with(std::vector<int> all, int b) {
    all.push_back(b);
    return all;
  }

  /// j reads i's first result.
  bool join(int i, int j) {
    task const &t = at(i), &u = at(j);
    int const y = t.out[0];
    if (u.op.is<gelu>() && t.op.is<linear>() && of(u.out[0]).in_place_of < 0 && alike(y, u.out[0]))
      return become(i, j, op::linear_with{t.op.as<linear>().bias, true, false}, t.in, {y, u.out[0]});
    if (!for_one(y, j)) return false;
    int made = u.out[0], with_it = -1;
    std::optional<op::any_op> o;
    if (u.op.is<add>()) {
      with_it = other_of(j, y);
      if (t.op.is<linear>()) {
        o = op::linear_with{t.op.as<linear>().bias, false, true};
      } else if (t.op.is<contraction>() && t.in.size() == 2) {
        o = op::contraction_with{t.op.as<contraction>(), false, true, false};
      } else if (t.op.is<op::contraction_with>()) {
        auto c = t.op.as<op::contraction_with>();
        if (c.slope || c.plus) return false;
        c.plus = true;
        o = c;
      } else if (auto n = norm_grads_of(t)) {
        if (n->plus) return false;
        n->plus = true;
        o = *n;
      }
    } else if (u.op.is<gelu_grad>() && u.in[1] != y && t.op.is<contraction>() && t.in.size() == 2) {
      with_it = u.in[1];
      o = op::contraction_with{t.op.as<contraction>(), true, false, false};
    }
    if (!o || with_it < 0 || !alike(y, made) || !alike(y, with_it)) return false;
    std::vector<int> out = t.out;
    out[0] = made;
    if (!become(i, j, *o, with(t.in, with_it), std::move(out))) return false;
    // no product takes another's place
    if (of(made).in_place_of == y) p_.buffers[idx(made)].in_place_of = -1;
    return true;
  }
  static std::optional<op::norm_grads> norm_grads_of(task const& t) {
    if (t.op.is<layernorm_grad_x>()) return op::norm_grads{t.op.as<layernorm_grad_x>().eps, true};
    if (t.op.is<rmsnorm_grad_x>()) return op::norm_grads{t.op.as<rmsnorm_grad_x>().eps, false};
    if (t.op.is<op::norm_grads>()) return t.op.as<op::norm_grads>();
    return {};
  }
  /// j is the gradient of gamma or beta of the norm whose x has its gradient by i.
  bool share_norm(int i, int j, op::norm_grads n) {
    task const &t = at(i), &u = at(j);
    std::vector<int> out = t.out;
    bool const of_layer = u.op.is<layernorm_grad_gamma>(), of_rms = u.op.is<rmsnorm_grad_gamma>();
    if (of_layer || of_rms) {
      double const eps = of_layer ? u.op.as<layernorm_grad_gamma>().eps : u.op.as<rmsnorm_grad_gamma>().eps;
      if (n.gamma || of_layer != n.centred || eps != n.eps || u.in != std::vector<int>{t.in[0], t.in[1]})
        return false;
      n.gamma = true;
      out.insert(out.begin() + 1, u.out[0]);
    } else {
      if (n.beta || !n.centred || !u.op.is<contraction>() || u.in.size() != 1 ||
          !sums_to_last(u.op.as<contraction>().spelled().view()))
        return false;
      n.beta = true;
      out.push_back(u.out[0]);
    }
    if (out.size() == 3 && of(out[1]).type.type != of(out[2]).type.type) return false;
    return become(i, j, n, t.in, std::move(out));
  }
  /// j sums i's first operand to its last axis, which i keeps alone.
  bool share(int i, int j) {
    task const &t = at(i), &u = at(j);
    if (auto const n = norm_grads_of(t)) return share_norm(i, j, *n);
    if (!t.op.is<contraction>() || t.in.size() != 2 || !u.op.is<contraction>() || u.in.size() != 1 ||
        t.in[0] == t.in[1])
      return false;
    auto const product = t.op.as<contraction>();
    if (!keeps_last_of_first(product.spelled().view()) ||
        !sums_to_last(u.op.as<contraction>().spelled().view()))
      return false;
    if (of(u.out[0]).in_place_of >= 0 || of(t.out[0]).type.type != of(u.out[0]).type.type) return false;
    return become(i, j, op::contraction_with{product, false, false, true}, t.in, {t.out[0], u.out[0]});
  }
  bool step(int i) {
    task const& t = at(i);
    if (t.kind != task_kind::compute || t.out.empty() || t.in.empty()) return false;
    // sums first: they go with a plus, and a plus does not become what sums are added to
    for (bool own : {false, true})
      for (int const j : std::vector<int>(readers_[idx(own ? t.out[0] : t.in[0])]))
        if (j > i && early(i, j) && (own ? join(i, j) : share(i, j))) return true;
    return false;
  }

 public:
  task_fuser(program p, kernel_rule can, workspace_rule workspace)
      : p_(std::move(p)), can_(can), workspace_(workspace) {
    std::size_t const n = p_.buffers.size();
    gone_.assign(p_.tasks.size(), false);
    readers_.resize(n);
    writers_.resize(n);
    kept_.assign(n, false);
    idle_.assign(n, false);
    next_.assign(n, -1);
    longer_.assign(n, -1);
    for (std::size_t b = 0; b < n; ++b)
      if (int const before = p_.buffers[b].in_place_of; before >= 0) next_[idx(before)] = static_cast<int>(b);
    for (int t = 0; t < static_cast<int>(p_.tasks.size()); ++t) note(t);
    for (std::size_t b = 0; b < n; ++b) {
      int const last = std::max(readers_[b].empty() ? -1 : readers_[b].back(),
                                writers_[b].empty() ? -1 : writers_[b].back());
      // what the last task touches may be an output, too
      idle_[b] = p_.buffers[b].value >= 0 && last < 0;
      kept_[b] = idle_[b] || (p_.buffers[b].value >= 0 &&
                              p_.buffers[b].last + 1 == static_cast<int>(p_.tasks.size()));
      longer_[b] = !kept_[b] && p_.buffers[b].last > last ? p_.buffers[b].last : -1;
    }
  }
  program run() {
    for (int i = 0; i < static_cast<int>(p_.tasks.size()); ++i) while (!gone_[idx(i)] && step(i)) {}
    std::vector<int> task_now(p_.tasks.size(), -1), buffer_now(p_.buffers.size(), -1), until;
    program r;
    r.micro_batches = p_.micro_batches;
    r.scalar_bytes = p_.scalar_bytes;
    r.listed_for = p_.listed_for;
    std::vector<char> needed = idle_;
    needed.resize(p_.buffers.size(), false);
    for (std::size_t t = 0; t < p_.tasks.size(); ++t) {
      if (gone_[t]) continue;
      for (auto const* side : {&p_.tasks[t].in, &p_.tasks[t].out}) for (int b : *side) needed[idx(b)] = true;
      if (int const w = p_.tasks[t].workspace; w >= 0) needed[idx(w)] = true;
    }
    for (std::size_t b = 0; b < p_.buffers.size(); ++b) {
      if (!needed[b]) continue;
      buffer_now[b] = static_cast<int>(r.buffers.size());
      r.buffers.push_back(std::move(p_.buffers[b]));
      buffer& x = r.buffers.back();
      if (x.in_place_of >= 0) x.in_place_of = buffer_now[idx(x.in_place_of)];
    }
    for (std::size_t t = 0; t < p_.tasks.size(); ++t) {
      until.push_back(gone_[t] ? static_cast<int>(r.tasks.size()) - 1 : static_cast<int>(r.tasks.size()));
      if (gone_[t]) continue;
      task_now[t] = static_cast<int>(r.tasks.size());
      r.tasks.push_back(std::move(p_.tasks[t]));
    }
    int const end = std::max(0, static_cast<int>(r.tasks.size()) - 1);
    std::vector<char> used(r.buffers.size(), false);
    for (int t = 0; t <= end && !r.tasks.empty(); ++t) {
      task& x = r.tasks[idx(t)];
      if (x.other_half >= 0) x.other_half = task_now[idx(x.other_half)];
      auto const use = [&](int& b) {
        if (b < 0) return;
        b = buffer_now[idx(b)];
        buffer& y = r.buffers[idx(b)];
        if (!used[idx(b)]) y.first = t;
        used[idx(b)] = true;
        y.last = t;
      };
      for (int& b : x.in) use(b);
      for (int& b : x.out) use(b);
      use(x.workspace);
    }
    for (std::size_t b = 0; b < kept_.size(); ++b) {
      if (buffer_now[b] < 0) continue;
      buffer& y = r.buffers[idx(buffer_now[b])];
      if (y.persistent) y.first = 0;
      if (y.persistent || kept_[b]) y.last = end;
      else if (!used[idx(buffer_now[b])]) y.first = y.last = 0;
      else if (b < longer_.size() && longer_[b] >= 0) y.last = std::max(y.last, until[idx(longer_[b])]);
    }
    return r;
  }
};

}  // namespace detail

/// The program with fewer tasks. Fused are
///  - a linear with its gelu, or with the sum that follows;
///  - a product of a backward pass with gelu's slope, with a sum (accumulation over micro-batches is one), or
///    with the sums of its first operand that are a bias' gradient;
///  - a norm's gradient with a sum, and with those of gamma and beta;
///  - gradients of attention with the log-sum-exps of its forward pass (keep_lse).
/// A value that only the second task of two would have read is in memory no more. Every device computes what
/// it did, but for rounding: sums are ordered otherwise, and bf16 is rounded once instead of twice. `can`,
/// `workspace`: of the compute policy that is to run it, see `fused` (exec/step/fuse.hpp).
/// Most arenas shrink, some grow a little, for scratch lives at other times. Where one would outgrow what it
/// was and what its device of the cluster has, nothing is kept for attention's gradients, and if that is not
/// enough, the program comes back as it is.
/// The checker (check/check.hpp) takes fused tasks apart. O(tasks * readers of a buffer + packing).
/// Laws (tests/exec/step/fuse.test.cpp): steps give the same parameters, exactly in the prime field; fusing
/// again changes nothing.
inline program fuse_tasks(program const& p, machine const& cluster, kernel_rule can,
                          workspace_rule workspace) {
  require_machine(cluster);
  auto const fused = [&](program from) {
    program r = detail::task_fuser(std::move(from), can, workspace).run();
    assign_offsets(r, cluster.size());
    return r;
  };
  auto const fits = [&](program const& r) {
    for (std::size_t d = 0; d < p.arena.size(); ++d)
      if (r.arena[d] >
          std::max(p.arena[d], cluster.kinds[idx(cluster.device[d])].memory))
        return false;
    return true;
  };
  program kept = keep_lse(p, can, workspace);
  bool const some = kept.buffers.size() > p.buffers.size();
  if (program r = fused(std::move(kept)); fits(r)) return r;
  if (some)
    if (program r = fused(p); fits(r)) return r;
  return p;
}

}  // namespace tensorpar::passes
