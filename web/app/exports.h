// What both modules of the app give the script: their memory, and the reason of the last failure.
#ifndef WHERRY_WEB_APP_EXPORTS_H_
#define WHERRY_WEB_APP_EXPORTS_H_

#include <exception>
#include <new>
#include <string>

#include "support/error.h"

namespace wherry::app {

void set_last_error(const std::string& reason);

// Runs a call's work: 0, or a wherry_status with its reason kept.
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
