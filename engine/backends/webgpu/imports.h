// Declares the GPU functions that a web page provides to the core; web/src/core/gpu_imports.ts
// implements them.
//
// No function waits. They record commands in order, and the device executes them while the
// page's script waits for it, between the core's calls.
#ifndef WHERRY_ENGINE_BACKENDS_WEBGPU_IMPORTS_H_
#define WHERRY_ENGINE_BACKENDS_WEBGPU_IMPORTS_H_

#include <cstddef>
#include <cstdint>

#define WHERRY_GPU_IMPORT(name) __attribute__((import_module("wherry_gpu"), import_name(name)))

extern "C" {

// Creates a buffer of zeros and returns its handle; 0 if the size exceeds the device's limit.
WHERRY_GPU_IMPORT("allocate") uint32_t wherry_gpu_allocate(size_t bytes);
WHERRY_GPU_IMPORT("free") void wherry_gpu_free(uint32_t buffer);
// Returns the bytes of the largest buffer that a kernel can bind.
WHERRY_GPU_IMPORT("largest_buffer") double wherry_gpu_largest_buffer(void);

// Copies and writes bytes of buffers. All offsets and sizes are multiples of 4 bytes.
WHERRY_GPU_IMPORT("copy")
void wherry_gpu_copy(uint32_t from, size_t from_offset, uint32_t to, size_t to_offset,
                     size_t bytes);
WHERRY_GPU_IMPORT("write")
void wherry_gpu_write(const char* host, uint32_t to, size_t to_offset, size_t bytes);
// Requests bytes of a buffer; `read` returns them once the page has waited for them, until the next
// launch.
WHERRY_GPU_IMPORT("start")
void wherry_gpu_start(uint32_t from, size_t from_offset, size_t bytes);
// Reads requested bytes. Returns 0 if they have not arrived yet.
WHERRY_GPU_IMPORT("read")
int wherry_gpu_read(uint32_t from, size_t from_offset, char* host, size_t bytes);

// Creates a kernel and returns its handle. written: 1 for each bound buffer that the kernel writes.
// After the buffers, the kernel takes a uniform with its numbers, if any, and the last block's
// index.
WHERRY_GPU_IMPORT("kernel")
uint32_t wherry_gpu_kernel(const char* name, size_t name_bytes, const char* wgsl, size_t wgsl_bytes,
                           const uint8_t* written, size_t buffers);
WHERRY_GPU_IMPORT("launch")
void wherry_gpu_launch(uint32_t kernel, const uint32_t* buffers, size_t n_buffers,
                       const uint32_t* words, size_t n_words, uint32_t x, uint32_t y, uint32_t z);

}  // extern "C"

#endif  // WHERRY_ENGINE_BACKENDS_WEBGPU_IMPORTS_H_
