// Ids of responses.
#ifndef WHERRY_APP_REQUEST_RESPONSE_ID_H_
#define WHERRY_APP_REQUEST_RESPONSE_ID_H_

#include <string>

namespace wherry::app {

// Returns "kind-" and 24 random hexadecimal digits.
std::string new_id(const char* kind);

}  // namespace wherry::app

#endif  // WHERRY_APP_REQUEST_RESPONSE_ID_H_
