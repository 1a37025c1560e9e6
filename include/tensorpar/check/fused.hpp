// tensorpar/check/fused.hpp - the checker takes fused tasks apart into the operators of the graph that they
// stand for
#pragma once
#include <algorithm>
#include <map>
#include <set>
#include <tensorpar/check/form.hpp>
#include <tensorpar/op/attention/lse.hpp>
#include <tensorpar/op/attention/packed.hpp>
#include <tensorpar/op/kinds/fused.hpp>

namespace tensorpar::detail::check {

/// Is it an operator that programs have and graphs do not (program/fuse_tasks.hpp)?
inline bool is_fused(op::any_op const& o) {
  return o.is<op::linear_with>() || o.is<op::contraction_with>() || o.is<op::norm_grads>() || has_lse(o);
}

/// What a fused operator computes, one after another: the operator whose operands are its first ones; what is
/// done with its result; sums.
struct fused_parts {
  // `then` of one operand besides the result: the fused operator's last
  op::any_op main, then;
  // `then` is an addition, maybe of a gradient to its sum over micro-batches
  bool plus = false;
  bool keeps_both = false;               // the results of both
  // of main's first operand: gradients of weights; a contraction is any sum to its last axis
  std::vector<op::any_op> sums;
  // log-sum-exps and what goes with them, behind the operands and results
  int extra_in = 0, extra_out = 0;
};
inline fused_parts parts_of(op::any_op const& o, op::any_op const& linear_there) {
  fused_parts r;
  if (o.is<op::linear_with>()) {
    auto const f = o.as<op::linear_with>();
    // the weight says how wide
    if (linear_there.is<linear>() && linear_there.as<linear>().bias == f.bias) r.main = linear_there;
    r.plus = f.plus;
    r.keeps_both = f.then_gelu;
    if (f.then_gelu) r.then = gelu{};
  } else if (o.is<op::contraction_with>()) {
    auto const f = o.as<op::contraction_with>();
    r.main = f.product;
    r.plus = f.plus;
    if (f.slope) r.then = gelu_grad{};
    if (f.sums) r.sums.push_back(contraction{});
  } else if (o.is<op::norm_grads>()) {
    auto const f = o.as<op::norm_grads>();
    r.main = f.centred ? op::any_op(layernorm_grad_x{f.eps}) : op::any_op(rmsnorm_grad_x{f.eps});
    r.plus = f.plus;
    if (f.gamma)
      r.sums.push_back(f.centred ? op::any_op(layernorm_grad_gamma{f.eps})
                       : op::any_op(rmsnorm_grad_gamma{f.eps}));
    if (f.beta) r.sums.push_back(contraction{});
  } else if (o.is<op::attention_with_lse>()) {
    auto const f = o.as<op::attention_with_lse>();
    r.main = attention{f.heads, f.causal};
    r.extra_out = 1;
  } else if (o.is<packed_attention_with_lse>()) {
    auto const f = o.as<packed_attention_with_lse>();
    r.main = packed_attention{f.heads, f.causal};
    r.extra_out = 1;
  } else if (o.is<op::attention_grad_from_lse>()) {
    r.main = static_cast<attention_grad>(o.as<op::attention_grad_from_lse>());
    r.extra_in = 2;
  } else {
    r.main = static_cast<packed_attention_grad>(o.as<packed_attention_grad_from_lse>());
    r.extra_in = 2;
  }
  if (r.plus) r.then = tensorpar::add{};
  return r;
}
/// Is it "ab..z->z"?
inline bool sums_to_last_axis(op::any_op const& o) {
  if (!o.is<contraction>()) return false;
  op::notation_text const text = o.as<contraction>().spelled();
  std::string_view const s = text.view();
  auto const arrow = s.find("->");
  return arrow != s.npos && arrow > 0 && s.find(',') == s.npos &&
         s.substr(arrow + 2) == s.substr(arrow - 1, 1) && s.find(s[arrow - 1]) == arrow - 1;
}

/// A program in which fused tasks stand as the tasks that they were made of; `number`: of every task, the one
/// that it comes from. What only passes between such tasks lies in buffers without memory.
struct apart_program {
  program tasks;
  std::vector<int> number;
};

/// Takes fused tasks apart and says where one does not compute what the graph has. Precondition:
/// check_program_form found nothing.
class taker_apart {
  computation_graph const& g_;
  plan const& plan_;
  ir::sharding of_all_;                                         // of operators that belong to no other
  program const& q_;
  findings& out_;
  apart_program r_;
  std::map<int, int> lse_of_;                       // buffer of log-sum-exps -> the task that made them
  int now_ = 0;

