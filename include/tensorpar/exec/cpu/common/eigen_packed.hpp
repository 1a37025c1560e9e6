// tensorpar/exec/cpu/common/eigen_packed.hpp - large matrix products over Eigen's packets: panels in cache, a
// tile of the result in registers
#pragma once
#include <memory>
#include <tensorpar/core/index.hpp>
#include <tensorpar/exec/cpu/common/eigen_door.hpp>
#include <tensorpar/exec/cpu/common/kernels_gemm.hpp>

namespace tensorpar::exec::detail {

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
// packets are vector types, used as template arguments
#pragma GCC diagnostic ignored "-Wignored-attributes"
// of intrinsics of AVX-512, wherever they were included first (PR 105593)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

/// c (+)= a b for any strides, after Goto and van de Geijn (ACM TOMS 34(3), 2008) and BLIS (Van Zee and van
/// de Geijn, ACM TOMS 41(3), 2015). A panel of b [depth, wide] stays in the last cache, a block of a [high,
/// depth] in the second, a tile [rows, cols] of c in registers. On one Zen 3 core it reaches 70 to 85 GFLOP/s
/// in float, Eigen's own product 50 to 60.
/// Each thread keeps its packing buffers. Order of summation: k ascending, in groups of `depth`.
template <class Real> class packed_product {
  using traits = Eigen::internal::packet_traits<Real>;
  using packet = typename traits::type;
  static constexpr i64 width = traits::size, rows = 6, cols = 2 * width, depth = 256, high = 20 * rows,
                       wide = 512 / cols * cols;

  /// c[6, cols] (+)= sum over k of a[k][6] b[k][cols]
  static void tile(i64 k, Real const* a, Real const* b, Real* c, i64 lead, bool accumulate) {
    using namespace Eigen::internal;
    packet s[rows][2];
#pragma GCC unroll 6
    for (i64 i = 0; i < rows; ++i) s[i][0] = s[i][1] = pset1<packet>(Real(0));
    for (i64 l = 0; l < k; ++l, a += rows, b += cols) {
      packet const x = ploadu<packet>(b), y = ploadu<packet>(b + width);
#pragma GCC unroll 6
      for (i64 i = 0; i < rows; ++i) {
        packet const f = pload1<packet>(a + i);
        s[i][0] = pmadd(f, x, s[i][0]);
        s[i][1] = pmadd(f, y, s[i][1]);
      }
    }
#pragma GCC unroll 6
    for (i64 i = 0; i < rows; ++i) {
      Real* to = c + i * lead;
      pstoreu(to, accumulate ? padd(ploadu<packet>(to), s[i][0]) : s[i][0]);
      pstoreu(to + width, accumulate ? padd(ploadu<packet>(to + width), s[i][1]) : s[i][1]);
    }
  }
  /// to[j][i] = from[i][j] for width x width elements
  static void turn(Real const* from, i64 lead, Real* to, i64 to_lead) {
    Eigen::internal::PacketBlock<packet, static_cast<int>(width)> t;
    for (i64 i = 0; i < width; ++i) t.packet[i] = Eigen::internal::ploadu<packet>(from + i * lead);
    Eigen::internal::ptranspose(t);
    for (i64 i = 0; i < width; ++i) Eigen::internal::pstoreu(to + i * to_lead, t.packet[i]);
  }
  /// Strips of `Strip` neighbours: to[strip number][l][strip], the last one filled up with zeros. Walks
  /// memory in the direction of unit stride.
  template <i64 Strip> static void pack(i64 count, i64 k, Real const* from, i64 across, i64 along, Real* to) {
    for (i64 s = 0; s < count; s += Strip, from += Strip * across, to += k * Strip) {
      if (count - s < Strip) {
        for (i64 l = 0; l < k; ++l)
          for (i64 i = 0; i < Strip; ++i)
            to[l * Strip + i] = i < count - s ? from[i * across + l * along] : Real(0);
      } else if (across == 1) {
        for (i64 l = 0; l < k; ++l)
          for (i64 i = 0; i < Strip; ++i) to[l * Strip + i] = from[i + l * along];
      } else if (along == 1) {
        i64 l = 0;
        if constexpr (Strip % width == 0) {
          for (; l + 2 * width <= k; l += 2 * width)           // whole cache lines of `width` rows at a time
            for (i64 i = 0; i < Strip; i += width)
              for (i64 j = l; j < l + 2 * width; j += width)
                turn(from + i * across + j, across, to + j * Strip + i, Strip);
        } else {
          constexpr i64 group = 8;
          for (; l + group <= k; l += group)
            for (i64 i = 0; i < Strip; ++i)
              for (i64 j = 0; j < group; ++j) to[(l + j) * Strip + i] = from[i * across + l + j];
        }
        for (; l < k; ++l)
          for (i64 i = 0; i < Strip; ++i) to[l * Strip + i] = from[i * across + l];
      } else {
        for (i64 l = 0; l < k; ++l)
          for (i64 i = 0; i < Strip; ++i) to[l * Strip + i] = from[i * across + l * along];
      }
    }
  }
  struct buffers {
    static constexpr i64 spare = 64 / static_cast<i64>(sizeof(Real));
    std::unique_ptr<Real[]> memory{new Real[idx(depth * (high + wide) + 2 * spare)]};
    static Real* aligned(Real* p) {
      return p + (64 - reinterpret_cast<std::uintptr_t>(p) % 64) % 64 / sizeof(Real);
    }
    Real* a() { return aligned(memory.get()); }
    Real* b() { return aligned(memory.get() + depth * high + spare); }
  };

 public:
  /// Any sizes; wants at least a few rows and columns.
  static void run(i64 m, i64 n, i64 k, matrix_view<Real const> a, matrix_view<Real const> b,
                  matrix_view<Real> c, bool accumulate) {
    if (c.col != 1 && c.row == 1)
      return run(n, m, k, {b.p, b.col, b.row}, {a.p, a.col, a.row}, {c.p, c.col, c.row}, accumulate);
    thread_local buffers memory;
    Real *const pa = memory.a(), *const pb = memory.b();
    for (i64 j0 = 0; j0 < n; j0 += wide) {
      i64 const w = n - j0 < wide ? n - j0 : wide;
      for (i64 l0 = 0; l0 < k; l0 += depth) {
        i64 const d = k - l0 < depth ? k - l0 : depth;
        bool const add_up = accumulate || l0 > 0;
        pack<cols>(w, d, b.p + l0 * b.row + j0 * b.col, b.col, b.row, pb);
        for (i64 i0 = 0; i0 < m; i0 += high) {
          i64 const h = m - i0 < high ? m - i0 : high;
          pack<rows>(h, d, a.p + i0 * a.row + l0 * a.col, a.row, a.col, pa);
          for (i64 j = 0; j < w; j += cols)
            for (i64 i = 0; i < h; i += rows) {
              Real* to = c.p + (i0 + i) * c.row + (j0 + j) * c.col;
              i64 const th = h - i < rows ? h - i : rows, tw = w - j < cols ? w - j : cols;
              if (c.col == 1 && th == rows && tw == cols) {
                tile(d, pa + i * d, pb + j * d, to, c.row, add_up);
                continue;
              }
              Real edge[std::size_t{rows * cols}];
              tile(d, pa + i * d, pb + j * d, edge, cols, false);
              for (i64 p = 0; p < th; ++p)
                for (i64 q = 0; q < tw; ++q)
                  to[p * c.row + q * c.col] =
                      add_up ? to[p * c.row + q * c.col] + edge[p * cols + q] : edge[p * cols + q];
            }
        }
      }
    }
  }
};

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

/// c (+)= a b for one column, b and c with any stride: every element of a is read once, in the order of
/// memory.
template <class Real>
void multiply_column(i64 m, i64 k, matrix_view<Real const> a, Real const* b, i64 step_b, Real* c, i64 step_c,
                     bool accumulate) {
  if (a.col == 1 || a.row != 1) {
    for (i64 i = 0; i < m; ++i) {
      Real const* row = a.p + i * a.row;
      Real const s = step_b == 1 && a.col == 1
                         ? sum_of<Real>(k, [row, b](i64 l) { return row[l] * b[l]; })
                         : sum_of<Real>(k, [=](i64 l) { return row[l * a.col] * b[l * step_b]; });
      c[i * step_c] = accumulate ? c[i * step_c] + s : s;
    }
    return;
  }
  if (!accumulate) for (i64 i = 0; i < m; ++i) c[i * step_c] = Real(0);
  for (i64 l = 0; l < k; ++l) {
    Real const f = b[l * step_b], *column = a.p + l * a.col;
    if (step_c == 1) for (i64 i = 0; i < m; ++i) c[i] += f * column[i];
    else for (i64 i = 0; i < m; ++i) c[i * step_c] += f * column[i];
  }
}

}  // namespace tensorpar::exec::detail
