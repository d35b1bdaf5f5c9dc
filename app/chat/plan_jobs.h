// What the plans of chats and completions have in common.
#ifndef WHERRY_APP_CHAT_PLAN_JOBS_H_
#define WHERRY_APP_CHAT_PLAN_JOBS_H_

#include <vector>

#include "app/chat/plan.h"

namespace wherry::app {

// Adds a job for each choice of each prompt. field: the request's field that has the prompts.
// Throws RequestError if they exceed a limit.
void add_jobs(Plan& plan, const std::vector<std::vector<int32_t>>& prompts, const Fields& fields,
              const Model& model, const char* field);
// Sets what chats and completions alike read from a request.
void set_common(Plan& plan, const Fields& fields, const Model& model);
// Returns what an output has to follow, as JSON for a host that makes grammars by itself: members
// of an object, to which plan_of adds the tenant.
Constraint host_constraint(const Value& fields, const Value& chat);

}  // namespace wherry::app

#endif  // WHERRY_APP_CHAT_PLAN_JOBS_H_
