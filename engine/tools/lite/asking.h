// A request of the terminal: its text is printed as it comes.
#ifndef WHERRY_ENGINE_TOOLS_LITE_ASKING_H_
#define WHERRY_ENGINE_TOOLS_LITE_ASKING_H_

#include <functional>
#include <string>

#include "tools/lite/model.h"

namespace wherry::lite {

struct Told {
  std::string text;
  std::string finish;       // "stop", "length"; "" where it was broken off
  std::string error, code;  // why there is none, or not all
};

// Prints the text and a newline behind it, if it has none. fields: of the request, without
// "stream"; stopped: asked now and then, whether it is to end.
Told ask(const Model& model, Items fields, const std::function<bool()>& stopped);

}  // namespace wherry::lite

#endif  // WHERRY_ENGINE_TOOLS_LITE_ASKING_H_
