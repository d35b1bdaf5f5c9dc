// Compiles Metal's language with clang and runs its kernels in the emulator (tests/targets/metal).
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

struct FakeKernel;

// Compiles a source that has one kernel. Returns null and sets *error, which the caller frees, if
// clang refuses it. The kernel stays until the process ends.
const struct FakeKernel* fake_compile(const char* source, char** error);
const char* fake_kernel_name(const struct FakeKernel* kernel);
int fake_kernel_buffers(const struct FakeKernel* kernel);  // at the indices from 0
// Bytes of the kernel's numbers, at the index after its buffers; 0: it has none.
int fake_kernel_number_bytes(const struct FakeKernel* kernel);
// Runs a kernel. extents: the grid's threadgroups along x, y, z, then a group's threads. Returns
// null or an error, which the caller frees.
char* fake_run(const struct FakeKernel* kernel, void* const* buffers, const void* numbers,
               const unsigned* extents);

#ifdef __cplusplus
}
#endif
