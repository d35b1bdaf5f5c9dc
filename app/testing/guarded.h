// The errors of libwherry_readers' functions, which throw nothing to their callers.
#ifndef WHERRY_APP_TESTING_GUARDED_H_
#define WHERRY_APP_TESTING_GUARDED_H_

#include <exception>
#include <string>

namespace wherry::app {

inline thread_local std::string last_error;  // what wherry_reader_error() returns

// Runs the body of an API call, which returns a pointer; null if it throws.
template <typename Work>
auto guarded(Work work) noexcept -> decltype(work()) {
  try {
    return work();
  } catch (const std::exception& error) {
    last_error = error.what();
    return nullptr;
  }
}

}  // namespace wherry::app

#endif  // WHERRY_APP_TESTING_GUARDED_H_
