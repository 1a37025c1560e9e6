// tensorpar/exec/step/given_values.hpp - what a run was given between steps, as hashes: processes compare
// them before they train on
#pragma once
#include <string>
#include <tensorpar/core/index.hpp>
#include <tensorpar/exec/comm/agreement.hpp>
#include <tensorpar/exec/device/content_hash.hpp>
#include <tensorpar/ir/computation_graph.hpp>
#include <vector>

namespace tensorpar::exec::detail {

/// By value, a hash of what was stored last and of how many steps came before. Equal programs keep equal
/// values equal, so processes that were given the same between the same steps hold the same.
class given_values {
  std::vector<u64> hash_;                  // by value; 0: nothing yet
  u64 digest_ = 0, ran_ = 0;               // ran_: steps since the run was made, whatever number they have

  static u64 mark(int value, u64 hash) { return hash ? core::hasher{}.add(value).add(hash).value() : 0; }

 public:
  /// O(bytes).
  void take(int value, void const* data, std::size_t bytes) {
    auto const x = idx(value);
    if (hash_.size() <= x) hash_.resize(x + 1, 0);
    u64 const now = core::hasher{}.add(content_hash{}.add(data, bytes).value()).add(ran_).value();
    digest_ ^= mark(value, hash_[x]) ^ mark(value, now);
    hash_[x] = now;
  }
  /// A step has run: the same content is another from now on.
  void ran() { ++ran_; }
  /// Of all of them.
  u64 digest() const { return digest_; }
  /// All parameters and states of the graph, by name.
  std::vector<shared_fact> facts(computation_graph const& g) const {
    std::vector<shared_fact> r;
    for (std::size_t x = 0; x < g.values.size(); ++x) {
      graph_value const& v = g.values[x];
      if (v.role != value_role::parameter && v.role != value_role::state) continue;
      std::string const kind = v.role == value_role::parameter ? "parameter '" : "optimizer state '";
      r.push_back({kind + v.name + "' with hash", x < hash_.size() ? hash_[x] : 0, shared_fact::kind::hash});
    }
    return r;
  }
};

}  // namespace tensorpar::exec::detail
