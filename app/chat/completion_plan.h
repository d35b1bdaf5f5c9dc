// Plans a completion: prompts that the output continues, or whose gap it fills.
#ifndef WHERRY_APP_CHAT_COMPLETION_PLAN_H_
#define WHERRY_APP_CHAT_COMPLETION_PLAN_H_

#include "app/chat/plan.h"

namespace wherry::app {

// Throws RequestError.
Plan completion_plan(const Value& request, const Model& model);

}  // namespace wherry::app

#endif  // WHERRY_APP_CHAT_COMPLETION_PLAN_H_
