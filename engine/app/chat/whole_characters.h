// Texts that end in the middle of a character.
#ifndef WHERRY_ENGINE_APP_CHAT_WHOLE_CHARACTERS_H_
#define WHERRY_ENGINE_APP_CHAT_WHOLE_CHARACTERS_H_

#include "app/template/value.h"

namespace wherry::app {

// request: read with jinja::Halves::kKept. Throws RequestError, which says where the first half of
// a surrogate pair is, in a text or in a name.
void require_whole_characters(const jinja::Value& request);

}  // namespace wherry::app

#endif  // WHERRY_ENGINE_APP_CHAT_WHOLE_CHARACTERS_H_
