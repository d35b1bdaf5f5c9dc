#include "app/chat/choice.h"

#include <algorithm>

#include "app/template/code_points.h"

namespace wherry::app {

namespace {

// Of an event's error: the request contradicts itself (sampling/adjustment.cc).
constexpr char kNoTokenLeft[] = "leave no token possible";

std::string joined(const std::vector<Part>& parts, bool reasoning) {
  std::string made;
  for (const Part& part : parts) {
    if (part.reasoning == reasoning) made += part.text;
  }
  return made;
}

}  // namespace

std::string Delta::text() const { return joined(parts, false); }
std::string Delta::reasoning() const { return joined(parts, true); }

void Delta::add(Delta more) {
  std::move(more.parts.begin(), more.parts.end(), std::back_inserter(parts));
  std::move(more.logprobs.begin(), more.logprobs.end(), std::back_inserter(logprobs));
  if (!more.finish.empty()) finish = std::move(more.finish);
}

Choice::Choice(size_t index, const Plan& plan, const Tokenizer& tokenizer,
               std::shared_ptr<StopAutomaton> stops)
    : index_(index),
      plan_(plan),
      tokenizer_(tokenizer),
      detokenizer_(tokenizer, plan.continues ? plan.jobs[index].prompt : std::vector<int32_t>(),
                   plan.visible),
      stops_(std::move(stops)),
      reader_(plan.thoughts, plan.opened) {}

Delta Choice::push(const wherry_event& event, const std::string& error) {
  Delta delta;
  delta.index = index_;
  if (ended()) return delta;
  bool thinks = reader_.reasoning();
  const std::string text = accept(event, error);
  given_ += jinja::count_code_points(text);
  if (!text.empty()) delta.parts = reader_.push(text);
  thinks = thinks || reader_.reasoning();
  if (event.token >= 0) count(thinks, !delta.parts.empty());
  if (ended()) {
    for (Part& part : reader_.finish()) delta.parts.push_back(std::move(part));
  }
  if (!plan_.shows_reasoning) {
    delta.parts.erase(std::remove_if(delta.parts.begin(), delta.parts.end(),
                                     [](const Part& part) { return part.reasoning; }),
                      delta.parts.end());
  }
  delta.finish = finish_;
  if (plan_.logprobs) delta.logprobs = released();
  return delta;
}

// One token more. A mark may have several: whose they are, the last one tells.
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
  std::string text;
  if (event.token >= 0) {
    ++sampled;
    cached = event.cached_tokens;
    drafted = event.drafted_tokens;
    accepted = event.accepted_tokens;
    queue = event.queue_seconds;
    prefill = event.prefill_seconds;
    decode = event.decode_seconds;
    const std::vector<int32_t>& ends = plan_.sampling.stop_ids;
    if (std::find(ends.begin(), ends.end(), event.token) == ends.end()) {
      text = stops_.push(piece(event));
      if (stops_.stopped()) {
        finish_ = "stop";
        must_abort_ = event.finish == WHERRY_RUNNING;
      }
    }
  }
  if (event.finish == WHERRY_STOP) finish_ = "stop";
  if (event.finish == WHERRY_LENGTH && !ended()) finish_ = "length";
  if (ended() && !stops_.stopped()) {
    text += stops_.push(detokenizer_.flush());
    text += stops_.flush();
    if (stops_.stopped()) finish_ = "stop";
  }
  return text;
}

// A token's text; logged, with what the event says of it.
std::string Choice::piece(const wherry_event& event) {
  std::string text = detokenizer_.push(event.token);
  const size_t end = decoded_ + jinja::count_code_points(text);
  if (plan_.logprobs) {
    LoggedToken logged{tokenizer_.piece(event.token), event.logprob, {}, decoded_};
    for (int32_t i = 0; i < event.n_top; ++i) {
      logged.top.emplace_back(tokenizer_.piece(event.top_ids[i]), event.top_logprobs[i]);
    }
    logged_.emplace_back(end, std::move(logged));
  }
  decoded_ = end;
  return text;
}

// Tokens whose text is out: all of it, or, at the end, its beginning.
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
