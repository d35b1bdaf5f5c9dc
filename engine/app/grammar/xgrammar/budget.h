// How much of a thread's time xgrammar may take.
#ifndef WHERRY_ENGINE_APP_GRAMMAR_XGRAMMAR_BUDGET_H_
#define WHERRY_ENGINE_APP_GRAMMAR_XGRAMMAR_BUDGET_H_

#include <atomic>
#include <cstdint>
#include <string>

namespace wherry::app {

// While it lives, this thread's calls of xgrammar throw Error(WHERRY_INVALID_ARGUMENT, "it takes
// too long ...") after so many steps; a desktop's core makes some sixty million in a second (128k
// tokens); or soon after `unwanted` became true. What xgrammar warns of is an error, too: it says
// so where it ignores a part of what it was given.
class Budget {
 public:
  Budget(int64_t steps, const char* what, const std::atomic<bool>* unwanted = nullptr);
  ~Budget();
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  // Throws Error with what xgrammar warned of since the beginning.
  void check_warnings() const;
};

}  // namespace wherry::app

#endif  // WHERRY_ENGINE_APP_GRAMMAR_XGRAMMAR_BUDGET_H_
