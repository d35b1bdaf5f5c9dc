#include "app/chat/reply.h"

#include <algorithm>
#include <ctime>

#include "app/chat/reply_text.h"
#include "app/request/response_id.h"
#include "app/value/json_text.h"

namespace wherry::app {

namespace {

using Items = std::vector<std::pair<Value, Value>>;

std::string joined(const std::vector<std::string>& items) {
  ListText result;
  for (const std::string& item : items) result.raw(item);
  return std::move(result).done();
}

std::string chat_logprobs(const std::vector<LoggedToken>& tokens) {
  ObjectText result;
  result.raw("content", token_logprobs(tokens));
  result.raw("refusal", "null");
  return std::move(result).done();
}

std::string completion_logprobs(const std::vector<LoggedToken>& tokens) {
  ListText texts, logprobs, tops, offsets;
  for (const LoggedToken& token : tokens) {
    Items top;
    for (const auto& [piece, logprob] : token.top) {
      top.emplace_back(shown(piece), static_cast<double>(logprob));
    }
    texts.raw(json::to_compact_json(shown(token.piece)));
    logprobs.raw(token.logprob ? json_number(*token.logprob) : "null");
    tops.raw(token.logprob ? json::to_compact_json(json::make_dict(std::move(top))) : "null");
    offsets.raw(std::to_string(token.offset));
  }
  ObjectText result;
  result.raw("tokens", std::move(texts).done());
  result.raw("token_logprobs", std::move(logprobs).done());
  result.raw("top_logprobs", std::move(tops).done());
  result.raw("text_offset", std::move(offsets).done());
  return std::move(result).done();
}

Value finish_of(const Delta& delta) { return delta.finish.empty() ? Value() : Value(delta.finish); }

const char* kind_of(const Part& call) { return call.custom ? "custom" : "function"; }

// Returns the call entries of a stream chunk: the start of a call, some of its arguments, or both.
// Clients expect one entry per call in a chunk. parts: adjacent parts of one kind are already
// merged.
Values call_deltas(const std::vector<Part>& parts) {
  Values values;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Part& part = parts[i];
    const bool begins = part.kind == Part::Kind::kCallBegin;
    if (!begins && part.kind != Part::Kind::kCallArguments) continue;
    if (begins && i + 1 < parts.size() && parts[i + 1].kind == Part::Kind::kCallArguments) ++i;
    const char* kind = kind_of(part);
    Items called, added, of_call;
    if (begins) called.emplace_back("name", part.name);
    const std::string text =
        parts[i].kind == Part::Kind::kCallArguments ? parts[i].text : std::string();
    called.emplace_back(part.custom ? "input" : "arguments", text);
    if (begins) of_call = {{"id", part.id}, {"type", kind}};
    added.emplace_back("index", Value::size(part.index));
    if (part.custom) added.insert(added.end(), of_call.begin(), of_call.end());
    added.emplace_back(kind, json::make_dict(std::move(called)));
    if (!part.custom) added.insert(added.end(), of_call.begin(), of_call.end());
    values.push_back(json::make_dict(std::move(added)));
  }
  return values;
}

Values complete_calls(const std::vector<Part>& parts) {
  Values values;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].kind != Part::Kind::kCallBegin) continue;
    std::string arguments;
    for (size_t k = i + 1; k < parts.size() && parts[k].index == parts[i].index; ++k) {
      if (parts[k].kind == Part::Kind::kCallArguments) arguments += parts[k].text;
    }
    const char* kind = kind_of(parts[i]);
    const bool custom = parts[i].custom;
    Items call = {{"id", parts[i].id}};
    if (custom) call.emplace_back("type", kind);
    call.emplace_back(kind, json::make_dict({{"name", parts[i].name},
                                             {custom ? "input" : "arguments", arguments}}));
    if (!custom) call.emplace_back("type", kind);
    values.push_back(json::make_dict(std::move(call)));
  }
  return values;
}

}  // namespace

Reply::Reply(const Plan& plan, const Tokenizer& tokenizer)
    : plan_(plan),
      tokenizer_(tokenizer),
      id_(new_id(plan.chat ? "chatcmpl" : "cmpl")),
      created_(static_cast<int64_t>(std::time(nullptr))) {}

std::string Reply::answer(const std::vector<std::string>& choices, const Totals* totals,
                          bool streamed, bool first, const std::string& of_prompt) const {
  ObjectText result;
  result.add("id", id_);
  result.add("created", created_);
  result.add("model", plan_.model);
  result.raw("choices", joined(choices));
  if (totals != nullptr) {
    result.add("usage", usage_of(*totals));
    result.add("timings", timings_of(*totals));
  }
  result.add("object", !plan_.chat ? "text_completion"
                       : streamed  ? "chat.completion.chunk"
                                   : "chat.completion");
  if (first && plan_.dropped_messages > 0) result.add("dropped_messages", plan_.dropped_messages);
  if (!of_prompt.empty()) result.raw("prompt_logprobs", of_prompt);
  return std::move(result).done();
}

