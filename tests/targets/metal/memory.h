// The memory of a tensor on the emulated device. The tensor's data pointer points to this record,
// not to the bytes, so that a host that reads the bytes fails.
#pragma once

#include <vector>

namespace emulator {

struct Buffer {
  std::vector<unsigned char> bytes;
};

}  // namespace emulator
