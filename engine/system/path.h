// Paths are UTF-8; std::filesystem on Windows takes a char for one of the system's old code page.
#ifndef WHERRY_ENGINE_SYSTEM_PATH_H_
#define WHERRY_ENGINE_SYSTEM_PATH_H_

#include <filesystem>
#include <string>

namespace wherry {

inline std::filesystem::path path_of(const std::string& utf8) {
  return std::filesystem::u8path(utf8);
}
inline std::string text_of(const std::filesystem::path& path) { return path.u8string(); }

}  // namespace wherry

#endif  // WHERRY_ENGINE_SYSTEM_PATH_H_
