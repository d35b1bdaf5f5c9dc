// Exports each kernel as a function that tvm-ffi finds in a library, generated from the kernel's
// own signature.
#pragma once

#include <metal_stdlib>

#include "emulator.h"

namespace emulator {

// Fetches a kernel's arguments from left to right; the group's position comes before the thread's.
struct Cursor {
  Thread from;
  int positions = 0;
  const unsigned* next() { return positions++ == 0 ? from.block : from.position; }
};

template <class T>
struct Argument;
template <class T>
struct Argument<T*> {
  static constexpr int kBuffers = 1, kScalars = 0;
  static T* take(Cursor& at) { return static_cast<T*>(*at.from.buffers++); }
};
template <class T>
struct Argument<const T&> {
  static constexpr int kBuffers = 0, kScalars = sizeof(T) / 8;
  static const T& take(Cursor& at) { return *static_cast<const T*>(at.from.scalars); }
};
struct Position {
  static constexpr int kBuffers = 0, kScalars = 0;
};
template <>
struct Argument<uint> : Position {
  static uint take(Cursor& at) { return *at.next(); }
};
template <>
struct Argument<uint2> : Position {
  static uint2 take(Cursor& at) {
    const unsigned* p = at.next();
    return {p[0], p[1]};
  }
};
template <>
struct Argument<uint3> : Position {
  static uint3 take(Cursor& at) {
    const unsigned* p = at.next();
    return {p[0], p[1], p[2]};
  }
};

template <class... A>
struct Call {  // constructed with braces, so that arguments are evaluated in order
  Call(void (*function)(A...), A... arguments) { function(arguments...); }
};

template <auto kFunction>
struct Signature;
template <class... A, void (*kFunction)(A...)>
struct Signature<kFunction> {
  static constexpr int kBuffers = (0 + ... + Argument<A>::kBuffers);
  static constexpr int kScalars = (0 + ... + Argument<A>::kScalars);
  static void call(Thread from) {
    Cursor at{from};
    Call<A...>{kFunction, Argument<A>::take(at)...};
  }
};

}  // namespace emulator

// Defines kernel_<index>_self, a kernel whose group has the threadgroup memory of section
// group_<index>.
#define METAL_KERNEL_SELF(index, name, ...)                                              \
  extern "C" __attribute__((weak)) char __start_group_##index[], __stop_group_##index[]; \
  static constexpr int kernel_##index##_axes[] = {__VA_ARGS__};                          \
  static const emulator::Kernel kernel_##index##_self{                                   \
      #name,                                                                             \
      emulator::Signature<kernel_##index::name>::call,                                   \
      emulator::Signature<kernel_##index::name>::kBuffers,                               \
      emulator::Signature<kernel_##index::name>::kScalars,                               \
      kernel_##index##_axes,                                                             \
      sizeof kernel_##index##_axes / sizeof *kernel_##index##_axes,                      \
      __start_group_##index,                                                             \
      __stop_group_##index};

#define METAL_KERNEL(index, name, ...)                                         \
  METAL_KERNEL_SELF(index, name, __VA_ARGS__)                                  \
  extern "C" int __tvm_ffi_##name(void*, const void* args, int count, void*) { \
    return metal_launch(&kernel_##index##_self, args, count);                  \
  }
