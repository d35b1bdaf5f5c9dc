#include "app/chat/limits.h"

#include <algorithm>
#include <string_view>

#include "app/request/request_error.h"

namespace wherry::app {

namespace {

constexpr int64_t kMaxLogprobs = 1 << 21;  // in all choices of a request, of about 60 bytes each
constexpr size_t kBytesPerToken = 32;  // upper bound on the average of a long text, in any language

// Whether a text certainly exceeds the context, so that it need not be tokenized.
bool certainly_long(const std::string& text, size_t context) {
  return text.size() > size_t{4} * context * kBytesPerToken && text.size() > 65536;
}

// The error of a prompt and an output that exceed the context, in the words that clients search
// for. least: "at least " if the prompt may have more tokens.
RequestError overflow(int64_t context, int64_t prompt, int64_t output, const std::string& field,
                      const std::string& hint, const std::string& least = "") {
  RequestError error("This model's maximum context length is " + std::to_string(context) +
                         " tokens. However, you requested " + least +
                         std::to_string(prompt + output) + " tokens (" + least +
                         std::to_string(prompt) + " in the " + field + ", " +
                         std::to_string(output) + " in the completion). Please reduce the length " +
                         "of the " + field + " or completion. " + hint + (hint.empty() ? "" : " ") +
                         "(context_length_exceeded)",
                     field, "context_length_exceeded");
  error.overflow = Overflow{context, prompt, output};
  return error;
}

// Checks that a source and an output fit, each into the context.
void check_source(int64_t source, int64_t output, const Model& model) {
  const int64_t context = model.abilities.context;
  if (source > context) {
    throw RequestError("This model reads sources of up to " + std::to_string(context) +
                           " tokens; prompt has " + std::to_string(source) + ". Shorten it.",
                       "prompt", "context_length_exceeded");
  }
  const int64_t room = context - static_cast<int64_t>(model.decoder_start.size());
  if (output > room) {
    throw RequestError("This model writes up to " + std::to_string(room) +
                           " tokens; max_tokens is " + std::to_string(output),
                       "max_tokens", "context_length_exceeded");
  }
}

}  // namespace

std::vector<int32_t> encoded(const Model& model, const std::string& text, const char* field,
                             bool add_special_tokens) {
  const auto context = static_cast<size_t>(model.abilities.context);
  const auto too_long = [&](int64_t at_least) {
    return overflow(model.abilities.context, at_least, 1, field,
                    std::string("The ") + field + " has " + std::to_string(Value(text).chars()) +
                        " characters.",
                    "at least ");
  };
  if (certainly_long(text, context)) throw too_long(model.abilities.context + 1);
  try {
    return model.abilities.tokenizer->encode_at_most(text, add_special_tokens,
                                                     model.abilities.context);
  } catch (const text::TooManyTokens& many) {
    throw too_long(many.at_least);
  }
}

void require_room(const Model& model, int64_t rows) {
  const int64_t context = model.abilities.context;
  if (rows < context) return;
  throw overflow(context, rows, 1, "messages", "Its images alone do not fit.", "at least ");
}

void check_prompt(const std::vector<int32_t>& prompt, int64_t output, const char* field,
                  const Model& given) {
  const Abilities& model = given.abilities;
  if (prompt.empty()) {
    throw RequestError(std::string(field) + " is empty; the model needs at least one token", field);
  }
  const auto size = static_cast<int64_t>(prompt.size());
  if (!given.decoder_start.empty()) {
    check_source(size, output, given);
  } else if (output = std::max<int64_t>(output, 1); size + output > model.context) {
    const bool messages = std::string_view(field) == "messages";
    throw overflow(model.context, size, output, field,
                   messages ? "truncation: \"auto\" drops the oldest turns." : "");
  }
  const int32_t worst = *std::max_element(prompt.begin(), prompt.end());
  if (worst >= model.vocab_size || *std::min_element(prompt.begin(), prompt.end()) < 0) {
    throw RequestError(std::string(field) + " holds token " + std::to_string(worst) +
                           "; ids go from 0 to " + std::to_string(model.vocab_size - 1),
                       field);
  }
}

void check_logprobs(const Plan& plan, const Model& model) {
  const wherry_params& params = plan.sampling.params;
  const int64_t each = plan.logprobs ? params.top_logprobs + 1 : 0;
  int64_t tokens = 0, of_prompts = 0;
  for (const Job& job : plan.jobs) {
    tokens += job.max_tokens;
    of_prompts += static_cast<int64_t>(job.prompt.size()) * (params.prompt_logprobs + 1);
  }
  const int64_t most =
      std::max(kMaxLogprobs, model.abilities.context * (WHERRY_MAX_TOP_LOGPROBS + 1));
  if (each * tokens + of_prompts <= most) return;
  const std::string name = plan.chat ? "top_logprobs" : "logprobs";
  std::string counts;
  if (each * tokens > 0) {
    counts = "n x max_tokens x (" + name + " + 1) is " + std::to_string(each * tokens);
  }
  if (of_prompts > 0) {
    counts += (counts.empty() ? "" : " and ") +
              std::string("n x the prompt's tokens x (prompt_logprobs + 1) is ") +
              std::to_string(of_prompts);
  }
  throw RequestError(counts + ", of " + std::to_string(plan.jobs.size()) + " outputs; at most " +
                         std::to_string(most) +
                         " log probabilities are given. Ask for fewer outputs, tokens or "
                         "alternatives.",
                     each > 0 ? name : "prompt_logprobs");
}

void require_text(const Model& model) {
  const Head& head = model.vectors.head;
  if (head.writes_text) return;
  if (head.kind == HeadKind::kClass) {
    throw RequestError(
        "This model gives classes or scores and writes no text: POST /classify or /v1/rerank, or "
        "\"task\": \"classify\" or \"rerank\"",
        "", "no_text");
  }
  throw RequestError(
      "This model gives embeddings and writes no text: POST /v1/embeddings, or \"task\": \"embed\"",
      "", "no_text");
}

void limit_jobs(Plan& plan, const RequestOptions& options) {
  plan.room = plan.jobs.empty() ? 0 : plan.jobs[0].max_tokens;
  for (Job& job : plan.jobs) {
    int64_t most = job.max_tokens;
    if (options.context > 0) {  // the host's limits stand for the request's own, and its default
      const auto size = static_cast<int64_t>(job.prompt.size());
      if (size >= options.context) {
        throw overflow(options.context, size, 1, options.context_field, "");
      }
      most = options.context - size;
    }
    if (options.max_tokens > 0) most = std::min(most, options.max_tokens);
    job.max_tokens = static_cast<int32_t>(options.prompt_only ? 1 : most);
  }
}

}  // namespace wherry::app
