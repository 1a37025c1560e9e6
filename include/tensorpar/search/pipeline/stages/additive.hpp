// tensorpar/search/pipeline/stages/additive.hpp - stages priced from plain numbers per operator
#pragma once
#include <array>
#include <map>
#include <string>
#include <tensorpar/core/error.hpp>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/graph/adjacency.hpp>
#include <tensorpar/search/pipeline/stages/stage_model.hpp>
#include <utility>

namespace tensorpar::search {

/// What is known of one operator. Seconds are those of one sample at full efficiency on a device of speed 1;
/// a micro-batch of s samples takes `launch + seconds * (s + half)` per pass, so that `half` samples reach
/// half of the rate. A pass of 0 seconds costs nothing.
struct operator_numbers {
  double forward = 0, backward = 0, weights = 0;  // seconds per sample
  double launch = 0, half = 0;
  double parameters = 0;  // bytes
  double kept = 0;        // bytes per sample that the backward pass needs
  double result = 0;      // bytes per sample that tensor-parallel parts exchange in each direction
  double scratch = 0;     // bytes per sample of a micro-batch while it runs
  friend bool operator==(operator_numbers const&, operator_numbers const&) = default;
};

/// Devices in their order and how they are joined.
struct stage_devices {
  struct device {
    double speed = 1, memory = infinity;  // relative to the seconds above; bytes
    friend bool operator==(device const&, device const&) = default;
  };
  std::vector<device> list;
  int per_node = 1 << 30;
  // bytes/s of a device, one direction, within a node and between nodes
  double inner_bandwidth = infinity, outer_bandwidth = infinity;
  double inner_latency = 0, outer_latency = 0;              // seconds

  static stage_devices equal(int n, double memory = infinity) {
    stage_devices d;
    d.list.assign(idx(n), {1, memory});
    return d;
  }
};

/// A model of `stage_model` from numbers per operator.
/// Data parallel: each copy takes micro_batch / data samples; gradients are all-reduced once per mini-batch
/// on a ring, 2 (d-1)/d bytes/link. Tensor parallel: 1/tensor of compute and parameters, and results gathered
/// once per pass ((t-1)/t of their bytes per sample). Optimizer state: `states` times the parameters, beside
/// parameters and gradients. Between stages: latency + bytes / link in each pass, copies at once; the link is
/// the one between nodes unless all devices are in one node (a stage does not know where its neighbours are).
class additive_stages {
  std::vector<operator_numbers> operators_;
  std::vector<stage_tensor> tensors_;
  stage_devices devices_;
  std::vector<stage_choice> degrees_;
  std::vector<int> kind_;
  i64 mini_batch_ = 1;
  double states_ = 2;
  bool uniform_ = true;

  bool one_node(int first, int n) const {
    if (uniform_) return n <= devices_.per_node;
    return first / devices_.per_node == (first + n - 1) / devices_.per_node;
  }
  double speed(int first, int n) const {
    double s = devices_.list[idx(uniform_ ? 0 : first)].speed;
    if (!uniform_)
      for (int i = first; i < first + n; ++i)
        s = devices_.list[idx(i)].speed < s
                ? devices_.list[idx(i)].speed
                : s;
    return s;
  }

 public:
  struct options {
    i64 mini_batch = 1;
    double states = 2;                                // Adam keeps two
    // degrees are powers of two up to these and the number of devices
    int max_data = 1 << 20, max_tensor = 1;
    bool recompute = false, shard_optimizer = false;  // offer these too
  };

  /// Throws `error` where there is no operator or device, a number is negative, a device has no speed, or a
  /// tensor names no operator.
  additive_stages(std::vector<operator_numbers> operators, std::vector<stage_tensor> tensors,
                  stage_devices devices, options const& o)
      : operators_(std::move(operators)),
        tensors_(std::move(tensors)),
        devices_(std::move(devices)),
        mini_batch_(o.mini_batch),
        states_(o.states) {
    auto refuse = [](std::string what, std::string valid) {
      throw error(std::move(what), "additive_stages", std::move(valid));
    };
    if (operators_.empty() || devices_.list.empty())
      refuse("no operators or no devices", "at least one of each");
    if (devices_.per_node < 1 || !(devices_.inner_bandwidth > 0) || !(devices_.outer_bandwidth > 0) ||
        !(devices_.inner_latency >= 0) || !(devices_.outer_latency >= 0))
      refuse("links that mean nothing",
             "at least one device per node, positive bandwidths, latencies of 0 or more");
    if (mini_batch_ < 1) refuse("a mini-batch of " + std::to_string(mini_batch_), "at least one sample");
    for (std::size_t v = 0; v < operators_.size(); ++v) {
      operator_numbers const& x = operators_[v];
      for (double y :
           {x.forward, x.backward, x.weights, x.launch, x.half, x.parameters, x.kept, x.result, x.scratch})
        if (!(y >= 0 && y < infinity))
          refuse("operator " + std::to_string(v) + " has a number that is negative or not finite",
                 "0 or more");
    }
    for (stage_tensor const& t : tensors_) {
      bool bad = t.producer < 0 || t.producer >= this->operators() || !(t.bytes >= 0);
      for (int v : t.consumers) bad = bad || v < 0 || v >= this->operators();
      if (bad)
        refuse(
            "a tensor of operator " + std::to_string(t.producer) + " has no such operator or negative bytes",
            "known operators");
    }
    for (stage_devices::device const& d : devices_.list) {
      if (!(d.speed > 0) || !(d.memory >= 0))
        refuse("a device without speed or with negative memory", "a positive speed");
      uniform_ = uniform_ && d == devices_.list.front();
    }
    for (int t = 1; t <= o.max_tensor && t <= this->devices(); t *= 2)
      for (int d = 1; d <= o.max_data && d * t <= this->devices(); d *= 2)
        for (int r = 0; r <= (o.recompute ? 1 : 0); ++r)
          for (int z = 0; z <= (o.shard_optimizer && d > 1 ? 1 : 0); ++z)
            degrees_.push_back({1, 1, d, t, r == 1, z == 1});
    std::map<std::array<double, 9>, int> first;
    for (int v = 0; v < this->operators(); ++v) {
      operator_numbers const& x = operators_[idx(v)];
      kind_.push_back(first
                          .try_emplace({x.forward, x.backward, x.weights, x.launch, x.half, x.parameters,
                                        x.kept, x.result, x.scratch},
                                       v)
                          .first->second);
    }
  }

