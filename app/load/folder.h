// Reads the manifest of a compiled folder and checks its files.
#ifndef WHERRY_APP_CHAT_FOLDER_H_
#define WHERRY_APP_CHAT_FOLDER_H_

#include <cstdint>
#include <string>

#include "app/chat/text_interface.h"

namespace wherry::app {

// The manifest, wherry.json. Reading it checks that the files exist with the listed sizes. Throws
// Error.
struct Manifest {
  std::string name;
  std::string library;
  std::string linked;  // symbol prefix of a library that is linked into the program; "" for a file
  // Limits of the library; 0 if not in the manifest.
  int64_t context = 0, max_batch = 0, prefill_chunk = 0;
  int64_t bytes = 0;  // bytes of all files
};
Manifest read_manifest(const std::string& folder);

Files files_of(const std::string& folder);

}  // namespace wherry::app

#endif  // WHERRY_APP_CHAT_FOLDER_H_
