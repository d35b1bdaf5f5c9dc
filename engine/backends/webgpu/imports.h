// What a page gives the core: its GPU, by handles. web/src/core/gpu_imports.ts is the other side.
//
// Nothing here waits. Commands are recorded, in order, and carried out when the page's script waits
// for the device, between the core's calls.
#ifndef WHERRY_ENGINE_BACKENDS_WEBGPU_IMPORTS_H_
#define WHERRY_ENGINE_BACKENDS_WEBGPU_IMPORTS_H_

#include <cstddef>
#include <cstdint>

#define WHERRY_GPU_IMPORT(name) __attribute__((import_module("wherry_gpu"), import_name(name)))

extern "C" {

// A buffer of zeros; 0: the device has none so large.
WHERRY_GPU_IMPORT("allocate") uint32_t wherry_gpu_allocate(size_t bytes);
WHERRY_GPU_IMPORT("free") void wherry_gpu_free(uint32_t buffer);
// Bytes that a kernel can bind of a buffer at most.
WHERRY_GPU_IMPORT("largest_buffer") double wherry_gpu_largest_buffer(void);

// All offsets and sizes are multiples of 4 bytes.
WHERRY_GPU_IMPORT("copy")
void wherry_gpu_copy(uint32_t from, size_t from_offset, uint32_t to, size_t to_offset,
                     size_t bytes);
WHERRY_GPU_IMPORT("write")
void wherry_gpu_write(const char* host, uint32_t to, size_t to_offset, size_t bytes);
// Asks for bytes, which `read` gives when the page has waited for them; until the next launch.
WHERRY_GPU_IMPORT("start")
void wherry_gpu_start(uint32_t from, size_t from_offset, size_t bytes);
// 0: they have not come.
WHERRY_GPU_IMPORT("read")
int wherry_gpu_read(uint32_t from, size_t from_offset, char* host, size_t bytes);

// A kernel's handle. written: of each buffer that it binds, 1 if it writes it; then follows, if
// there are numbers, a uniform with these and the last block's index.
WHERRY_GPU_IMPORT("kernel")
uint32_t wherry_gpu_kernel(const char* name, size_t name_bytes, const char* wgsl, size_t wgsl_bytes,
                           const uint8_t* written, size_t buffers);
WHERRY_GPU_IMPORT("launch")
void wherry_gpu_launch(uint32_t kernel, const uint32_t* buffers, size_t n_buffers,
                       const uint32_t* words, size_t n_words, uint32_t x, uint32_t y, uint32_t z);

}  // extern "C"

#endif  // WHERRY_ENGINE_BACKENDS_WEBGPU_IMPORTS_H_
