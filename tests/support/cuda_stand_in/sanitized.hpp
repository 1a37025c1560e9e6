// tests/support/cuda_stand_in/sanitized.hpp - CUDA_STAND_IN_ASAN: AddressSanitizer watches, by whichever compiler
#pragma once
#if defined(__SANITIZE_ADDRESS__)
#define CUDA_STAND_IN_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CUDA_STAND_IN_ASAN 1
#endif
#endif
