// What a manifest, wherry.json, says of the folder's files.
#ifndef WHERRY_ENGINE_APP_FILES_FILE_LIST_H_
#define WHERRY_ENGINE_APP_FILES_FILE_LIST_H_

#include <cstdint>
#include <string>
#include <vector>

namespace wherry::app {

inline constexpr const char* kManifest = "wherry.json";

struct FileRecord {
  std::string name;    // in the folder itself
  int64_t size;        // bytes
  std::string sha256;  // in hexadecimal
};

// The files of a manifest's text; `source` names it in errors. Throws Error(WHERRY_INCOMPATIBLE):
// it is none, of another version, or names a file outside its folder;
// DownloadError(WHERRY_DAMAGED): it is not what was written.
std::vector<FileRecord> file_list(const std::string& text, const std::string& source);

}  // namespace wherry::app

#endif  // WHERRY_ENGINE_APP_FILES_FILE_LIST_H_
