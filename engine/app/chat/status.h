// The core's calls, whose failures become errors here.
#ifndef WHERRY_ENGINE_APP_CHAT_STATUS_H_
#define WHERRY_ENGINE_APP_CHAT_STATUS_H_

#include "support/error.h"
#include "wherry.h"

namespace wherry::app {

// Throws Error with what the core says.
inline void check(int status) {
  if (status != WHERRY_OK) throw Error(static_cast<wherry_status>(status), wherry_last_error());
}

}  // namespace wherry::app

#endif  // WHERRY_ENGINE_APP_CHAT_STATUS_H_
