// tensorpar/search/solve/min_cells.hpp - the least sum of several tables over one of their arguments, cell
// by cell of the others
#pragma once
#include <algorithm>
#include <cstddef>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/search/problem/evaluate.hpp>
#include <tensorpar/search/solve/min_rows.hpp>
#include <vector>

namespace tensorpar::search::detail {

/// A table as group of the operator that goes -> its neighbours' joint classes, the last neighbour
/// contiguous.
struct expanded_table {
  double const* v;                       // of group 0; those of the next group are `block` further on
  std::vector<std::size_t> stride;       // by neighbour
  std::size_t block;
  bool last;                             // does it depend on the last neighbour?
};

/// For every cell, one class of each neighbour (the last one the fastest digit), the least over groups of
/// base[group] + all tables. `base`: `never` for a group that is out. `share(rows, make_rows)` calls
/// make_rows(first, last) until all rows are made, each by one. O(groups * cells * tables).
template <class Share>
std::vector<double> min_cells(std::vector<double> const& base, std::vector<int> const& dims,
                                std::vector<expanded_table> const& tables, Share const& share) {
  int const n = static_cast<int>(dims.size()), groups = static_cast<int>(base.size()),
            inner = n ? dims.back() : 1;
  std::size_t cells = 1;
  for (int d : dims) cells *= idx(d);
  std::vector<double> out(cells, infinity);
  // rows of cells that differ in the last neighbour's class alone
  auto const make_rows = [&](std::size_t first_row, std::size_t last_row) {
    std::vector<int> c(idx(n), 0);
    std::vector<std::size_t> from(tables.size(), 0);
    // groups in blocks whose rows stay in the cache while all cells pass by
    int const block = std::max(4, 16384 / std::max(1, inner));
    for (int first = 0; first < groups; first += block) {
      int const end = std::min(groups, first + block);
      std::size_t rest = first_row;
      for (int i = n - 2; i >= 0; --i) {
        c[idx(i)] = static_cast<int>(rest % idx(dims[idx(i)]));
        rest /= idx(dims[idx(i)]);
      }
      for (std::size_t row = first_row; row < last_row; ++row) {
        for (std::size_t k = 0; k < tables.size(); ++k) {
          from[k] = 0;
          for (int i = 0; i + 1 < n; ++i) from[k] += tables[k].stride[idx(i)] * idx(c[idx(i)]);
        }
        min_rows to{out.data() + row * idx(inner), inner};
        for (int j = first; j < end; ++j) {
          double start = base[idx(j)];
          double const *one = nullptr, *two = nullptr;
          std::size_t rows = 0;
          for (std::size_t k = 0; k < tables.size(); ++k) {
            double const* const x = tables[k].v + idx(j) * tables[k].block + from[k];
            if (!tables[k].last) start += *x;
            else if (++rows == 1) one = x;
            else if (rows == 2) two = x;
            else {                                                   // more than two: added up first
              if (rows == 3) to.begin_sum(one, two);
              to.add_to_sum(x);
            }
          }
          if (!(start < infinity)) continue;
          if (rows == 1) to.put(one, start);
          else if (rows == 0) to.put(start);
          else if (rows == 2) to.put(one, two, start);
          else to.put_sum(start);
        }
        to.finish();
        for (int i = n - 2; i >= 0 && ++c[idx(i)] == dims[idx(i)]; --i) c[idx(i)] = 0;
      }
    }
  };
  share(cells / idx(inner), make_rows);
  return out;
}

}  // namespace tensorpar::search::detail
