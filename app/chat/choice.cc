#include "app/chat/choice.h"

#include <algorithm>

#include "app/value/code_points.h"

namespace wherry::app {

namespace {

// The part of an event's error text that says that the request's own fields conflict
// (sampling/adjustment.cc).
constexpr char kNoTokenLeft[] = "leave no token possible";

std::string joined(const std::vector<Part>& parts, Part::Kind kind) {
  std::string result;
  for (const Part& part : parts) {
    if (part.kind == kind) result += part.text;
  }
  return result;
}

// Returns the rest of a text without an unfinished character at its end.
std::string without_damage(std::string rest) {
  const std::string damaged = unicode::kReplacement;
  while (rest.size() >= damaged.size() &&
         rest.compare(rest.size() - damaged.size(), damaged.size(), damaged) == 0) {
    rest.resize(rest.size() - damaged.size());
  }
  return rest;
}

}  // namespace

std::string Delta::text() const { return joined(parts, Part::Kind::kText); }
std::string Delta::reasoning() const { return joined(parts, Part::Kind::kReasoning); }

void Delta::add(Delta more) {
  for (Part& part : more.parts) append(parts, std::move(part));
  std::move(more.logprobs.begin(), more.logprobs.end(), std::back_inserter(logprobs));
  std::move(more.prompt.begin(), more.prompt.end(), std::back_inserter(prompt));
  if (!more.finish.empty()) finish = std::move(more.finish);
  if (more.stop) stop = std::move(more.stop);
}

Choice::Choice(size_t index, const Plan& plan, const Tokenizer& tokenizer,
               std::shared_ptr<StopAutomaton> stops)
    : index_(index),
      plan_(plan),
      tokenizer_(tokenizer),
      detokenizer_(tokenizer,
                   plan.continues && !plan.echo ? plan.jobs[index].prompt : std::vector<int32_t>(),
                   plan.visible),
      stops_(std::move(stops)),
      parser_(std::make_unique<OutputParser>(plan.reading)) {
  if (!plan.custom.empty()) custom_.emplace(plan.custom);
}

Delta Choice::push(const wherry_event& event, const std::string& error) {
  Delta delta;
  delta.index = index_;
  if (ended()) return delta;
  delta.parts = parsed(event, error);
  delta.prompt = std::exchange(prompt_, {});
  delta.finish = finish_;
  delta.stop = stops_.match();
  if (plan_.logprobs) delta.logprobs = released();
  return delta;
}

// Parses the text of one event; for the last event, also flushes the text that the parser held
// back.
std::vector<Part> Choice::parsed(const wherry_event& event, const std::string& error) {
  bool thinks = parser_->reasoning();
  const std::string text = accept(event, error);
  given_ += unicode::count_code_points(text);
  std::vector<Part> parts;
  if (!text.empty()) parts = parser_->push(text);
  thinks = thinks || parser_->reasoning();
  if (event.token >= 0 && event.prompt == 0 && plan_.writes) count(thinks, !parts.empty());
  if (!ended() && parser_->done()) {
    finish_ = "stop";
    must_abort_ = event.finish == WHERRY_RUNNING;
  }
  if (ended()) {
    for (Part& part : parser_->finish()) append(parts, std::move(part));
  }
  if (custom_) parts = custom_->translated(std::move(parts));
  end_with_calls(parts);
  if (!plan_.shows_reasoning) {
    const auto hidden = [](const Part& part) { return part.kind == Part::Kind::kReasoning; };
    parts.erase(std::remove_if(parts.begin(), parts.end(), hidden), parts.end());
  }
  return parts;
}

// Sets the finish reason "tool_calls" if the model ended by itself after a call, but not if a stop
// string cut a call off.
void Choice::end_with_calls(const std::vector<Part>& parts) {
  bool cut = false;
  for (const Part& part : parts) {
    called_ = called_ || part.kind == Part::Kind::kCallBegin;
    cut = cut || (part.kind == Part::Kind::kCallEnd && !part.complete);
  }
  const bool complete = finish_ == "stop" && called_ && !(cut && stops_.stopped());
  if (complete && !plan_.named) finish_ = "tool_calls";
}

// Counts one token. A mark may have several tokens: the last one decides whether they count as
// reasoning.
void Choice::count(bool thinks, bool anything) {
  ++undecided_;
  if (thinks) reasoning += undecided_;
  if (thinks || anything) undecided_ = 0;
}

std::string Choice::accept(const wherry_event& event, const std::string& error) {
  if (event.finish == WHERRY_ERROR) {
    const bool own = error.find(kNoTokenLeft) != error.npos;
    if (own) throw Failed{error, "no_token_possible", true};
    throw Failed{error.empty() ? "The model failed while it ran this request" : error,
                 "engine_error", false};
  }
  if (event.finish == WHERRY_ABORTED) throw Failed{"The request was aborted", "aborted", false};
  std::string text = echoed(event);
  if (event.prompt != 0) {
    if (!plan_.prompt_logprobs) return text;
    PromptToken token{event.token, event.logprob, {}};
    for (int32_t i = 0; i < event.n_top; ++i) {
      token.top.emplace_back(event.top_ids[i], event.top_logprobs[i]);
    }
    prompt_.push_back(std::move(token));
    return text;
  }
  if (!plan_.writes) {
    finish_ = "length";
    must_abort_ = event.finish == WHERRY_RUNNING;
    return text;
  }
  if (event.token >= 0) text += output_text(event);
  if (event.finish == WHERRY_STOP) finish_ = "stop";
  if (event.finish == WHERRY_LENGTH && !ended()) finish_ = "length";
  if (ended() && !stops_.stopped()) {
    text += stops_.push(without_damage(detokenizer_.flush()));
    text += stops_.flush();
    if (stops_.stopped()) finish_ = "stop";
  }
  return text;
}

// Returns the text of an output token as far as stop strings allow, and counts the token.
std::string Choice::output_text(const wherry_event& event) {
  ++sampled;
  cached = event.cached_tokens;
  drafted = event.drafted_tokens;
  accepted = event.accepted_tokens;
  queue = event.queue_seconds;
  prefill = event.prefill_seconds;
  decode = event.decode_seconds;
  const auto has = [&](const std::vector<int32_t>& ids) {
    return std::find(ids.begin(), ids.end(), event.token) != ids.end();
  };
  if (has(plan_.sampling.stop_ids) && !has(plan_.shown_ids)) return "";
  std::string text = piece(event.token, &event);
  // stop strings are not searched in the first min_tokens tokens
  if (sampled <= plan_.sampling.params.min_tokens) return text;
  text = stops_.push(text);
  if (stops_.stopped()) {
    finish_ = "stop";
    must_abort_ = event.finish == WHERRY_RUNNING;
  }
  return text;
}

// Returns the prompt's text up to this event's token; the first output token releases the rest. The
// core has events of prompt tokens only if their log probabilities were requested, and none for the
// first. Stop strings are not searched in the prompt.
std::string Choice::echoed(const wherry_event& event) {
  if (!plan_.echo) return "";
  const std::vector<int32_t>& prompt = plan_.jobs[index_].prompt;
  std::string text;
  while (echoed_ < prompt.size()) {
    const bool last = event.prompt != 0 && echoed_ > 0;
    text += piece(prompt[echoed_++], last ? &event : nullptr);
    if (last) break;
  }
  return text;
}

// Returns a token's text and records its log probability from the event.
std::string Choice::piece(int32_t token, const wherry_event* event) {
  std::string text = detokenizer_.push(token);
  const size_t end = decoded_ + unicode::count_code_points(text);
  if (plan_.logprobs) {
    LoggedToken logged{tokenizer_.piece(token), {}, {}, decoded_};
    if (event != nullptr) {
      logged.logprob = event->logprob;
      for (int32_t i = 0; i < event->n_top; ++i) {
        logged.top.emplace_back(tokenizer_.piece(event->top_ids[i]), event->top_logprobs[i]);
      }
    }
    logged_.emplace_back(end, std::move(logged));
  }
  decoded_ = end;
  return text;
}

// Returns the logged tokens whose text has been sent completely, or, at the end, in
// part.
std::vector<LoggedToken> Choice::released() {
  std::vector<LoggedToken> ready;
  const auto out = [&] {
    const auto& [end, token] = logged_.front();
    return ended() ? token.offset < given_ || !stops_.stopped() : end <= given_;
  };
  while (!logged_.empty() && out()) {
    ready.push_back(std::move(logged_.front().second));
    logged_.pop_front();
  }
  return ready;
}

}  // namespace wherry::app
