#if defined(_WIN32)

#include <windows.h>

#include <algorithm>

#include "system/wide.h"

namespace wherry {

std::wstring wide_of(std::string_view utf8) {
  const int bytes = static_cast<int>(utf8.size());
  const int count = MultiByteToWideChar(CP_UTF8, 0, utf8.data(), bytes, nullptr, 0);
  std::wstring wide(static_cast<size_t>(count), L'\0');
  MultiByteToWideChar(CP_UTF8, 0, utf8.data(), bytes, wide.data(), count);
  return wide;
}

std::string utf8_of(std::wstring_view wide) {
  const int units = static_cast<int>(wide.size());
  const int bytes =
      WideCharToMultiByte(CP_UTF8, 0, wide.data(), units, nullptr, 0, nullptr, nullptr);
  std::string utf8(static_cast<size_t>(bytes), '\0');
  WideCharToMultiByte(CP_UTF8, 0, wide.data(), units, utf8.data(), bytes, nullptr, nullptr);
  return utf8;
}

std::wstring wide_path(const std::string& utf8) {
  std::wstring path = wide_of(utf8);
  std::replace(path.begin(), path.end(), L'/', L'\\');
  constexpr size_t kMost = MAX_PATH - 12;  // a folder must leave room for the name of a file
  const bool drive = path.size() > 2 && path[1] == L':' && path[2] == L'\\';
  if (path.size() < kMost) return path;
  if (drive) return L"\\\\?\\" + path;
  const bool share = path.compare(0, 2, L"\\\\") == 0 && path.compare(2, 1, L"?") != 0;
  return share ? L"\\\\?\\UNC" + path.substr(1) : path;
}

}  // namespace wherry

#endif
