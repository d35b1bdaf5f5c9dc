// Switches between stacks without the system calls of swapcontext, which changes the signal mask at
// each switch: a kernel of a model switches millions of times.
#ifndef WHERRY_TESTS_TARGETS_FIBRE_H_
#define WHERRY_TESTS_TARGETS_FIBRE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

// Saves the registers that a call preserves on this stack, its top at *save, and continues on the
// stack with the top `load`.
extern "C" __attribute__((visibility("hidden"))) void emulator_switch(void** save, void* load);

#if defined(__x86_64__)
asm(R"(
.text
emulator_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
)");
#elif defined(__aarch64__)
asm(R"(
.text
emulator_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
)");
#else
#error "the emulator switches stacks on x86-64 and 64-bit Arm"
#endif

namespace emulator {

// A stack of its own of so many bytes, on which a function runs that switches back instead of
// returning.
template <size_t kBytes>
class Stack {
 public:
  // The next switch to this stack begins the function.
  void begin(void (*function)()) {
    constexpr size_t kAligned = 16;
    const auto end = reinterpret_cast<uintptr_t>(memory_.get() + kBytes) / kAligned * kAligned;
    auto** top = reinterpret_cast<void**>(end);
#if defined(__x86_64__)
    constexpr int kRegisters = 6;
    *--top = nullptr;  // where a caller's address would be
    *--top = reinterpret_cast<void*>(function);
    for (int i = 0; i < kRegisters; ++i) *--top = nullptr;
#else
    constexpr int kRegisters = 20, kReturn = 11;
    top -= kRegisters;
    for (int i = 0; i < kRegisters; ++i) top[i] = nullptr;
    top[kReturn] = reinterpret_cast<void*>(function);
#endif
    top_ = top;
  }

  // Continues there; returns when `leave` is called.
  void enter() { emulator_switch(&caller_, top_); }
  // Continues where this stack was entered; returns at the next `enter`.
  void leave() { emulator_switch(&top_, caller_); }

 private:
  const std::unique_ptr<char[]> memory_{new char[kBytes]};
  void* top_ = nullptr;
  void* caller_ = nullptr;
};

}  // namespace emulator

#endif  // WHERRY_TESTS_TARGETS_FIBRE_H_
