// tensorpar/search/pipeline/stages/stage_model.hpp - what a stage partitioner asks: the price of running
// operators as one stage, in adding parts
#pragma once
#include <concepts>
#include <tensorpar/core/config.hpp>
#include <vector>

namespace tensorpar::search {

/// How a stage runs: on data * tensor devices, with micro-batches of so many samples in the order kFkB
/// (thesis, section 3.6).
struct stage_choice {
  i64 micro_batch = 1;           // samples
  int k = 1;                     // of kFkB; 1: 1F1B
  int data = 1, tensor = 1;      // copies that share the micro-batch; parts that share the operators
  // keep what enters the stage, compute the rest again before the backward pass
  bool recompute = false;
  bool shard_optimizer = false;  // ZeRO stage 1: each copy keeps 1/data of the optimizer's state
  constexpr int devices() const { return data * tensor; }
  friend bool operator==(stage_choice const&, stage_choice const&) = default;
};

/// What operators cost on each device of a stage. Adds up over operators, but for scratch space, which they
/// have one after another.
struct stage_work {
  // seconds per micro-batch: activations, gradients of inputs, gradients of weights
  double forward = 0, backward = 0, weights = 0;
  double once = 0;                                // seconds per mini-batch: gradient synchronisation, update
  double fixed = 0;                               // bytes: weights, gradients, optimizer state
  double kept = 0;                                // bytes for every sample that the stage has in flight
  // bytes that live for part of a pass only; of several operators the most
  double scratch = 0;
  stage_work& operator+=(stage_work const& o) {
    forward += o.forward;
    backward += o.backward;
    weights += o.weights;
    once += o.once;
    fixed += o.fixed;
    kept += o.kept;
    scratch = scratch < o.scratch ? o.scratch : scratch;
    return *this;
  }
  double micro_batch_seconds() const { return forward + backward + weights; }
  /// Seconds of the stage's devices per sample, what happens once sharded over the mini-batch: the TPS of the
  /// thesis, equation 3.1.
  double per_sample(i64 micro_batch, i64 mini_batch) const {
    return micro_batch_seconds() / static_cast<double>(micro_batch) + once / static_cast<double>(mini_batch);
  }
  double bytes(i64 in_flight) const { return fixed + kept * static_cast<double>(in_flight) + scratch; }
  friend bool operator==(stage_work const&, stage_work const&) = default;
};

/// A tensor between operators. Bytes of one sample's part.
struct stage_tensor {
  int producer = -1;
  double bytes = 0;
  std::vector<int> consumers;  // ascending, each once
};

/// What crosses a stage's border: every tensor that enters it counts once, however many operators of the
/// stage read it, and every tensor that leaves it counts once, however many stages read it. Gradients cross
/// the other way. Bytes of one sample.
struct stage_border {
  double in = 0, out = 0;
  int tensors_in = 0, tensors_out = 0;
  friend bool operator==(stage_border const&, stage_border const&) = default;
};

/// Where a stage runs, and how.
struct stage_place {
  stage_choice choice;
  int first = 0;  // device
};

/// What weights come to that operators of several stages read: by stage. Empty: no operators share any.
struct stage_sharing {
  std::vector<int> from;      // the stage where weights of this one live, -1: they are its own
  std::vector<double> wait;   // seconds: their way here, once, before the stage's first forward pass can end
  // seconds: once, after all passes, to get what other stages add to the gradients of weights that live here
  std::vector<double> join;
  // of each device: copies of such weights and sums of their gradients, without what `work` counts
  std::vector<double> bytes;
  // of each device: gradients that are to be added, when next to nothing is in flight any more
  std::vector<double> after;
  bool empty() const { return from.empty(); }
};

/// A stage model prices stages of one training step; operators are numbered as the nodes of the graph that is
/// partitioned.
///
/// Valid expressions (m a constant M; v an operator; c a `stage_choice`; `first` the first of its c.devices()
/// consecutive devices):
///  - `m.operators()`, `m.devices()` -> int
///  - `m.tensors()`            -> std::vector<stage_tensor> const&, by producer
///  - `m.degrees()`            -> std::vector<stage_choice>: degrees and flags to choose from (micro_batch
///    and k are ignored)
///  - `m.admits(c)`            -> bool: can a micro-batch of this size be divided so?
///  - `m.kind(v)`              -> int in [0, operators()): operators of one kind have equal `work` under
///    equal arguments
///  - `m.work(v, c, first)`    -> stage_work of one operator
///  - `m.transfer(b, c, first)`-> stage_work of a border: seconds in `forward` and `backward`, received bytes
///    that are kept in `kept`
///  - `m.uniform()`            -> bool: no price depends on `first`. Then groups are placed by size, largest
///    first, so that groups of
///  powers
///                                of two never cross a border of devices that they could avoid, and `work`
///                                may rely on that.
///  - `m.capacity(first, n)`   -> double, bytes of the device with the least memory among them
///  - `m.mini_batch()`         -> i64, samples per training step
///  - `m.own_batch()`          -> i64, every micro-batch is a multiple of it (1 unless shapes are bound to a
///    batch)
/// Semantics: a stage is priced by the sum of its operators' work and its border's transfer: transfers are
/// added to compute, not hidden. Laws: nothing is negative or infinite; deterministic; `transfer` is linear:
/// nothing for an empty border, and the border's four members
///   each times a price.
/// Complexity expected: `work` is asked once per kind and choice, `transfer` four times per choice.
/// Optional (`knows_sharing`), where stages may share weights; both or none:
///  - `m.sharers()`            -> std::vector<std::vector<int>> const&: of each weight that several operators
///    read, these, ascending
///  - `m.sharing(of, places)`  -> stage_sharing: operator v runs in stage of[v]. Law: no seconds for what
///    only one stage reads
/// Minimal definition: all but the optional ones. Models: `additive_stages`, `graph_stages<cost model>`, any
/// user type.
template <class M>
concept stage_model = requires(M const& m, int v, stage_choice const& c, stage_border const& b) {
  { m.operators() } -> std::convertible_to<int>;
  { m.devices() } -> std::convertible_to<int>;
  { m.tensors() } -> std::convertible_to<std::vector<stage_tensor> const&>;
  { m.degrees() } -> std::convertible_to<std::vector<stage_choice>>;
  { m.admits(c) } -> std::convertible_to<bool>;
  { m.kind(v) } -> std::convertible_to<int>;
  { m.work(v, c, v) } -> std::convertible_to<stage_work>;
  { m.transfer(b, c, v) } -> std::convertible_to<stage_work>;
  { m.uniform() } -> std::convertible_to<bool>;
  { m.capacity(v, v) } -> std::convertible_to<double>;
  { m.mini_batch() } -> std::convertible_to<i64>;
  { m.own_batch() } -> std::convertible_to<i64>;
};

/// A stage model that says what weights cost which stages share; expressions and law: see `stage_model`.
template <class M>
concept knows_sharing = stage_model<M> &&
    requires(M const& m, std::vector<int> const& of, std::vector<stage_place> const& places) {
  { m.sharers() } -> std::convertible_to<std::vector<std::vector<int>> const&>;
  { m.sharing(of, places) } -> std::convertible_to<stage_sharing>;
};

namespace detail {

/// The model's, or none.
template <stage_model M> std::vector<std::vector<int>> const& sharers_of(M const& m) {
  static std::vector<std::vector<int>> const none;
  if constexpr (knows_sharing<M>) return m.sharers();
  else return none;
}
template <stage_model M>
stage_sharing sharing_of(M const& m, std::vector<int> const& of, std::vector<stage_place> const& places) {
  if constexpr (knows_sharing<M>)
    if (!m.sharers().empty()) return m.sharing(of, places);
  return {};
}

}  // namespace detail

}  // namespace tensorpar::search
