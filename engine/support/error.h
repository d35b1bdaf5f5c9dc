// The core's only exception class: a wherry_status and a message that says what to do.
#ifndef WHERRY_ENGINE_SUPPORT_ERROR_H_
#define WHERRY_ENGINE_SUPPORT_ERROR_H_

#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "wherry.h"

namespace wherry {

class Error : public std::runtime_error {
 public:
  Error(wherry_status status, const std::string& message)
      : std::runtime_error(message), status_(status) {}
  wherry_status status() const { return status_; }

 private:
  wherry_status status_;
};

// Concatenates values to a string with operator<<.
template <typename... Parts>
std::string concat(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

// Collects all problems of an input, so that one error can list them.
class Problems {
 public:
  template <typename... Parts>
  void add(const Parts&... parts) {
    lines_.push_back(concat(parts...));
  }
  bool empty() const { return lines_.empty(); }

  // Throws Error(status, "<title>:\n  - ...") if there are problems.
  void raise(wherry_status status, const std::string& title) const {
    if (lines_.empty()) return;
    constexpr size_t kShown = 40;
    std::string text = title + ":";
    for (size_t i = 0; i < lines_.size() && i < kShown; ++i) text += "\n  - " + lines_[i];
    if (lines_.size() > kShown) {
      text += concat("\n  ... and ", lines_.size() - kShown, " more");
    }
    throw Error(status, text);
  }

 private:
  std::vector<std::string> lines_;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SUPPORT_ERROR_H_
