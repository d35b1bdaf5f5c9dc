// The interface through which requests use the engine. It has two implementations: the engine of
// this process (app.cc), and in a web page the script, which runs the core as another WebAssembly
// module (web/app/page.cc).
#ifndef WHERRY_APP_CHAT_CORE_H_
#define WHERRY_APP_CHAT_CORE_H_

#include <cstdint>
#include <vector>

#include "wherry.h"

namespace wherry::app {

// The engine as requests see it; its events come back through Requests::hear.
class Core {
 public:
  virtual ~Core() = default;
  // Adds a request to the engine, as wherry_engine_add does. Throws Error.
  virtual void add(uint64_t id, const std::vector<int32_t>& prompt,
                   const wherry_params& params) = 0;
  virtual void abort(uint64_t id) = 0;  // does nothing if the request has ended
  virtual void wake() = 0;  // makes the core call Requests::hear soon, with or without events
};

}  // namespace wherry::app

#endif  // WHERRY_APP_CHAT_CORE_H_
