// tensorpar/search/stages/labels.hpp - partial pipelines: how many devices they take and what they ask of their predecessors
#pragma once
#include <tensorpar/search/stage_model.hpp>
#include <tensorpar/search/stages/demands.hpp>
#include <vector>

namespace tensorpar::detail {

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
  part,        // part `from` of a series, a block, became what label `sub` says
  branch,      // the next branch of class `from` became what label `sub` says
  group,       // the branches of group `from` became a stage
  join,        // parts from+1 .. to-1 of a series and the end of a branch, its parts from `extra` on, became a stage
  rest,        // block `from`: its branch of class `extra` ends in that join (label prev), the other branches became what `sub` says
  join_group,  // parts from+1 .. to-1 and the branches of group `extra` of block `from` became a stage, the others what `sub` says
  join_all,    // parts from+1 .. to-1 and the ends of all branches of a class, their parts from `extra` on, became a stage, what stands
               // before these ends became what `sub` says, once for each branch
  rest_all     // block `from`: the branches of class `extra` end in that join (label prev), the others became what `sub` says
};
struct stage_label {
  int devices = 0, demand = 0;
  int prev = -1, sub = -1;
  int from = 0, to = 0, extra = 0;
  int choice = -1;
  stage_step step = stage_step::start;
  double area = 0;  // least seconds per sample times devices of the operators that are done
};

/// Labels by number, and lists of them in which none is as good as another in both devices and demand.
class label_pool {
  std::vector<stage_label> all_;
  demand_table const* demands_;

 public:
  explicit label_pool(demand_table const& demands) : demands_(&demands) {}
  stage_label const& operator[](int i) const { return all_[static_cast<std::size_t>(i)]; }
  int add(stage_label const& l) {
    all_.push_back(l);
    return static_cast<int>(all_.size()) - 1;
  }
  std::size_t size() const { return all_.size(); }
  /// Has the list a label that takes no more devices and asks for no more? O(list).
  bool covers(std::vector<int> const& list, int devices, int demand) const {
    for (int i : list) {
      stage_label const& o = (*this)[i];
      if (o.devices <= devices && demands_->within(o.demand, demand)) return true;
    }
    return false;
  }
  /// Keeps the label unless the list has one that is as good; drops those that it makes needless. O(list).
  bool offer(std::vector<int>& list, stage_label const& l) {
    if (covers(list, l.devices, l.demand)) return false;
    std::size_t n = 0;
    for (int i : list) {
      stage_label const& o = (*this)[i];
      if (l.devices <= o.devices && demands_->within(l.demand, o.demand)) continue;
      list[n++] = i;
    }
    list.resize(n);
    list.push_back(add(l));
    return true;
  }
};

}  // namespace tensorpar::detail
