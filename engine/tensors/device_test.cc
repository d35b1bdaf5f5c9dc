#include "tensors/device.h"

#include <cstring>

#include "testing/testing.h"

namespace wherry {
namespace {

TEST(names_of_devices) {
  CHECK_EQ(parse_device("cpu").device_type, kDLCPU);
  CHECK_EQ(parse_device("cuda:3").device_type, kDLCUDA);
  CHECK_EQ(parse_device("cuda:3").device_id, 3);
  for (const char* wrong : {"", "gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:99999999999", "CPU"}) {
    CHECK_CONTAINS(ERROR_OF(WHERRY_INVALID_ARGUMENT, parse_device(wrong)),
                   "accepted are cpu, cuda");
  }
}

void check_zeros(const ffi::Tensor& tensor, int64_t n) {
  const char* data = static_cast<const char*>(tensor.data_ptr());
  CHECK_EQ(reinterpret_cast<uintptr_t>(data) % kAlignment, 0u);
  for (int64_t i = 0; i < n; ++i) CHECK_EQ(data[i], 0);
  CHECK(tensor.IsContiguous());
  CHECK(to_device(tensor, DLDevice{kDLCPU, 0}).same_as(tensor));
}

TEST(host_memory_is_aligned_and_zero) {
  constexpr DLDataType kBytes{kDLInt, 8, 1};
  for (int64_t n : {0, 1, 63, 4097}) {
    check_zeros(allocate_host({n}, kBytes), n);
    check_zeros(allocate({n}, kBytes, DLDevice{kDLCPU, 0}), n);
  }
  // The second round allocates memory that was used before.
  for (int round = 1; round < 3; ++round) {
    ffi::Tensor tensor = allocate({1 << 20}, kBytes, DLDevice{kDLCPU, 0});
    check_zeros(tensor, 1 << 20);
    std::memset(tensor.data_ptr(), round, 1 << 20);
  }
}

#ifdef __linux__  // other systems return memory later
TEST(returned_memory_is_zero_and_its_neighbours_stay) {
  constexpr DLDataType kBytes{kDLInt, 8, 1};
  constexpr size_t kSize = 1 << 20, kOffset = 100000, kReturned = 500000, kSystemPage = 1 << 16;
  ffi::Tensor tensor = allocate({kSize}, kBytes, DLDevice{kDLCPU, 0});
  auto* data = static_cast<char*>(tensor.data_ptr());
  std::memset(data, 7, kSize);
  return_memory(tensor, kOffset, kReturned);
  size_t zeros = 0;
  for (size_t i = 0; i < kSize; ++i) {
    const bool inside = i >= kOffset && i < kOffset + kReturned;
    CHECK(data[i] == 7 || (inside && data[i] == 0));
    zeros += data[i] == 0;
  }
  CHECK(zeros > kReturned - 2 * kSystemPage);
  std::memset(data, 8, kSize);
  return_memory(tensor, 10, 20);  // less than a page of the system
  CHECK_EQ(data[15], 8);
}
#endif

}  // namespace
}  // namespace wherry
