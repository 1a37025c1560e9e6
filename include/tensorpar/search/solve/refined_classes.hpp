// tensorpar/search/solve/refined_classes.hpp - classes of choices by number, equal ones once, and what is
// finer than two of them
#pragma once
#include <cstddef>
#include <map>
#include <tensorpar/core/index.hpp>
#include <tensorpar/search/problem/problem.hpp>
#include <utility>
#include <vector>

namespace tensorpar::search::detail {

class refined_classes {
  std::vector<choice_classes> all_;
  std::map<std::vector<int>, int> number_;
  std::map<std::pair<int, int>, int> refined_;

 public:
  std::vector<int> const& of(int classes) const { return all_[idx(classes)].of; }
  int size(int classes) const { return all_[idx(classes)].count; }

  /// Their number. O(choices * log classes).
  int add(choice_classes c) {
    std::vector<int> key{c.set};
    key.insert(key.end(), c.of.begin(), c.of.end());
    auto const [it, fresh] = number_.try_emplace(std::move(key), static_cast<int>(all_.size()));
    if (fresh) all_.push_back(std::move(c));
    return it->second;
  }
  /// The coarsest classes that are finer than both; -1 stands for one class of everything.
  int refine(int a, int b) {
    if (a == b || a < 0 || b < 0) return a < 0 ? b : a;
    if (a > b) std::swap(a, b);
    auto const [it, fresh] = refined_.try_emplace({a, b}, -1);
    if (fresh) {
      std::map<std::pair<int, int>, int> number;
      choice_classes c{all_[idx(a)].set, 0, {}};
      for (std::size_t i = 0; i < of(a).size(); ++i)
        c.of.push_back(
            number.try_emplace({of(a)[i], of(b)[i]}, static_cast<int>(number.size())).first->second);
      c.count = static_cast<int>(number.size());
      it->second = add(std::move(c));
    }
    return it->second;
  }
  /// Fine class -> coarse class. Precondition: `fine` is as fine as `coarse`.
  std::vector<int> coarsen(int fine, int coarse) const {
    std::vector<int> r(idx(size(fine)), 0);
    for (std::size_t i = 0; i < of(fine).size(); ++i) r[idx(of(fine)[i])] = of(coarse)[i];
    return r;
  }
};

}  // namespace tensorpar::search::detail
