// `wherry-lite serve` where cpp-httplib was not there when the program was built.
#include <stdexcept>

#include "tools/lite/commands.h"

namespace wherry::lite {

int serve(const Arguments&) {
  throw std::runtime_error(
      "this program was built without cpp-httplib, so it has no `serve`. mobile/README.md says how "
      "to build one that has");
}

}  // namespace wherry::lite
