// Rejects texts that contain half of a surrogate pair.
#ifndef WHERRY_APP_REQUEST_COMPLETE_CHARACTERS_H_
#define WHERRY_APP_REQUEST_COMPLETE_CHARACTERS_H_

#include "app/value/value.h"

namespace wherry::app {

// Checks a request, which must be parsed with json::Halves::kKept. Throws RequestError with the
// path of the first half surrogate pair, in a text or in a name.
void require_complete_characters(const json::Value& request);

}  // namespace wherry::app

#endif  // WHERRY_APP_REQUEST_COMPLETE_CHARACTERS_H_
