// The guard around every call of wherry_app.h: it turns exceptions into a status and an error text.
#ifndef WHERRY_APP_ABI_CALLS_H_
#define WHERRY_APP_ABI_CALLS_H_

#include <new>
#include <string>

#include "app/files/download_error.h"
#include "app/load/open.h"
#include "app/request/request_error.h"
#include "support/error.h"
#include "wherry_app.h"

namespace wherry::app {

// Stores the message for wherry_app_last_error and returns the status.
int failed(int status, const std::string& message);

// Returns a copy that ends with a zero byte; the caller releases it with wherry_app_free.
char* copied(const std::string& text);

// Runs the body of an API call and turns its exceptions into a status.
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

#endif  // WHERRY_APP_ABI_CALLS_H_
