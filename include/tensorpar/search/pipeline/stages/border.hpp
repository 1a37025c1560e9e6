// tensorpar/search/pipeline/stages/border.hpp - what crosses the border of a set of operators that grows one
// by one
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/search/pipeline/stages/stage_model.hpp>
#include <vector>

namespace tensorpar::search::detail {

/// Which tensors an operator makes and reads.
class tensor_uses {
  std::vector<stage_tensor> const* tensors_;
  std::vector<std::vector<int>> made_, read_;

 public:
  tensor_uses(std::vector<stage_tensor> const& tensors, int operators)
      : tensors_(&tensors),
        made_(idx(operators)),
        read_(idx(operators)) {
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      if (tensors[t].consumers.empty()) continue;
      made_[idx(tensors[t].producer)].push_back(static_cast<int>(t));
      for (int v : tensors[t].consumers) read_[idx(v)].push_back(static_cast<int>(t));
    }
  }
  std::vector<int> const& made(int v) const { return made_[idx(v)]; }
  std::vector<int> const& read(int v) const { return read_[idx(v)]; }
  stage_tensor const& tensor(int t) const { return (*tensors_)[idx(t)]; }
  int count() const { return static_cast<int>(tensors_->size()); }
};

/// A set of operators and its border. `clear` costs what was added, `add` the operator's tensors.
class border_counter {
  tensor_uses const* uses_;
  struct state {
    int inside = 0;     // consumers in the set
    bool made = false;  // the producer is in the set
  };
  std::vector<state> at_;
  std::vector<int> touched_;  // each tensor at most once: the first `touches_` are
  std::size_t touches_ = 0;
  stage_border b_;

  void touch(state const& s, int t) {
    if (s.inside == 0 && !s.made) touched_[touches_++] = t;
  }
  void enters(stage_tensor const& t, int sign) {
    b_.tensors_in += sign;
    b_.in = b_.tensors_in == 0 ? 0 : b_.in + sign * t.bytes;
  }
  void leaves(stage_tensor const& t, int sign) {
    b_.tensors_out += sign;
    b_.out = b_.tensors_out == 0 ? 0 : b_.out + sign * t.bytes;
  }

 public:
  explicit border_counter(tensor_uses const& uses)
      : uses_(&uses), at_(idx(uses.count())), touched_(idx(uses.count())) {}
  void clear() {
    while (touches_ > 0) at_[idx(touched_[--touches_])] = {};
    b_ = {};
  }
  /// Precondition: v is not in the set.
  void add(int v) {
    for (int t : uses_->read(v)) {
      state& s = at_[idx(t)];
      stage_tensor const& x = uses_->tensor(t);
      touch(s, t);
      ++s.inside;
      if (!s.made && s.inside == 1) enters(x, 1);
      if (s.made && s.inside == static_cast<int>(x.consumers.size())) leaves(x, -1);
    }
    for (int t : uses_->made(v)) {
      state& s = at_[idx(t)];
      stage_tensor const& x = uses_->tensor(t);
      touch(s, t);
      s.made = true;
      if (s.inside > 0) enters(x, -1);
      if (s.inside < static_cast<int>(x.consumers.size())) leaves(x, 1);
    }
  }
  stage_border const& value() const { return b_; }
};

}  // namespace tensorpar::search::detail
