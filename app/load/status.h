// Turns failed calls of the core's C ABI into exceptions.
#ifndef WHERRY_APP_CHAT_STATUS_H_
#define WHERRY_APP_CHAT_STATUS_H_

#include "support/error.h"
#include "wherry.h"

namespace wherry::app {

// Throws Error with the core's message if the status is not WHERRY_OK.
inline void check(int status) {
  if (status != WHERRY_OK) throw Error(static_cast<wherry_status>(status), wherry_last_error());
}

}  // namespace wherry::app

#endif  // WHERRY_APP_CHAT_STATUS_H_
