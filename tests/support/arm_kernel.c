/* Runs a compiled kernel under an emulator, without TVM's run time.
 *
 * usage: arm_kernel IN OUT. IN has the arguments, tensors of [ndim, code, bits, bytes, shape...]
 * int64 and their data; OUT gets the data of the last one. One thread runs all tasks of a parallel
 * loop.
 */
#include <dlpack/dlpack.h>
#include <stdio.h>
#include <stdlib.h>
#include <tvm/ffi/c_api.h>

enum { MOST = 16 };

typedef struct {
  void* sync;
  int32_t tasks;
} Environment;
typedef int (*Task)(int task, Environment* environment, void* data);

int __tvm_ffi_kernel(void* self, const TVMFFIAny* args, int32_t count, TVMFFIAny* result);
// Kernels that run in one thread do not define it.
__attribute__((weak)) int (*__TVMBackendParallelLaunch)(Task task, void* data, int tasks);
extern void* (*__TVMBackendAllocWorkspace)(int device, int id, uint64_t bytes, int code, int bits);
extern int (*__TVMBackendFreeWorkspace)(int device, int id, void* memory);

static int launch(Task task, void* data, int tasks) {
  Environment environment = {NULL, tasks > 0 ? tasks : 2};
  for (int i = 0; i < environment.tasks; ++i) {
    if (task(i, &environment, data) != 0) return -1;
  }
  return 0;
}

static void* allocate(int device, int id, uint64_t bytes, int code, int bits) {
  (void)device, (void)id, (void)code, (void)bits;
  return aligned_alloc(64, (bytes + 63) / 64 * 64);
}

static int release(int device, int id, void* memory) {
  (void)device, (void)id;
  free(memory);
  return 0;
}

void TVMFFIErrorSetRaisedFromCStrParts(const char* kind, const char** parts, int32_t count) {
  fprintf(stderr, "%s: ", kind);
  for (int i = 0; i < count; ++i) fputs(parts[i] != NULL ? parts[i] : "", stderr);
}

int main(int argc, char** argv) {
  FILE* in = argc == 3 ? fopen(argv[1], "rb") : NULL;
  if (in == NULL) return 2;
  static DLTensor tensors[MOST];
  size_t last = 0; /* bytes of the last tensor */
  static int64_t shapes[MOST][8], head[4];
  TVMFFIAny args[MOST] = {{0}}, result = {0};
  int count = 0;
  for (; count < MOST && fread(head, 8, 4, in) == 4; ++count) {
    DLTensor* tensor = &tensors[count];
    tensor->data = aligned_alloc(64, (head[3] + 63) / 64 * 64);
    tensor->device.device_type = kDLCPU;
    tensor->ndim = (int32_t)head[0];
    tensor->dtype = (DLDataType){(uint8_t)head[1], (uint8_t)head[2], 1};
    tensor->shape = shapes[count];
    const size_t ndim = (size_t)head[0], bytes = last = (size_t)head[3];
    if (ndim > 8 || fread(shapes[count], 8, ndim, in) != ndim) return 2;
    if (fread(tensor->data, 1, bytes, in) != bytes) return 2;
    args[count].type_index = kTVMFFIDLTensorPtr;
    args[count].v_ptr = tensor;
  }
  __TVMBackendParallelLaunch = launch;
  __TVMBackendAllocWorkspace = allocate;
  __TVMBackendFreeWorkspace = release;
  if (__tvm_ffi_kernel(NULL, args, count, &result) != 0) return 1;
  FILE* out = fopen(argv[2], "wb");
  if (out == NULL) return 2;
  fwrite(tensors[count - 1].data, 1, last, out);
  return fclose(out) == 0 ? 0 : 2;
}
