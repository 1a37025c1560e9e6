// tests/support/hook.hpp - what a test makes a stand-in do: it may be changed while other threads still ask for it
#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

namespace tests {

template <class Signature> class hook;

/// A function, or nothing, which answers R{}.
template <class R, class... Args> class hook<R(Args...)> {
  mutable std::mutex m_;
  std::shared_ptr<std::function<R(Args...)> const> now_;

 public:
  template <class F> hook& operator=(F f) {
    auto made = std::make_shared<std::function<R(Args...)> const>(std::move(f));
    std::lock_guard held(m_);
    now_.swap(made);
    return *this;
  }
  R operator()(Args... args) const {
    std::unique_lock held(m_);
    auto const now = now_;
    held.unlock();
    return now && *now ? (*now)(std::forward<Args>(args)...) : R{};
  }
};

}  // namespace tests
