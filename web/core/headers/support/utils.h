// Of TVM's header of this name: what the thread pool asks of the names of processors.
#pragma once

#include <algorithm>
#include <string>

namespace tvm::support {

inline bool IsNumber(const std::string& text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace tvm::support
