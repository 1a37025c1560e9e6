// tensorpar/search/pipeline/schedules/in_flight.hpp - how many samples a stage keeps in flight so that its
// successor never waits
#pragma once
#include <tensorpar/core/config.hpp>

namespace tensorpar::search {

/// Table 3.2 of the thesis (section 3.10.2): samples that stage x keeps in flight when x and its successor y
/// follow kFkB with k_x, k_y micro-batches of b_x, b_y samples and y keeps i_y samples in flight. Presumes
/// that a sample's forward pass takes as long as its backward pass and k and b are powers of two;
/// `in_flight_ratio` presumes neither. The last stage keeps k b. Several successors: the largest result. Pre:
/// all at least 1, and b_x divides b_y or the other way round. Then the table's ten rows are one formula,
/// with X = k_x b_x, Y = k_y b_y, M = max(b_x, b_y): i_y + max(X - Y, 0) + (min(X, Y) > M ? 2M : M). O(1).
constexpr i64 in_flight_table(i64 k_x, i64 b_x, i64 k_y, i64 b_y, i64 i_y) {
  i64 const x = k_x * b_x, y = k_y * b_y, larger = b_x > b_y ? b_x : b_y, least = x < y ? x : y;
  return i_y + (x > y ? x - y : 0) + (least > larger ? 2 * larger : larger);
}

/// The same in whole micro-batches of x: the table is right for pairs, but a chain of three with rising and
/// falling micro-batch sizes can come to a number that b_x does not divide, and a stage keeps whole
/// micro-batches. O(1).
constexpr i64 in_flight(i64 k_x, i64 b_x, i64 k_y, i64 b_y, i64 i_y) {
  return (in_flight_table(k_x, b_x, k_y, b_y, i_y) + b_x - 1) / b_x * b_x;
}

/// What is enough however long backward passes take, in whole micro-batches of x: i_y + max(X - Y, 0) +
/// max(M, min(X, Y)). Stages of one size and one k keep k b more than their successors, as in Ada-Grouper
/// (Wang et al. 2023, arXiv 2303.01675). O(1).
constexpr i64 in_flight_grouped(i64 k_x, i64 b_x, i64 k_y, i64 b_y, i64 i_y) {
  i64 const x = k_x * b_x, y = k_y * b_y, larger = b_x > b_y ? b_x : b_y, least = x < y ? x : y;
  return (i_y + (x > y ? x - y : 0) + (least > larger ? least : larger) + b_x - 1) / b_x * b_x;
}

}  // namespace tensorpar::search
