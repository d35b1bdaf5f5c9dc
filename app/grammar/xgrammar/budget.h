// Limits the time that xgrammar may use on a thread.
#ifndef WHERRY_APP_GRAMMAR_XGRAMMAR_BUDGET_H_
#define WHERRY_APP_GRAMMAR_XGRAMMAR_BUDGET_H_

#include <atomic>
#include <cstdint>
#include <string>

namespace wherry::app {

// While an object exists, xgrammar calls of this thread throw Error(WHERRY_INVALID_ARGUMENT, "it
// takes too long ...") after a number of steps (a desktop core makes some sixty million per second
// with 128k tokens), or soon after `unwanted` becomes true. xgrammar's warnings become errors, too,
// because xgrammar warns where it ignores a part of its input.
class Budget {
 public:
  Budget(int64_t steps, const char* what, const std::atomic<bool>* cancelled = nullptr);
  ~Budget();
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  // Throws Error with xgrammar's warnings since the object was created.
  void check_warnings() const;
};

}  // namespace wherry::app

#endif  // WHERRY_APP_GRAMMAR_XGRAMMAR_BUDGET_H_
