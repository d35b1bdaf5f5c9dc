#include "app/grammar/xgrammar/budget.h"

#include <algorithm>

#include "support/error.h"

namespace wherry::app {

namespace {

struct State {
  bool limited = false;
  int64_t left = 0;   // steps before the next check of the budget
  int64_t later = 0;  // steps that remain after the next check
  const std::atomic<bool>* cancelled = nullptr;
  const char* what = "";
  std::string warning;
};
thread_local State state;

// Steps between two checks of the budget, about a millisecond.
constexpr int64_t kPortion = 1 << 16;

// Takes the next portion of the budget; returns false if the budget is used up.
bool goes_on() {
  if (state.later == 0 || (state.cancelled != nullptr && *state.cancelled)) return false;
  state.left = std::min(state.later, kPortion);
  state.later -= state.left;
  return true;
}

constexpr int kWarning = 2;  // value of XGRAMMAR_LOG_LEVEL_WARNING

}  // namespace

void count_step() {
  if (!state.limited || state.left-- > 0) return;
  if (goes_on()) {
    --state.left;
    return;
  }
  state.limited = false;  // clean-up is not limited
  throw Error(WHERRY_INVALID_ARGUMENT, concat("it takes too long ", state.what));
}

Budget::Budget(int64_t steps, const char* what, const std::atomic<bool>* cancelled) {
  state = {true, 0, steps, cancelled, what, ""};
}
Budget::~Budget() { state = State(); }

void Budget::check_warnings() const {
  if (!state.warning.empty()) throw Error(WHERRY_INVALID_ARGUMENT, state.warning);
}

void note_warning(int level, const std::string& message) {
  if (level == kWarning && state.warning.empty()) state.warning = message;
}

}  // namespace wherry::app

// Replaces the functions with which xgrammar prints messages (XGRAMMAR_LOG_CUSTOMIZE).
namespace xgrammar {

[[noreturn]] void LogFatalImpl(const std::string& /*file*/, int /*line*/,
                               const std::string& message) {
  throw wherry::Error(WHERRY_INVALID_ARGUMENT, message);
}

void LogMessageImpl(const std::string& /*file*/, int /*line*/, int level,
                    const std::string& message) {
  wherry::app::note_warning(level, message);
}

}  // namespace xgrammar
