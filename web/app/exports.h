// Functions that both WebAssembly modules of the app export to the script: memory allocation, and
// the reason of the last failure. exports.cc defines them.
#ifndef WHERRY_WEB_APP_EXPORTS_H_
#define WHERRY_WEB_APP_EXPORTS_H_

#include <exception>
#include <new>
#include <string>

#include "support/error.h"

namespace wherry::app {

// Sets the result of wherry_last_error.
void set_last_error(const std::string& reason);

// Runs `work` and returns WHERRY_OK; if it throws, sets the last error and returns a wherry_status.
template <typename Work>
int guarded(Work work) noexcept {
  try {
    work();
    return WHERRY_OK;
  } catch (const Error& error) {
    set_last_error(error.what());
    return error.status();
  } catch (const std::bad_alloc&) {
    set_last_error("out of memory");
    return WHERRY_OUT_OF_MEMORY;
  } catch (const std::exception& error) {
    set_last_error(error.what());
    return WHERRY_INTERNAL;
  }
}

}  // namespace wherry::app

#endif  // WHERRY_WEB_APP_EXPORTS_H_
