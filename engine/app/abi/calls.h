// What all calls of wherry_app.h share: no exception leaves them, and errors have a text.
#ifndef WHERRY_ENGINE_APP_ABI_CALLS_H_
#define WHERRY_ENGINE_APP_ABI_CALLS_H_

#include <new>
#include <string>

#include "app/chat/open.h"
#include "app/chat/request_error.h"
#include "app/files/download_error.h"
#include "support/error.h"
#include "wherry_app.h"

namespace wherry::app {

// Keeps the text for wherry_app_last_error; gives the status.
int failed(int status, const std::string& message);

// Runs a call's work.
template <typename Work>
int guarded(Work work) noexcept {
  try {
    work();
    return WHERRY_OK;
  } catch (const Error& error) {
    return failed(error.status(), error.what());
  } catch (const DownloadError& error) {
    return failed(error.status(), error.what());
  } catch (const RequestError& error) {
    return failed(WHERRY_INVALID_ARGUMENT, error.what());
  } catch (const Cancelled&) {
    return failed(WHERRY_CANCELLED, "the load was cancelled");
  } catch (const std::bad_alloc&) {
    return failed(WHERRY_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception& error) {
    return failed(WHERRY_INTERNAL, error.what());
  }
}

inline void require(const void* pointer, const char* name) {
  if (pointer != nullptr) return;
  throw Error(WHERRY_INVALID_ARGUMENT, std::string(name) + " is null");
}

}  // namespace wherry::app

#endif  // WHERRY_ENGINE_APP_ABI_CALLS_H_
