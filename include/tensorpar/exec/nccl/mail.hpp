// tensorpar/exec/nccl/mail.hpp - one channel between two ranks: NCCL delivers in the order of sending, plans
// receive in their own
#pragma once
#include <deque>
#include <list>
#include <string>
#include <tensorpar/core/error.hpp>
#include <tensorpar/exec/comm/traffic.hpp>
#include <tensorpar/exec/device/arena_memory.hpp>
#include <utility>
#include <vector>

namespace tensorpar::comm::detail {

/// The messages of a channel, in the order in which they are sent, step after step. Both ends know it and
/// keep to it.
class mail_order {
  std::vector<exec::planned_message> step_;
  std::size_t at_ = 0;

 public:
  void add(exec::planned_message const& m) { step_.push_back(m); }
  /// Between steps: others are told next.
  void clear() {
    step_.clear();
    at_ = 0;
  }
  bool empty() const { return step_.empty(); }
  std::size_t size() const { return step_.size(); }
  exec::planned_message const& next() const { return step_[at_]; }
  void advance() { at_ = (at_ + 1) % step_.size(); }
  static std::string words(exec::planned_message const& m) {
    return std::to_string(m.count) + " elements of " + std::to_string(m.bytes) + " bytes with tag " +
           std::to_string(m.tag);
  }
  /// Throws unless this is the message that is sent next.
  void expect(exec::planned_message const& m) const {
    if (!empty() && m == next()) return;
    throw error(
        "rank " + std::to_string(m.from) + " sends " + words(m) + " to rank " + std::to_string(m.to),
        "comm::nccl",
        empty() ? "a channel that `prepare` was told of" : words(next()) + ", which `prepare` was told of");
  }
};

/// Room for messages on their way, which goes round: a steady state takes no memory.
template <exec::queued_memory Memory> class mail_room {
  struct piece {
    exec::detail::arena_memory<Memory> bytes;
    typename Memory::mark done;                    // by whoever used it last
    bool taken = false;
  };
  std::list<piece> pieces_;

 public:
  using item = piece*;
  std::byte* data(item p) const { return p->bytes.data(); }
  /// The smallest free piece that is large enough, or a new one. Its last use is over.
  item take(Memory const& m, std::size_t size) {
    i64 const bytes = static_cast<i64>(size);
    item best = nullptr;
    for (piece& p : pieces_)
      if (!p.taken && p.bytes.size() >= bytes && (!best || p.bytes.size() < best->bytes.size()) &&
          m.reached(p.done))
        best = &p;
    if (!best) {
      pieces_.push_back({exec::detail::arena_memory<Memory>(bytes, m), m.make_mark(), false});
      best = &pieces_.back();
    }
    best->taken = true;
    return best;
  }
  /// Free once q has done what it was asked for so far.
  void give_back(item p, Memory const& q) {
    q.set(p->done);
    p->taken = false;
  }
};

}  // namespace tensorpar::comm::detail
