// The commands, each its own file. They give the program's exit code, and throw std::runtime_error.
#ifndef WHERRY_ENGINE_TOOLS_LITE_COMMANDS_H_
#define WHERRY_ENGINE_TOOLS_LITE_COMMANDS_H_

#include "tools/lite/arguments.h"

namespace wherry::lite {

int chat(const Arguments& typed);
int run(const Arguments& typed);
int serve(const Arguments& typed);

}  // namespace wherry::lite

#endif  // WHERRY_ENGINE_TOOLS_LITE_COMMANDS_H_
