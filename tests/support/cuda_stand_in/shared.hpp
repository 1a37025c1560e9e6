// tests/support/cuda_stand_in/shared.hpp - shared memory: what is of this thread in the program, with rubbish in it for every block
#pragma once
#include <cstddef>
#include <cstring>
#include <link.h>
#include <vector>

namespace cuda_stand_in {

/// Variables of this thread in the program itself, none of a library's: shared arrays of all kernels, and some that have nothing to do with
/// them, which are as they were when this goes.
class shared_memory {
  std::byte* at_ = nullptr;
  std::vector<std::byte> before_;

  static int find(dl_phdr_info* info, std::size_t, void* to) {
    auto& me = *static_cast<shared_memory*>(to);
    for (int k = 0; k < info->dlpi_phnum; ++k)
      if (info->dlpi_phdr[k].p_type == PT_TLS && info->dlpi_tls_data) {
        me.at_ = static_cast<std::byte*>(info->dlpi_tls_data);
        me.before_.resize(info->dlpi_phdr[k].p_memsz);
      }
    return 1;                                  // the first is the program
  }

 public:
  shared_memory() {
    dl_iterate_phdr(find, this);
    if (at_) std::memcpy(before_.data(), at_, before_.size());
  }
  shared_memory(shared_memory const&) = delete;
  shared_memory& operator=(shared_memory const&) = delete;
  ~shared_memory() { if (at_) std::memcpy(at_, before_.data(), before_.size()); }
  std::byte* at() const { return at_; }
  std::size_t bytes() const { return before_.size(); }
  /// No number is one, no index is good.
  void poison() const { if (at_) std::memset(at_, 0xff, before_.size()); }
};

}  // namespace cuda_stand_in
