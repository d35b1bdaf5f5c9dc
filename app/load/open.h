// Opens a chat app from a compiled folder and options.
#ifndef WHERRY_APP_CHAT_OPEN_H_
#define WHERRY_APP_CHAT_OPEN_H_

#include <memory>
#include <string>

#include "app/load/app.h"
#include "wherry_app.h"

namespace wherry::app {

// The exception for a load that the caller cancelled.
class Cancelled {};

// Opens an app as wherry_app_open does. Throws Error, or Cancelled.
std::unique_ptr<App> open_app(const std::string& folder, const std::string& options_json,
                              const wherry_app_progress* progress);

}  // namespace wherry::app

#endif  // WHERRY_APP_CHAT_OPEN_H_
