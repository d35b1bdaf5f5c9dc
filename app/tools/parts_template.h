// Chat templates that read the content of a message as a list of parts alone, as those of models
// that read images do.
#ifndef WHERRY_APP_TOOLS_PARTS_TEMPLATE_H_
#define WHERRY_APP_TOOLS_PARTS_TEMPLATE_H_

#include <memory>

#include "app/template/chat_template.h"

namespace wherry::app {

// Returns a template that takes texts as contents: the given one, or one that gives it each text as
// a list with one part, {"type": "text", "text": ...}, if it leaves out or refuses texts, and takes
// such lists.
std::unique_ptr<const jinja::ChatTemplate> taking_texts(
    std::unique_ptr<const jinja::ChatTemplate> chat_template);

}  // namespace wherry::app

#endif  // WHERRY_APP_TOOLS_PARTS_TEMPLATE_H_
