#include "app/chat/reply.h"

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "app/request/response_id.h"
#include "app/value/code_points.h"
#include "app/value/json_text.h"

namespace wherry::app {

namespace {

using Items = std::vector<std::pair<Value, Value>>;

// Returns a token as text; a partial character in OpenAI's form `bytes:\xe4\xb8`.
Value shown(const std::string& piece) {
  if (unicode::well_formed(piece) == piece) return Value(piece);
  std::string made = "bytes:";
  for (char byte : piece) {
    char text[8];
    std::snprintf(text, sizeof text, "\\x%02x", static_cast<unsigned char>(byte));
    made += text;
  }
  return Value(made);
}

Value bytes_of(const std::string& piece) {
  Values made;
  for (char byte : piece) made.emplace_back(static_cast<int64_t>(static_cast<unsigned char>(byte)));
  return json::make_list(std::move(made));
}

Value chat_logprobs(const std::vector<LoggedToken>& tokens) {
  Values content;
  for (const LoggedToken& token : tokens) {
    Values top;
    for (const auto& [piece, logprob] : token.top) {
      top.push_back(json::make_dict(
          {{"token", shown(piece)}, {"logprob", logprob}, {"bytes", bytes_of(piece)}}));
    }
    content.push_back(json::make_dict({{"token", shown(token.piece)},
                                       {"logprob", token.logprob},
                                       {"bytes", bytes_of(token.piece)},
                                       {"top_logprobs", json::make_list(std::move(top))}}));
  }
  return json::make_dict({{"content", json::make_list(std::move(content))}, {"refusal", Value()}});
}

Value completion_logprobs(const std::vector<LoggedToken>& tokens) {
  Values texts, logprobs, tops, offsets;
  for (const LoggedToken& token : tokens) {
    Items top;
    for (const auto& [piece, logprob] : token.top) top.emplace_back(shown(piece), logprob);
    texts.push_back(shown(token.piece));
    logprobs.emplace_back(token.logprob);
    tops.push_back(json::make_dict(std::move(top)));
    offsets.push_back(Value::size(token.offset));
  }
  return json::make_dict({{"tokens", json::make_list(std::move(texts))},
                          {"token_logprobs", json::make_list(std::move(logprobs))},
                          {"top_logprobs", json::make_list(std::move(tops))},
                          {"text_offset", json::make_list(std::move(offsets))}});
}

Value finish_of(const Delta& delta) { return delta.finish.empty() ? Value() : Value(delta.finish); }

Value usage_of(const Totals& totals) {
  return json::make_dict(
      {{"prompt_tokens", totals.prompt},
       {"completion_tokens", totals.sampled},
       {"total_tokens", totals.prompt + totals.sampled},
       {"prompt_tokens_details", json::make_dict({{"cached_tokens", totals.cached}})},
       {"completion_tokens_details",
        json::make_dict({{"accepted_prediction_tokens", totals.accepted},
                         {"rejected_prediction_tokens", totals.drafted - totals.accepted},
                         {"reasoning_tokens", totals.reasoning}})}});
}

// Returns the timings with the field names of llama.cpp's server; a rate is 0 if its time is 0.
Value timings_of(const Totals& totals) {
  const int64_t computed = totals.prompt - totals.cached;
  const auto each = [](double seconds, int64_t count) {
    return 1e3 * seconds / static_cast<double>(std::max<int64_t>(count, 1));
  };
  const auto rate = [](double seconds, int64_t count) {
    return seconds > 0 ? static_cast<double>(count) / seconds : 0.0;
  };
  return json::make_dict({{"queue_ms", 1e3 * totals.queue},
                          {"cache_n", totals.cached},
                          {"prompt_n", computed},
                          {"prompt_ms", 1e3 * totals.prefill},
                          {"prompt_per_token_ms", each(totals.prefill, computed)},
                          {"prompt_per_second", rate(totals.prefill, computed)},
                          {"predicted_n", totals.sampled},
                          {"predicted_ms", 1e3 * totals.decode},
                          {"predicted_per_token_ms", each(totals.decode, totals.sampled)},
                          {"predicted_per_second", rate(totals.decode, totals.sampled)}});
}

// Returns the call entries of a stream chunk: the start of a call, some of its arguments, or both.
// Clients expect one entry per call in a chunk. parts: adjacent parts of one kind are already
// merged.
Values call_deltas(const std::vector<Part>& parts) {
  Values made;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Part& part = parts[i];
    const bool begins = part.kind == Part::Kind::kCallBegin;
    if (!begins && part.kind != Part::Kind::kCallArguments) continue;
    if (begins && i + 1 < parts.size() && parts[i + 1].kind == Part::Kind::kCallArguments) ++i;
    Items function, added;
    if (begins) function.emplace_back("name", part.name);
    function.emplace_back("arguments", parts[i].text);
    added.emplace_back("index", Value::size(part.index));
    added.emplace_back("function", json::make_dict(std::move(function)));
    if (begins) {
      added.emplace_back("id", part.id);
      added.emplace_back("type", "function");
    }
    made.push_back(json::make_dict(std::move(added)));
  }
  return made;
}

Values whole_calls(const std::vector<Part>& parts) {
  Values made;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].kind != Part::Kind::kCallBegin) continue;
    std::string arguments;
    for (size_t k = i + 1; k < parts.size() && parts[k].index == parts[i].index; ++k) {
      if (parts[k].kind == Part::Kind::kCallArguments) arguments += parts[k].text;
    }
    made.push_back(json::make_dict(
        {{"id", parts[i].id},
         {"function", json::make_dict({{"name", parts[i].name}, {"arguments", arguments}})},
         {"type", "function"}}));
  }
  return made;
}

}  // namespace

