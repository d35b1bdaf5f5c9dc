// Downloads model folders from a server.
#ifndef WHERRY_APP_FILES_DOWNLOAD_H_
#define WHERRY_APP_FILES_DOWNLOAD_H_

#include <cstdint>
#include <string>

#include "wherry_app.h"

namespace wherry::app {

struct DownloadOptions {
  bool verify = false;
  int64_t retry_wait = 250;  // milliseconds
};

// Parses the JSON options of a download; "" gives the defaults. Throws
// Error(WHERRY_INVALID_ARGUMENT).
DownloadOptions read_download_options(const std::string& json);

// Downloads a model folder as wherry_app_download does. Throws DownloadError or Error.
void download(const std::string& url, const std::string& folder, const DownloadOptions& options,
              const wherry_app_fetcher& fetcher, const wherry_app_progress* progress);

// Returns the JSON of wherry_app_missing. Throws DownloadError or Error.
std::string missing_files(const std::string& manifest, const std::string& folder);

}  // namespace wherry::app

#endif  // WHERRY_APP_FILES_DOWNLOAD_H_