std::string Reply::chat_chunk(const Delta& delta) const {
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
  ObjectText result;
  result.raw("index", std::to_string(delta.index));
  result.add("delta", json::make_dict(std::move(added)));
  result.add("finish_reason", finish_of(delta));
  result.raw("logprobs", delta.logprobs.empty() ? "null" : chat_logprobs(delta.logprobs));
  return std::move(result).done();
}

std::string Reply::chat_choice(const Delta& delta) const {
  Values calls = complete_calls(delta.parts);
  const std::string text = delta.text();
  Items message = {{"content", text.empty() && !calls.empty() ? Value() : Value(text)},
                   {"role", "assistant"},
                   {"refusal", Value()}};
  if (const std::string reasoning = delta.reasoning(); !reasoning.empty()) {
    message.emplace_back("reasoning_content", reasoning);
    message.emplace_back("reasoning", reasoning);
  }
  if (!calls.empty()) message.emplace_back("tool_calls", json::make_list(std::move(calls)));
  ObjectText result;
  result.raw("index", std::to_string(delta.index));
  result.add("message", json::make_dict(std::move(message)));
  result.add("finish_reason", delta.finish.empty() ? "stop" : delta.finish);
  result.raw("logprobs", plan_.logprobs ? chat_logprobs(delta.logprobs) : "null");
  return std::move(result).done();
}

std::string Reply::completion_choice(const Delta& delta) const {
  ObjectText result;
  result.raw("index", std::to_string(delta.index));
  result.add("text", delta.text());
  result.add("finish_reason", finish_of(delta));
  result.raw("logprobs", plan_.logprobs ? completion_logprobs(delta.logprobs) : "null");
  if (plan_.prompt_logprobs && !plan_.stream) {
    result.raw("prompt_logprobs", prompt_logprobs(delta.prompt));
  }
  return std::move(result).done();
}

// Returns an object for each prompt token: the token and its alternatives; null for the first.
// `rank` is a token's place among all tokens; null if it is not among the alternatives.
std::string Reply::prompt_logprobs(const std::vector<PromptToken>& tokens) const {
  ListText result;
  result.raw("null");
  for (const PromptToken& token : tokens) {
    ObjectText entry;
    const auto add = [&](int32_t id, float logprob, const Value& rank) {
      ObjectText one;
      one.raw("logprob", json_number(logprob));
      one.add("rank", rank);
      one.add("decoded_token", shown(tokenizer_.piece(id)));
      entry.raw(std::to_string(id), std::move(one).done());
    };
    const auto own = std::find_if(token.top.begin(), token.top.end(),
                                  [&](const auto& other) { return other.first == token.token; });
    const Value rank =
        own == token.top.end() ? Value() : Value(int64_t{own - token.top.begin() + 1});
    add(token.token, token.logprob, rank);
    for (auto other = token.top.begin(); other != token.top.end(); ++other) {
      if (other != own)
        add(other->first, other->second, Value(int64_t{other - token.top.begin() + 1}));
    }
    result.raw(std::move(entry).done());
  }
  return std::move(result).done();
}

std::vector<std::string> Reply::opening() const {
  std::vector<std::string> texts;
  for (size_t i = 0; plan_.chat && i < plan_.jobs.size(); ++i) {
    Items role;  // not an initializer list, because GCC 12 warns about that (-Warray-bounds)
    role.emplace_back("role", "assistant");
    if (plan_.reading.tools.empty()) role.emplace_back("content", "");
    const Value choice = json::make_dict({{"index", Value::size(i)},
                                          {"delta", json::make_dict(std::move(role))},
                                          {"finish_reason", Value()},
                                          {"logprobs", Value()}});
    texts.push_back(answer({json::to_compact_json(choice)}, nullptr, true, i == 0));
  }
  return texts;
}

std::string Reply::chunk(const Delta& delta) const {
  return answer({plan_.chat ? chat_chunk(delta) : completion_choice(delta)}, nullptr, true, false);
}

std::string Reply::closing(const Totals& totals) const { return answer({}, &totals, true, false); }

std::string Reply::complete(const std::vector<Delta>& choices, const Totals& totals) const {
  std::vector<std::string> texts;
  for (const Delta& delta : choices) {
    texts.push_back(plan_.chat ? chat_choice(delta) : completion_choice(delta));
  }
  std::string prompt;
  if (plan_.chat && plan_.prompt_logprobs) prompt = prompt_logprobs(choices[0].prompt);
  return answer(texts, &totals, false, true, prompt);
}

}  // namespace wherry::app
