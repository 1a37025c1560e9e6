// tensorpar/exec/cudnn/attention_rooms.hpp - where attention's scratch lies, and how many batch elements are
// done at once
#pragma once
#include <tensorpar/exec/cpu/common/attention_heads.hpp>
#include <tensorpar/exec/cudnn/attention_graphs.hpp>

namespace tensorpar::detail {

/// Offsets in bytes, each a multiple of 256, for n batch elements at once; known when a plan is made, so
/// everything follows from sizes. `library`: what cuDNN may take from library_at on. It keeps scores'
/// gradients there, by tiles of 64 queries and 128 keys, if sums are to have an order, else at most a float
/// for every element of the queries.
struct attention_rooms {
  i64 stats = 0, sum = 0, y = 0, part = 0, library_at = 0, library = 0, bytes = 0;

  static constexpr attention_rooms forward(i64 n, i64 heads, i64 queries, bool kept = false) {
    attention_rooms r;
    if (!kept) r.stats = r.take(n * heads * queries * 4);
    return r.with_library(0);
  }
  /// `kept`: stats and y are there and take no room.
  static constexpr attention_rooms backward(i64 n, i64 heads, i64 queries, i64 keys, i64 width, bool in_order,
                                            bool kept = false) {
    attention_rooms r;
    if (!kept) r.stats = r.take(n * heads * queries * 4);
    r.sum = r.take(n * heads * queries * 4);
    if (!kept) r.y = r.take(n * queries * width * 2);
    if (!in_order) r.part = r.take(n * queries * width * 4);
    i64 const tiles = (queries + 63) / 64 * 64 * ((keys + 127) / 128 * 128);
    return r.with_library(in_order ? n * heads * tiles * 2 : n * queries * width * 4);
  }
  /// A divisor of `batches`: the largest whose scratch stays within `most` bytes, or 1.
  static constexpr i64 batches_at_once(i64 batches, i64 heads, i64 queries, i64 keys, i64 width,
                                       bool in_order, bool kept = false, i64 most = i64{256} << 20) {
    for (i64 n = batches; n > 1; --n)
      if (batches % n == 0 && backward(n, heads, queries, keys, width, in_order, kept).bytes <= most)
        return n;
    return 1;
  }

  /// How a gradient is done: so many batch elements at a time, and from a log-sum-exp that was kept or not.
  /// It is not where some element's would not begin at a multiple of 16 bytes. `lines`: log-sum-exps of a
  /// batch element.
  struct turns {
    i64 batches;
    bool kept;
  };
  static constexpr turns turns_of(i64 batches, i64 heads, i64 queries, i64 keys, i64 width, bool in_order,
                                  bool kept, i64 lines, i64 most) {
    i64 const n = batches_at_once(batches, heads, queries, keys, width, in_order, kept, most);
    if (!kept || n == batches || n * lines % 4 == 0) return {n, kept};
    return {batches_at_once(batches, heads, queries, keys, width, in_order, false, most), false};
  }

 private:
  constexpr i64 take(i64 n) {
    i64 const at = bytes;
    bytes += (n + 255) / 256 * 256;
    return at;
  }
  constexpr attention_rooms with_library(i64 n) {
    library = n + (i64{64} << 10);
    library_at = take(library);
    return *this;
  }
};

}  // namespace tensorpar::detail
