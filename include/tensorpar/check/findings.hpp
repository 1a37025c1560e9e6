// tensorpar/check/findings.hpp - what the checker of plans says: a kind of fault, where, and a sentence
#pragma once
#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>
#include <tensorpar/core/config.hpp>
#include <tensorpar/core/index.hpp>
#include <utility>
#include <vector>

namespace tensorpar {

enum class fault : int {
  wrong_graph,         // the plan was made for another graph
  sharding,              // a sharding does not fit its operator or the cluster
  malformed,           // an index, shape or layout that means nothing
  mesh,                // a task is not sharded as the plan says
  // a task lacks a device that takes part, or has one too many: the others would wait forever
  devices,
  wrong_operand,       // a task reads another value, or a wrong number of them
  not_written,         // a value is read on a device before it is there
  block,               // a device holds another part of a tensor than the task needs or the buffer states
  partial,             // partial sums where a complete value is needed
  added_twice,         // a contribution enters a sum twice
  reshard,            // a reshard does not lead from its layout before to its layout after
  micro_batch,         // a value of another micro-batch, or not of all of them
  stale,               // a parameter is read after its update
  missing,             // an operator, an update or a result that must be there is not
  repeated,            // an operator runs, or a buffer is written, more often than once
  lifetime,            // a buffer is used outside the time for which it has memory
  bytes,               // a buffer or workspace of a wrong size
  overlap,             // two buffers share bytes at one time
  arena,               // a buffer outside its arena, or not aligned
  memory,              // an arena larger than its device
  peak,                // the plan predicts another peak than the program has
  sealed               // the plan was sealed with another program
};
constexpr char const* name_of(fault f) {
  constexpr char const* n[] = {"wrong_graph",   "sharding",      "malformed", "mesh",    "devices",
                               "wrong_operand", "not_written", "block",     "partial", "added_twice",
                               "reshard",      "micro_batch", "stale",     "missing", "repeated",
                               "lifetime",      "bytes",       "overlap",   "arena",   "memory",
                               "peak",          "sealed"};
  return n[static_cast<int>(f)];
}

/// One fault. Indices that do not apply are -1.
struct finding {
  fault code = fault::malformed;
  int task = -1, buffer = -1, device = -1, node = -1;
  std::string text;
};

namespace detail::check {
/// A word or a number. One type for both, so that sentences are put together by one function, not by one for
/// each combination.
struct word {
  std::string_view text;
  i64 number = 0;
  bool is_number = false;
  constexpr word(std::string_view s) : text(s) {}
  constexpr word(char const* s) : text(s) {}
  word(std::string const& s) : text(s) {}
  constexpr word(std::integral auto x) : number(static_cast<i64>(x)), is_number(true) {}
};
/// A sentence of words and numbers.
[[gnu::noinline, gnu::cold]] inline std::string sentence_of(std::initializer_list<word> all) {
  std::string r;
  for (word const& x : all) r += x.is_number ? std::to_string(x.number) : std::string(x.text);
  return r;
}
template <class... T> std::string sentence(T const&... x) { return sentence_of({word(x)...}); }
}  // namespace detail::check

/// Where findings go. Stops listening after `limit`: one fault early in a program breaks much that follows.
class findings {
 public:
  explicit findings(std::size_t limit) : limit_(limit) {}
  void add(finding f) { if (all_.size() < limit_) all_.push_back(std::move(f)); }
  bool full() const { return all_.size() >= limit_; }
  bool empty() const { return all_.empty(); }
  std::vector<finding> take() { return std::move(all_); }

 private:
  std::vector<finding> all_;
  std::size_t limit_;
};

}  // namespace tensorpar
