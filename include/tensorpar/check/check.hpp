// tensorpar/check/check.hpp - an independent checker: is this program a correct training step of this graph
// under this plan?
#pragma once
#include <tensorpar/check/compute.hpp>
#include <tensorpar/check/fused.hpp>
#include <tensorpar/check/memory.hpp>
#include <tensorpar/check/moves.hpp>

namespace tensorpar {

/// Does the plan fit graph and cluster: made for this graph, every loop split in parts that divide it, every
/// part on a device of its own? Empty: accepted. O(nodes + different sharded operators * devices).
inline std::vector<finding> check(training_graph const& t, plan const& p, std::size_t limit = 50) {
  findings out(limit);
  detail::check::facts known(p.cluster.size());
  detail::check::check_plan(t, p, known, out);
  return out.take();
}

namespace detail::check {
template <class = void>
std::vector<finding> check_all(training_graph const& t, plan const& p, program const& q, bool updates,
                                      std::size_t limit, bool promised = true) {
  findings out(limit);
  facts known(p.cluster.size());
  check_plan(t, p, known, out);
  if (out.empty() && !q.listed_for.empty())
    out.add({fault::malformed, -1, -1, -1, -1,
             "the program lists one device only of those that do the same: it is there to be simulated"});
  if (out.empty()) check_program_form(t, p, q, known, out);
  if (!out.empty()) return out.take();                   // what follows relies on the form
  bool fused = false;
  for (task const& k : q.tasks) fused = fused || (k.kind == task_kind::compute && is_fused(k.op));
  apart_program const apart = fused ? taker_apart(t, p, q, out).run() : apart_program{};
  if (!out.empty()) return out.take();
  replay(t, p, fused ? apart.tasks : q, known, out, apart.number).run(updates);
  check_memory(t.graph, p, q, out, -1, promised);
  return out.take();
}
#ifdef TENSORPAR_COMPILED
extern template std::vector<finding> check_all<>(training_graph const& t, plan const& p, program const& q,
    bool updates, std::size_t limit, bool promised);
#endif
}  // namespace detail::check

/// All of the above and the program: it is replayed task by task, without numbers but with every device's
/// boxes and contributions to sums. Accepted (empty) means:
///  - every operator runs once per micro-batch, every update once, on the devices and parts that the plan
///    says;
///  - every operand is there, complete, of the right micro-batch, in exactly the part that the operator's
///    notation asks for;
///  - reshards do what they state; each is joined by all of its devices, and all devices see one order, so
///    none waits for ever;
///  - every copy of a parameter is updated, with the gradients of all devices and micro-batches, each added
///    once;
///  - a buffer has memory whenever it is used, shares it with nobody meanwhile, and the arenas fit their
///    devices and the prediction.
/// Operators may come in any order in which this holds: that it is the plan's is for the certificate's hashes
/// to say. Fused programs (program/fuse_tasks.hpp) are taken apart into the graph's operators before
/// (check/fused.hpp).
/// Independent: it includes nothing of the search or the unrolling, only the meaning of notations and
/// shardings. No program makes it crash. At most `limit` findings. O(tasks + placements * log), and
/// O(devices) for every operator, mesh, layout and reshard unlike all others, of exchanges O(senders *
/// receivers).
inline std::vector<finding> check(training_graph const& t, plan const& p, program const& q,
                                  std::size_t limit = 50) {
  return detail::check::check_all(t, p, q, true, limit);
}
/// The same for a program that evaluates: the forward operators alone, all outputs kept.
inline std::vector<finding> check_forward(training_graph const& t, plan const& p, program const& q,
                                          std::size_t limit = 50) {
  return detail::check::check_all(t, p, q, false, limit);
}

/// Throws `error` with the first finding of `check`, but for promises of the plan: whether arenas fit the
/// cluster's devices and are those that it predicts is no matter of a program that was unrolled with a
/// backend's scratch. `updates`: as in `check`; else `check_forward`.
inline void require_correct(training_graph const& t, plan const& p, program const& q,
                            std::string const& where, bool updates = true) {
  std::vector<finding> const all = detail::check::check_all(t, p, q, updates, 1, false);
  if (!all.empty())
    throw error("the program is no correct step of the graph: " + all.front().text, where,
                "a program that the checker accepts");
}

/// Throws `error` with the first findings, if there are any.
inline void require_accepted(std::vector<finding> const& all, std::string const& where) {
  if (all.empty()) return;
  std::string text = all.front().text;
  for (std::size_t i = 1; i < all.size() && i < 3; ++i) text += "; " + all[i].text;
  if (all.size() > 3) text += "; and " + std::to_string(all.size() - 3) + " more";
  throw error("the plan is not accepted: " + text, where, "a plan that the checker accepts");
}

}  // namespace tensorpar
