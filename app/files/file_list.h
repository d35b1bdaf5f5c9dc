// Reads the list of files of a model from its manifest, wherry.json.
#ifndef WHERRY_APP_FILES_FILE_LIST_H_
#define WHERRY_APP_FILES_FILE_LIST_H_

#include <cstdint>
#include <string>
#include <vector>

namespace wherry::app {

inline constexpr const char* kManifest = "wherry.json";

struct FileRecord {
  std::string name;    // file name without directories
  int64_t size;        // bytes
  std::string sha256;  // hash in hexadecimal
};

// Returns the files that a manifest lists; `source` names the manifest in errors. Throws
// Error(WHERRY_INCOMPATIBLE) for a text that is not a manifest, another version, or a file outside
// the folder; DownloadError(WHERRY_DAMAGED) if the manifest does not match its own digest.
std::vector<FileRecord> file_list(const std::string& text, const std::string& source);

}  // namespace wherry::app

#endif  // WHERRY_APP_FILES_FILE_LIST_H_
