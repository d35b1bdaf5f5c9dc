// The guard around every function of the C ABI: it turns exceptions into statuses and stores their
// messages for wherry_last_error.
#ifndef WHERRY_ENGINE_ABI_GUARD_H_
#define WHERRY_ENGINE_ABI_GUARD_H_

#include <tvm/ffi/error.h>

#include <new>
#include <string>

#include "support/error.h"
#include "wherry.h"

namespace wherry {

// The calling thread's last error message, which wherry_last_error returns.
std::string& last_error();

inline int fail(wherry_status status, std::string text) {
  last_error() = std::move(text);
  return status;
}

// Runs `call` and returns its status; catches all exceptions.
template <typename Call>
int guard(const Call& call) noexcept {
  try {
    call();
    return WHERRY_OK;
  } catch (const Error& error) {
    return fail(error.status(), error.what());
  } catch (const tvm::ffi::Error& error) {
    const bool memory = error.kind() == "MemoryError";  // a device's runtime threw it
    return fail(memory ? WHERRY_OUT_OF_MEMORY : WHERRY_INTERNAL,
                concat(std::string(error.kind()), ": ", std::string(error.message())));
  } catch (const std::bad_alloc&) {
    return fail(WHERRY_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception& error) {
    return fail(WHERRY_INTERNAL, error.what());
  } catch (...) {
    return fail(WHERRY_INTERNAL, "an exception of an unknown kind");
  }
}

template <typename T>
T& required(T* pointer, const char* name) {
  if (pointer == nullptr) throw Error(WHERRY_INVALID_ARGUMENT, concat(name, " is null"));
  return *pointer;
}

}  // namespace wherry

#endif  // WHERRY_ENGINE_ABI_GUARD_H_
