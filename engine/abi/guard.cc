#include "abi/guard.h"

namespace wherry {

std::string& last_error() {
  thread_local std::string text;
  return text;
}

}  // namespace wherry
