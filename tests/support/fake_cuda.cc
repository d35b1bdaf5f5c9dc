// NVIDIA's driver as far as wherry/machine/cuda_driver.py asks it: one GPU, or the error
// FAKE_CUDA_ERROR.
#include <cstdio>
#include <cstdlib>

extern "C" {

int cuInit(unsigned) {
  const char* error = std::getenv("FAKE_CUDA_ERROR");
  return error != nullptr ? std::atoi(error) : 0;
}
int cuDriverGetVersion(int* version) { return *version = 13010, 0; }
int cuDeviceGetCount(int* count) { return *count = 1, 0; }
int cuDeviceGet(int* device, int number) { return *device = number, 0; }
int cuDeviceGetName(char* name, int size, int) {
  return std::snprintf(name, static_cast<size_t>(size), "Fake H200"), 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, int) { return *bytes = size_t{141} << 30, 0; }
int cuDeviceGetAttribute(int* value, int which, int) {
  const char* code = std::getenv("FAKE_CUDA_CODE");
  int number = code != nullptr ? std::atoi(code) : 90;
  *value = which == 75 ? number / 10 : which == 76 ? number % 10 : which == 97 ? 227 << 10 : 0;
  return 0;
}
}