Reply::Reply(const Plan& plan)
    : plan_(plan),
      id_(new_id(plan.chat ? "chatcmpl" : "cmpl")),
      created_(static_cast<int64_t>(std::time(nullptr))) {}

Value Reply::answer(Values choices, const Totals* totals, bool streamed, bool first) const {
  Items made = {{"id", id_},
                {"created", created_},
                {"model", plan_.model},
                {"choices", json::make_list(std::move(choices))}};
  if (totals != nullptr) {
    made.emplace_back("usage", usage_of(*totals));
    made.emplace_back("timings", timings_of(*totals));
  }
  made.emplace_back("object", !plan_.chat ? "text_completion"
                              : streamed  ? "chat.completion.chunk"
                                          : "chat.completion");
  if (first && plan_.dropped_messages > 0) {
    made.emplace_back("dropped_messages", plan_.dropped_messages);
  }
  return json::make_dict(std::move(made));
}

Value Reply::chat_chunk(const Delta& delta) const {
  Items added;
  const std::string text = delta.text(), reasoning = delta.reasoning();
  // True if the delta has only log probabilities.
  const bool nothing = delta.parts.empty() && delta.finish.empty();
  if (!text.empty() || (nothing && plan_.reading.tools.empty()))
    added.emplace_back("content", text);
  if (!reasoning.empty()) {
    added.emplace_back("reasoning_content", reasoning);
    added.emplace_back("reasoning", reasoning);
  }
  if (Values calls = call_deltas(delta.parts); !calls.empty()) {
    added.emplace_back("tool_calls", json::make_list(std::move(calls)));
  }
  return json::make_dict(
      {{"index", Value::size(delta.index)},
       {"delta", json::make_dict(std::move(added))},
       {"finish_reason", finish_of(delta)},
       {"logprobs", delta.logprobs.empty() ? Value() : chat_logprobs(delta.logprobs)}});
}

Value Reply::chat_choice(const Delta& delta) const {
  Values calls = whole_calls(delta.parts);
  const std::string text = delta.text();
  Items message = {{"content", text.empty() && !calls.empty() ? Value() : Value(text)},
                   {"role", "assistant"},
                   {"refusal", Value()}};
  if (const std::string reasoning = delta.reasoning(); !reasoning.empty()) {
    message.emplace_back("reasoning_content", reasoning);
    message.emplace_back("reasoning", reasoning);
  }
  if (!calls.empty()) message.emplace_back("tool_calls", json::make_list(std::move(calls)));
  return json::make_dict({{"index", Value::size(delta.index)},
                          {"message", json::make_dict(std::move(message))},
                          {"finish_reason", delta.finish.empty() ? "stop" : delta.finish},
                          {"logprobs", plan_.logprobs ? chat_logprobs(delta.logprobs) : Value()}});
}

Value Reply::completion_choice(const Delta& delta) const {
  return json::make_dict(
      {{"index", Value::size(delta.index)},
       {"text", delta.text()},
       {"finish_reason", finish_of(delta)},
       {"logprobs", plan_.logprobs ? completion_logprobs(delta.logprobs) : Value()}});
}

std::vector<std::string> Reply::opening() const {
  std::vector<std::string> made;
  for (size_t i = 0; plan_.chat && i < plan_.jobs.size(); ++i) {
    Items role;  // not an initializer list, because GCC 12 warns about that (-Warray-bounds)
    role.emplace_back("role", "assistant");
    if (plan_.reading.tools.empty()) role.emplace_back("content", "");
    const Value choice = json::make_dict({{"index", Value::size(i)},
                                          {"delta", json::make_dict(std::move(role))},
                                          {"finish_reason", Value()},
                                          {"logprobs", Value()}});
    made.push_back(json::to_compact_json(answer({choice}, nullptr, true, i == 0)));
  }
  return made;
}

std::string Reply::chunk(const Delta& delta) const {
  const Value choice = plan_.chat ? chat_chunk(delta) : completion_choice(delta);
  return json::to_compact_json(answer({choice}, nullptr, true, false));
}

std::string Reply::closing(const Totals& totals) const {
  return json::to_compact_json(answer({}, &totals, true, false));
}

std::string Reply::whole(const std::vector<Delta>& choices, const Totals& totals) const {
  Values made;
  for (const Delta& delta : choices) {
    made.push_back(plan_.chat ? chat_choice(delta) : completion_choice(delta));
  }
  return json::to_compact_json(answer(std::move(made), &totals, false, true));
}

}  // namespace wherry::app