  int operators() const { return static_cast<int>(operators_.size()); }
  int devices() const { return static_cast<int>(devices_.list.size()); }
  std::vector<stage_tensor> const& tensors() const { return tensors_; }
  std::vector<stage_choice> const& degrees() const { return degrees_; }
  bool admits(stage_choice const& c) const {
    return c.micro_batch % c.data == 0 && mini_batch_ % (c.micro_batch * c.k) == 0;
  }
  int kind(int v) const { return kind_[idx(v)]; }
  bool uniform() const { return uniform_; }
  i64 mini_batch() const { return mini_batch_; }
  i64 own_batch() const { return 1; }
  double capacity(int first, int n) const {
    double m = devices_.list[idx(uniform_ ? 0 : first)].memory;
    if (!uniform_)
      for (int i = first; i < first + n; ++i)
        m = devices_.list[idx(i)].memory < m
                ? devices_.list[idx(i)].memory
                : m;
    return m;
  }

  stage_work work(int v, stage_choice const& c, int first) const {
    operator_numbers const& x = operators_[idx(v)];
    double const each = static_cast<double>(c.micro_batch) / c.data, t = c.tensor,
                 s = speed(first, c.devices());
    bool const close = one_node(first, c.devices());
    double const bandwidth = close ? devices_.inner_bandwidth : devices_.outer_bandwidth,
                 latency = close ? devices_.inner_latency : devices_.outer_latency;
    auto pass_of = [&](double seconds) {
      return seconds > 0 ? (x.launch + seconds * (each + x.half) / t) / s : 0.0;
    };
    double const gather =
        t > 1 && x.result > 0 ? (t - 1) * latency + (t - 1) / t * x.result * each / bandwidth : 0;
    stage_work w;
    w.forward = pass_of(x.forward) + gather;
    w.backward = pass_of(x.backward) + gather;
    w.weights = pass_of(x.weights);
    double const own = x.parameters / t, d = c.data;
    if (c.data > 1 && own > 0) w.once = 2 * (d - 1) * latency + 2 * (d - 1) / d * own / bandwidth;
    w.fixed = own * (2 + states_ / (c.shard_optimizer ? d : 1));
    if (c.recompute) {
      w.backward += w.forward;
      w.fixed += x.kept * each;  // of the one micro-batch that is computed again
    } else {
      w.kept = x.kept / d;
    }
    w.scratch = x.scratch * each / t;
    return w;
  }
  stage_work transfer(stage_border const& b, stage_choice const& c, int) const {
    bool const close = devices() <= devices_.per_node;
    double const bandwidth = close ? devices_.inner_bandwidth : devices_.outer_bandwidth,
                 latency = close ? devices_.inner_latency : devices_.outer_latency;
    stage_work w;
    w.forward = w.backward = (b.tensors_in + b.tensors_out) * latency +
                             (b.in + b.out) * static_cast<double>(c.micro_batch) / c.data / bandwidth;
    w.kept = b.in / c.data;
    return w;
  }
};
static_assert(stage_model<additive_stages>);

/// One tensor per node with successors, all of these bytes: for graphs of which only edges are known.
template <graph::topology G>
std::vector<stage_tensor> tensors_of(G const& g, std::vector<double> const& bytes) {
  graph::adjacency const& a = graph::detail::as_adjacency(g);
  std::vector<stage_tensor> r;
  for (int v = 0; v < a.node_count(); ++v)
    if (auto const s = a.successors(v); s.size() > 0)
      r.push_back({v, bytes[idx(v)], std::vector<int>(s.begin(), s.end())});
  return r;
}

}  // namespace tensorpar::search
