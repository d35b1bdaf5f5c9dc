// Declares the commands, one per file. They return the program's exit code and throw
// std::runtime_error.
#ifndef WHERRY_APP_LITE_COMMANDS_H_
#define WHERRY_APP_LITE_COMMANDS_H_

#include "app/lite/arguments.h"

namespace wherry::lite {

int chat(const Arguments& typed);
int run(const Arguments& typed);
int serve(const Arguments& typed);

}  // namespace wherry::lite

#endif  // WHERRY_APP_LITE_COMMANDS_H_
