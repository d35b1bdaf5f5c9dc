#include "app/chat/reply_text.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "app/value/code_points.h"
#include "app/value/json_text.h"

namespace wherry::app {

void ObjectText::raw(std::string_view name, std::string_view json) {
  text_ += text_.size() > 1 ? ",\"" : "\"";
  text_ += name;
  text_ += "\":";
  text_ += json;
}

void ObjectText::add(std::string_view name, const Value& value) {
  raw(name, json::to_compact_json(value));
}

std::string ObjectText::done() && {
  text_ += '}';
  return std::move(text_);
}

void ListText::raw(std::string_view json) {
  if (text_.size() > 1) text_ += ',';
  text_ += json;
}

std::string ListText::done() && {
  text_ += ']';
  return std::move(text_);
}

std::string json_number(float value) {
  return json::to_compact_json(Value(static_cast<double>(value)));
}

std::string shown(const std::string& piece) {
  if (unicode::well_formed(piece) == piece) return piece;
  std::string result = "bytes:";
  for (char byte : piece) {
    char text[8];
    std::snprintf(text, sizeof text, "\\x%02x", static_cast<unsigned char>(byte));
    result += text;
  }
  return result;
}

namespace {

std::string bytes_of(const std::string& piece) {
  ListText result;
  for (char byte : piece) result.raw(std::to_string(static_cast<unsigned char>(byte)));
  return std::move(result).done();
}

std::string logged(const std::string& piece, float logprob, const std::string* top) {
  ObjectText result;
  result.add("token", shown(piece));
  result.raw("logprob", json_number(logprob));
  result.raw("bytes", bytes_of(piece));
  if (top != nullptr) result.raw("top_logprobs", *top);
  return std::move(result).done();
}

}  // namespace

std::string token_logprobs(const std::vector<LoggedToken>& tokens) {
  ListText content;
  for (const LoggedToken& token : tokens) {
    ListText top;
    for (const auto& [piece, logprob] : token.top) top.raw(logged(piece, logprob, nullptr));
    const std::string others = std::move(top).done();
    // A chat echoes no prompt, so each token has a log probability.
    content.raw(logged(token.piece, token.logprob.value_or(0), &others));
  }
  return std::move(content).done();
}

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

}  // namespace wherry::app
