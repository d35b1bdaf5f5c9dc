// Makes a function that tvm-ffi finds in a library of each kernel, from the kernel's own signature.
#pragma once

#include "emulator.h"

namespace emulator {

template <class T>
struct Argument {
  static constexpr int kBuffers = 0, kScalars = 1;
  static T take(void* const*&, const std::int64_t*& scalars) { return static_cast<T>(*scalars++); }
};
template <class T>
struct Argument<T*> {
  static constexpr int kBuffers = 1, kScalars = 0;
  static T* take(void* const*& buffers, const std::int64_t*&) {
    return static_cast<T*>(*buffers++);
  }
};

template <class... A>
struct Call {  // constructed with braces: arguments are evaluated in their order
  Call(void (*function)(A...), A... arguments) { function(arguments...); }
};

template <auto kFunction>
struct Signature;
template <class... A, void (*kFunction)(A...)>
struct Signature<kFunction> {
  static constexpr int kBuffers = (0 + ... + Argument<A>::kBuffers);
  static constexpr int kScalars = (0 + ... + Argument<A>::kScalars);
  static void call(void* const* buffers, const std::int64_t* scalars) {
    Call<A...>{kFunction, Argument<A>::take(buffers, scalars)...};
  }
};

}  // namespace emulator

alignas(128) static unsigned char given_shared_memory[227 << 10];

#define CUDA_KERNEL(name, ...)                                                 \
  extern "C" int __tvm_ffi_##name(void*, const void* args, int count, void*) { \
    using S = emulator::Signature<name>;                                       \
    static constexpr int axes[] = {__VA_ARGS__};                               \
    static const emulator::Kernel self{#name,                                  \
                                       S::call,                                \
                                       S::kBuffers,                            \
                                       S::kScalars,                            \
                                       axes,                                   \
                                       sizeof axes / sizeof *axes,             \
                                       given_shared_memory,                    \
                                       sizeof given_shared_memory};            \
    return cuda_launch(&self, args, count);                                    \
  }
