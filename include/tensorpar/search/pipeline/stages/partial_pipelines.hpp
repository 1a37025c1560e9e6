// tensorpar/search/pipeline/stages/partial_pipelines.hpp - partial pipelines: how many devices they take and
// what they ask of their predecessors
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/search/pipeline/stages/in_flight_needs.hpp>
#include <tensorpar/search/pipeline/stages/stage_model.hpp>
#include <vector>

namespace tensorpar::search::detail {

/// A stage of a solution.
struct found_stage {
  std::vector<int> nodes;  // ascending
  stage_choice choice;
  int first = 0;  // device
};

/// The last step of a partial pipeline, which grows from the sinks towards the sources.
enum class stage_step : char {
  start,       // nothing yet
  run,         // parts from .. to-1 of a series became a stage
  part,        // part `from` of a series, a block, became what partial pipeline `sub` says
  branch,      // the next branch of class `from` became what partial pipeline `sub` says
  group,       // the branches of group `from` became a stage
  // parts from+1 .. to-1 of a series and the end of a branch, its parts from `extra` on, became a stage
  join,
  // block `from`: its branch of class `extra` ends in that join (prev), the other branches became what
  // `sub` says
  rest,
  // parts from+1 .. to-1 and the branches of group `extra` of block `from` became a stage, the others what
  // `sub` says
  join_group,
  // parts from+1 .. to-1 and the ends of all branches of a class, their parts from `extra` on, became a
  // stage, what stands before these ends became what `sub` says, once for each branch
  join_all,
  // block `from`: the branches of class `extra` end in that join (prev), the others became what `sub`
  // says
  rest_all
};
struct partial_pipeline {
  int devices = 0, need = 0;
  int prev = -1, sub = -1;
  int from = 0, to = 0, extra = 0;
  int choice = -1;
  stage_step step = stage_step::start;
  double area = 0;  // least seconds per sample times devices of the operators that are done
};

/// Labels by number, and lists of them in which none is as good as another in both devices and need.
class partial_pipelines {
  std::vector<partial_pipeline> all_;
  in_flight_needs const* needs_;

 public:
  explicit partial_pipelines(in_flight_needs const& needs) : needs_(&needs) {}
  partial_pipeline const& operator[](int i) const { return all_[idx(i)]; }
  int add(partial_pipeline const& l) {
    all_.push_back(l);
    return static_cast<int>(all_.size()) - 1;
  }
  std::size_t size() const { return all_.size(); }
  /// Has the list a partial pipeline that takes no more devices and asks for no more? O(list).
  bool covers(std::vector<int> const& list, int devices, int need) const {
    for (int i : list) {
      partial_pipeline const& o = (*this)[i];
      if (o.devices <= devices && needs_->within(o.need, need)) return true;
    }
    return false;
  }
  /// Keeps the partial pipeline unless the list has one that is as good; drops those that it makes needless.
  /// O(list).
  bool offer(std::vector<int>& list, partial_pipeline const& l) {
    if (covers(list, l.devices, l.need)) return false;
    std::size_t n = 0;
    for (int i : list) {
      partial_pipeline const& o = (*this)[i];
      if (l.devices <= o.devices && needs_->within(l.need, o.need)) continue;
      list[n++] = i;
    }
    list.resize(n);
    list.push_back(add(l));
    return true;
  }
};

}  // namespace tensorpar::search::detail
