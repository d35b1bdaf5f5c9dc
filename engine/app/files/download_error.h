// What stops a download, with the status that wherry_app.h has for it.
#ifndef WHERRY_ENGINE_APP_FILES_DOWNLOAD_ERROR_H_
#define WHERRY_ENGINE_APP_FILES_DOWNLOAD_ERROR_H_

#include <stdexcept>
#include <string>

#include "wherry_app.h"

namespace wherry::app {

class DownloadError : public std::runtime_error {
 public:
  // status: of wherry_app.h, or a wherry_status.
  DownloadError(int status, const std::string& message)
      : std::runtime_error(message), status_(status) {}
  int status() const { return status_; }

 private:
  int status_;
};

}  // namespace wherry::app

#endif  // WHERRY_ENGINE_APP_FILES_DOWNLOAD_ERROR_H_
