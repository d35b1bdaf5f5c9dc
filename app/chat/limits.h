// Checks a plan against the limits of the model, the context and the host.
#ifndef WHERRY_APP_CHAT_LIMITS_H_
#define WHERRY_APP_CHAT_LIMITS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "app/chat/plan.h"

namespace wherry::app {

// All throw RequestError.

// Returns the tokens of a text. field: the request's field that has it. Refuses a text of more
// tokens than the context.
std::vector<int32_t> encoded(const Model& model, const std::string& text, const char* field,
                             bool add_special_tokens);
// Refuses a prompt whose images alone have more rows than the context.
void require_room(const Model& model, int64_t rows);
// Refuses a prompt that is empty, has unknown tokens or does not fit with `output` tokens; 0: any.
void check_prompt(const std::vector<int32_t>& prompt, int64_t output, const char* field,
                  const Model& model);
// Refuses more log probabilities than memory has room for, counted over all choices.
void check_logprobs(const Plan& plan, const Model& model);
// Refuses models that write no text.
void require_text(const Model& model);
// Limits the outputs as the host says; refuses a prompt that alone fills the context.
void limit_jobs(Plan& plan, const RequestOptions& options);

}  // namespace wherry::app

#endif  // WHERRY_APP_CHAT_LIMITS_H_
