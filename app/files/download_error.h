// An error that ends a download, with its status of wherry_app.h.
#ifndef WHERRY_APP_FILES_DOWNLOAD_ERROR_H_
#define WHERRY_APP_FILES_DOWNLOAD_ERROR_H_

#include <stdexcept>
#include <string>

#include "wherry_app.h"

namespace wherry::app {

class DownloadError : public std::runtime_error {
 public:
  // status: an error code of wherry_app.h or a wherry_status.
  DownloadError(int status, const std::string& message)
      : std::runtime_error(message), status_(status) {}
  int status() const { return status_; }

 private:
  int status_;
};

}  // namespace wherry::app

#endif  // WHERRY_APP_FILES_DOWNLOAD_ERROR_H_