  buffer const& buf(int b) const { return r_.tasks.buffers[idx(b)]; }
  bool say(char const* what) {
    out_.add({fault::wrong_operand, now_, -1, -1, q_.tasks[idx(now_)].node,
              label(g_, q_, now_) + " " + what});
    return false;
  }
  /// A buffer for value x beside another: it lies like that one.
  int beside(int x, int like) {
    buffer b;
    b.value = x;
    b.type = g_.type(x);
    b.where = buf(like).where;
    b.devices = buf(like).devices;
    b.offset.assign(b.devices.size(), 0);
    r_.tasks.buffers.push_back(std::move(b));
    return static_cast<int>(r_.tasks.buffers.size()) - 1;
  }
  void put(int node, op::any_op const& op, std::vector<int> in, std::vector<int> out, bool where_they_lie) {
    task const& k = q_.tasks[idx(now_)];
    task s;
    s.node = node;
    s.micro_batch = k.micro_batch;
    s.op = op;
    s.name = k.name;
    s.devices = k.devices;
    int const origin = g_.node(node).origin;
    if (where_they_lie) {
      s.mesh = {buf(in[0]).where.start, {}};
      for (ir::layout_axis const& a : buf(in[0]).where.axes)
        s.mesh.axes.push_back({'\0', a.degree, a.stride});
    } else s.mesh = origin >= 0 ? plan_.nodes[idx(origin)].sharding : of_all_;
    s.in = std::move(in);
    s.out = std::move(out);
    r_.tasks.tasks.push_back(std::move(s));
    r_.number.push_back(now_);
  }
  /// Do the task's buffers from `from` on hold these values?
  bool holds(std::vector<int> const& buffers, std::size_t from, std::vector<value_id> const& values) const {
    if (buffers.size() < from + values.size()) return false;
    for (std::size_t i = 0; i < values.size(); ++i)
      if (q_.buffers[idx(buffers[from + i])].value != values[i]) return false;
    return true;
  }
  node_id maker(int b) const {
    return b < 0 || q_.buffers[idx(b)].value < 0 ? node_id() : g_.value(q_.buffers[idx(b)].value).producer;
  }

  /// Log-sum-exps come from the attention of the same operands, whose result is handed over with them.
  bool from_same_attention(task const& k, std::size_t operands) {
    int const y = k.in[operands], lse = k.in[operands + 1];
    auto const made = lse_of_.find(lse);
    if (made == lse_of_.end()) return false;
    task const& f = q_.tasks[idx(made->second)];
    return f.out[0] == y && f.devices == k.devices && f.micro_batch == k.micro_batch &&
           std::equal(f.in.begin(), f.in.end(), k.in.begin() + 1,
                      k.in.begin() + static_cast<std::ptrdiff_t>(operands));
  }
  bool whole(task const& k) {
    if (k.in.empty() || k.out.empty()) return say("has no operands or no results");
    bool const accumulates = !k.in.empty() && !k.out.empty() && k.in.back() == k.out[0];
    node_id const last = k.out.empty() ? node_id() : maker(k.out[0]);
    if (last < 0) return say("makes no result of an operator");
    // the operator that makes the first result is `then`, unless that is an accumulation or both results are
    // kept
    fused_parts parts = parts_of(k.op, g_.node(last).op);
    bool const follows = parts.then.op && !accumulates && !parts.keeps_both;
    node_id first = last;
    if (follows) {
      first = -1;
      for (value_id x : g_.node(last).in)
        if (node_id const p = g_.value(x).producer; p >= 0 && !holds(k.in, k.in.size() - 1, {x})) first = p;
      if (first < 0) return say("does something with a result that it does not make");
      parts = parts_of(k.op, g_.node(first).op);
    }
    graph_node const& main = g_.node(first);
    std::size_t const operands = main.in.size(),
                      ins = operands + (parts.then.op && !parts.keeps_both) + idx(parts.extra_in);
    std::size_t const own = parts.extra_in || parts.extra_out ? main.out.size() : 1;
    std::size_t const outs = own + parts.keeps_both + parts.sums.size() + idx(parts.extra_out);
    if (!parts.main.op || !(parts.main == main.op) || !holds(k.in, 0, main.in) || k.in.size() != ins ||
        k.out.size() != outs)
      return say("does not begin with the operator of its first result, or has other operands and results");
    if (accumulates && !parts.plus) return say("adds to its result what it does not have");
    if (parts.extra_in && !from_same_attention(k, operands))
      return say("starts from log-sum-exps of another attention");
    if (parts.extra_out && q_.buffers[idx(k.out.back())].value >= 0)
      return say("leaves log-sum-exps in the buffer of a value");
    if (parts.extra_out && !lse_of_.insert({k.out.back(), now_}).second)
      return say("leaves log-sum-exps where others are");
    if (parts.extra_in || parts.extra_out) {
      if (!holds(k.out, 0, main.out)) return say("has other results than attention");
      put(first, main.op, {k.in.begin(), k.in.begin() + static_cast<std::ptrdiff_t>(operands)},
          {k.out.begin(), k.out.begin() + static_cast<std::ptrdiff_t>(main.out.size())}, false);
      return true;
    }
    std::vector<int> const read(k.in.begin(), k.in.begin() + static_cast<std::ptrdiff_t>(operands));
    int const made = accumulates || follows ? beside(main.out[0], k.out[0]) : k.out[0];
    put(first, main.op, read, {made}, false);
    if (accumulates) put(last, tensorpar::add{}, {k.out[0], made}, {k.out[0]}, true);
    else if (parts.keeps_both && !function(k, parts, made)) return false;
    else if (follows && !second(k, parts, last, main.out[0], made)) return false;
    return add_sums(k, parts, read[0]);
  }
  bool function(task const& k, fused_parts const& parts, int made) {
    int const v = maker(k.out[1]);
    if (v < 0 || !(g_.node(v).op == parts.then) || g_.node(v).in != std::vector<value_id>{buf(made).value})
      return say("has a second result that is not the function of its first");
    put(v, parts.then, {made}, {k.out[1]}, false);
    return true;
  }
  bool second(task const& k, fused_parts const& parts, node_id v, value_id x, int made) {
    graph_node const& n = g_.node(v);
    int const with = k.in.back();
    bool const turned = parts.plus && n.in.size() == 2 && n.in[1] == x;
    value_id const y = buf(with).value;
    if (!(n.op == parts.then) || n.in != (turned ? std::vector{y, x} : std::vector{x, y}))
      return say("ends with another operator than the graph");
    bool const lie = parts.plus && n.phase == step_phase::backward && buf(with).where == buf(made).where;
    put(v, n.op, turned ? std::vector<int>{with, made} : std::vector<int>{made, with}, {k.out[0]}, lie);
    return true;
  }
  bool add_sums(task const& k, fused_parts const& parts, int of) {
    for (std::size_t i = 0; i < parts.sums.size(); ++i) {
      int const b = k.out[1 + parts.keeps_both + i], v = maker(b);
      if (v < 0) return say("has a sum that is no value");
      graph_node const& n = g_.node(v);
      bool const sum = parts.sums[i].is<contraction>();
      bool const good = sum ? sums_to_last_axis(n.op) && n.in.size() == 1 && n.in[0] == buf(of).value
                            : n.op == parts.sums[i] && n.in.size() == 2 && holds(k.in, 0, n.in);
      if (!good) return say("has a sum that the graph has otherwise");
      put(v, n.op, sum ? std::vector<int>{of} : std::vector<int>{k.in[0], k.in[1]}, {b}, false);
    }
    return true;
  }

