// Replaces `wherry-lite serve` in builds without cpp-httplib.
#include <stdexcept>

#include "app/lite/commands.h"

namespace wherry::lite {

int serve(const Arguments&) {
  throw std::runtime_error(
      "this program was built without cpp-httplib, so it has no `serve`. mobile/README.md says how "
      "to build one that has");
}

}  // namespace wherry::lite
