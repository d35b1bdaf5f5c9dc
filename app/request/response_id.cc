#include "app/request/response_id.h"

#include <random>

namespace wherry::app {

std::string new_id(const char* kind) {
  std::random_device device;
  std::string result = std::string(kind) + "-";
  for (int i = 0; i < 24; ++i) result += "0123456789abcdef"[device() % 16];
  return result;
}

}  // namespace wherry::app