 public:
  taker_apart(training_graph const& t, plan const& p, program const& q, findings& out)
      : g_(t.graph), plan_(p), of_all_(mesh_in_use(p)), q_(q), out_(out) {}

  /// Empty of tasks after a finding. O(tasks + buffers).
  apart_program run() {
    r_.tasks = q_;
    r_.tasks.tasks.clear();
    std::vector<int> begins, ends;
    for (now_ = 0; now_ < static_cast<int>(q_.tasks.size()); ++now_) {
      task const& k = q_.tasks[idx(now_)];
      begins.push_back(static_cast<int>(r_.number.size()));
      if (k.kind == task_kind::compute && is_fused(k.op)) {
        if (!whole(k)) return {};
      } else {
        r_.tasks.tasks.push_back(k);
        r_.number.push_back(now_);
      }
      ends.push_back(static_cast<int>(r_.number.size()) - 1);
    }
    for (task& k : r_.tasks.tasks) if (k.other_half >= 0) k.other_half = begins[idx(k.other_half)];
    for (std::size_t b = 0; b < q_.buffers.size(); ++b) {
      buffer& x = r_.tasks.buffers[b];
      int const first = x.first;
      x.first = begins[idx(first)];
      x.last = ends[idx(x.last)];
      // the host feeds it for the part that reads it first
      if (x.value < 0 || g_.value(x.value).role != value_role::input) continue;
      auto const reads = [&](int i) {
        auto const& in = r_.tasks.tasks[idx(i)].in;
        return std::find(in.begin(), in.end(), static_cast<int>(b)) != in.end();
      };
      while (x.first < ends[idx(first)] && !reads(x.first)) ++x.first;
    }
    std::vector<char> seen(r_.tasks.buffers.size(), 0);
    for (int i = 0; i < static_cast<int>(r_.number.size()); ++i)
      for (auto const* side : {&r_.tasks.tasks[idx(i)].in, &r_.tasks.tasks[idx(i)].out})
        for (int b : *side) {
          if (b < static_cast<int>(q_.buffers.size())) continue;
          buffer& x = r_.tasks.buffers[idx(b)];
          if (!seen[idx(b)]) x.first = i;
          seen[idx(b)] = true;
          x.last = i;
        }
    return std::move(r_);
  }
};

}  // namespace tensorpar::detail::check
