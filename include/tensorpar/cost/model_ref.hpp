// tensorpar/cost/model_ref.hpp - any cost model behind one type, so that searches are compiled once for all
#pragma once
#include <concepts>
#include <memory>
#include <tensorpar/cost/concepts.hpp>

namespace tensorpar::cost {

/// Any cost model, asked through two pointers to functions: an answer takes some nanoseconds longer than the
/// model's own, and is the same. `plan_training` and `search::optimize` hand one to what they call, so a
/// program has one search, however many models it asks. Models `cost_model`, and throws what its model
/// throws.
/// Precondition: the model outlives it. Copies ask the same model. Thread safety: that of the model.
class model_ref {
  void const* model_;
  double (*compute_)(void const*, compute_query const&);
  double (*moves_)(void const*, reshard_query const&);

 public:
  template <cost_model M>
    requires(!std::same_as<M, model_ref>)
  explicit model_ref(M const& m)
      : model_(std::addressof(m)),
        compute_([](void const* p, compute_query const& q) { return static_cast<M const*>(p)->seconds(q); }),
        moves_([](void const* p, reshard_query const& q) { return static_cast<M const*>(p)->seconds(q); }) {}

  double seconds(compute_query const& q) const { return compute_(model_, q); }
  double seconds(reshard_query const& q) const { return moves_(model_, q); }
};
static_assert(cost_model<model_ref>);

}  // namespace tensorpar::cost
