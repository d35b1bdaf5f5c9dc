// What a tensor's data pointer points to: not the bytes, so that a host which reads them fails.
#pragma once

#include <vector>

namespace emulator {

struct Buffer {
  std::vector<unsigned char> bytes;
};

}  // namespace emulator
