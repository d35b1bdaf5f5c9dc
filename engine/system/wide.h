// Windows' texts are UTF-16, those of the core UTF-8.
#ifndef WHERRY_ENGINE_SYSTEM_WIDE_H_
#define WHERRY_ENGINE_SYSTEM_WIDE_H_

#include <string>
#include <string_view>

namespace wherry {

// What is no UTF-8 becomes U+FFFD.
std::wstring wide_of(std::string_view utf8);
std::string utf8_of(std::wstring_view wide);

// Returns a path for Windows' calls: with its own separators, and where it is absolute and longer
// than the 260 characters that they take, in the form \\?\ that has no such limit.
std::wstring wide_path(const std::string& utf8);

}  // namespace wherry

#endif  // WHERRY_ENGINE_SYSTEM_WIDE_H_
