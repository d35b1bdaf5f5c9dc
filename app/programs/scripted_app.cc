// Runs chats with a scripted model: one JSON object per line in, one per line out. For tests.
//
//   {"family": a template's text} -> {"family": name, "example": text}
//   {"number": word} -> {"number": text or null}
//   {"tokenizer": tokenizer.json, "template": text, "special": {...}, "eos": [id], "request":
//   {...},
//    "output": [id, ...], "tool_format": name or ""}
//   -> {"prompt": [id, ...], "answer": [JSON, ...]}; the output ends with the first eos id. With
// "seed": number instead of "output", the model draws random tokens that its mask allows. With
// "texts": [text, ...] instead, the result is {"taken": [text, ...]}, the texts that the constraint
// accepts. Errors have the form {"error": {...}}.
#include <algorithm>
#include <functional>
#include <iostream>
#include <random>
#include <string>

#include "app/chat/generation.h"
#include "app/grammar/grammars.h"
#include "app/request/request_error.h"
#include "app/text/json_tokenizer.h"
#include "app/tools/families.h"
#include "app/tools/python_value.h"
#include "app/value/json_text.h"
#include "support/error.h"

namespace wherry::app {
namespace {

constexpr int64_t kContext = 4096, kVocab = 1024;

std::vector<int32_t> ids_of(const Value& list) {
  std::vector<int32_t> result;
  for (const Value& id : list.items()) result.push_back(static_cast<int32_t>(id.integer()));
  return result;
}

// Callback that returns the n-th token of choice i, and whether it has to be the last.
using Next = std::function<int32_t(size_t i, size_t n, bool* last)>;

// Generates one token per choice in turn, as the core would, and returns the response's JSON
// objects.
Values said(Plan plan, const Tokenizer& tokenizer, const Next& next) {
  Values values;
  Generation generation(std::move(plan), tokenizer,
                        [&](const std::string& json, bool) { values.emplace_back(json); });
  const std::vector<int32_t> ends = generation.plan().sampling.stop_ids;
  generation.open();
  for (size_t n = 0; !generation.done(); ++n) {
    for (size_t i = 0; i < generation.plan().jobs.size(); ++i) {
      if (generation.ended(i)) continue;
      bool last = false;
      wherry_event event{};
      event.token = next(i, n, &last);
      event.logprob = -0.5;
      const auto sampled = static_cast<int32_t>(n + 1);
      if (sampled == generation.plan().jobs[i].max_tokens) event.finish = WHERRY_LENGTH;
      if (last || std::find(ends.begin(), ends.end(), event.token) != ends.end()) {
        event.finish = WHERRY_STOP;
      }
      generation.push(i, event, "");
    }
    generation.flush();
  }
  return values;
}

// Draws a random token that the mask allows; prefers tokens that end something, so that outputs
// end.
class Obedient {
 public:
  Obedient(const Plan& plan, const Tokenizer& tokenizer, int64_t vocab_size, uint64_t seed)
      : tokenizer_(tokenizer), bits_(static_cast<size_t>(vocab_size + 31) / 32), random_(seed) {
    for (size_t i = 0; i < plan.jobs.size(); ++i) {
      masks_.push_back(plan.grammar->mask(plan.sampling.stop_ids));
    }
  }
  ~Obedient() {
    for (wherry_mask& mask : masks_) mask.release(mask.context);
  }
  Obedient(const Obedient&) = delete;
  Obedient& operator=(const Obedient&) = delete;

  int32_t next(size_t i, bool* last) {
    wherry_mask& mask = masks_[i];
    int all = 0, complete = 0;
    check(mask, mask.fill(mask.context, bits_.data(), bits_.size(), &all));
    std::vector<int32_t> allowed, closing;
    for (size_t id = 0; id < bits_.size() * 32; ++id) {
      if ((bits_[id / 32] >> id % 32 & 1) == 0) continue;
      allowed.push_back(static_cast<int32_t>(id));
      const std::string piece = tokenizer_.piece(allowed.back());
      if (piece.find_first_of("\"}]>)") != piece.npos) closing.push_back(allowed.back());
    }
    const bool closes = !closing.empty() && random_() % 4 == 0;
    const std::vector<int32_t>& drawn = closes ? closing : allowed;
    const int32_t token = drawn[random_() % drawn.size()];
    forced(mask, allowed);
    check(mask, mask.accept(mask.context, token, &complete));
    *last = complete != 0;
    return token;
  }

 private:
  static void check(wherry_mask& mask, int status) {
    if (status != 0) throw Error(WHERRY_INTERNAL, mask.error(mask.context));
  }

  // Checks that a forced token is the only allowed one, and that querying it changes no state.
  static void forced(wherry_mask& mask, const std::vector<int32_t>& allowed) {
    int32_t tokens[4];
    size_t n = 0;
    check(mask, mask.forced(mask.context, tokens, 4, &n));
    if (n > 0 && (allowed.size() != 1 || allowed[0] != tokens[0])) {
      throw Error(WHERRY_INTERNAL, "a token is forced beside which there are others");
    }
  }

  const Tokenizer& tokenizer_;
  std::vector<uint32_t> bits_;
  std::vector<wherry_mask> masks_;
  std::mt19937_64 random_;
};

// Whether the constraint of a request accepts this text.
bool takes(const Plan& plan, const Tokenizer& tokenizer, int64_t vocab_size,
           const std::string& text) {
  wherry_mask mask = plan.grammar->mask(plan.sampling.stop_ids);
  const std::unique_ptr<wherry_mask, void (*)(wherry_mask*)> released(
      &mask, [](wherry_mask* one) { one->release(one->context); });
  std::vector<uint32_t> bits(static_cast<size_t>(vocab_size + 31) / 32);
  const auto allowed = [&](int32_t id) {
    int all = 0;
    if (mask.fill(mask.context, bits.data(), bits.size(), &all) != 0) {
      throw Error(WHERRY_INTERNAL, mask.error(mask.context));
    }
    return (bits[static_cast<size_t>(id) / 32] >> id % 32 & 1) != 0;
  };
  int complete = 0;
  for (const int32_t id : tokenizer.encode(text, false)) {
    if (complete != 0 || !allowed(id)) return false;
    if (mask.accept(mask.context, id, &complete) != 0) return false;
  }
  const std::vector<int32_t>& ends = plan.sampling.stop_ids;
  return complete != 0 || std::any_of(ends.begin(), ends.end(), allowed);
}

Value answer(const Fields& job) {
  const std::unique_ptr<const Tokenizer> tokenizer = JsonTokenizer::read(job.text("tokenizer"));
  const Value* special = job.find("special");
  const ChatFormat chat_format(std::make_unique<jinja::InterpretedTemplate>(
                                   job.text("template"), special ? *special : Value()),
                               job.text("tool_format"), [&](const std::string& name) {
                                 return tokenizer->id_of(name).has_value();
                               });
  const std::vector<int32_t> eos = ids_of(*job.find("eos"));
  const auto given = job.integer("vocab_size");
  const int64_t vocab_size = given.value_or(kVocab);
  Grammars grammars(*tokenizer, vocab_size);
  const Model model = {
      "small", {tokenizer.get(), eos, json::make_dict({}), vocab_size, kContext}, &chat_format, {}};
  Plan plan = plan_of(*job.find("request"), model, nullptr);
  if (plan.constraint) plan.grammar = grammars.compiled(*plan.constraint);
  if (const Value* texts = job.find("texts")) {
    Values taken;
    for (const Value& text : texts->items()) {
      if (takes(plan, *tokenizer, vocab_size, text.text())) taken.push_back(text);
    }
    return json::make_dict({{"taken", json::make_list(std::move(taken))}});
  }
  Values prompt;
  for (const int32_t id : plan.jobs[0].prompt) prompt.emplace_back(static_cast<int64_t>(id));
  Values chunks;
  if (const auto seed = job.integer("seed")) {
    if (!plan.grammar) throw Error(WHERRY_INVALID_ARGUMENT, "the request is held to nothing");
    Obedient obedient(plan, *tokenizer, vocab_size, static_cast<uint64_t>(*seed));
    chunks = said(std::move(plan), *tokenizer,
                  [&](size_t i, size_t, bool* last) { return obedient.next(i, last); });
  } else {
    const std::vector<int32_t> output = ids_of(*job.find("output"));
    chunks = said(std::move(plan), *tokenizer,
                  [&](size_t, size_t n, bool*) { return n < output.size() ? output[n] : eos[0]; });
  }
  return json::make_dict({{"prompt", json::make_list(std::move(prompt))},
                          {"answer", json::make_list(std::move(chunks))}});
}

std::string line_of(const std::string& line) {
  try {
    const Fields job(json::from_json(line));
    if (job.has("family")) {
      const Family& family = family_of(job.text("family"));
      return json::to_compact_json(
          json::make_dict({{"family", family.name}, {"example", family.format->example()}}));
    }
    if (job.has("number")) {
      const auto number = python_number(job.text("number"));
      return json::to_compact_json(
          json::make_dict({{"number", number ? Value(*number) : Value()}}));
    }
    return json::to_compact_json(answer(job));
  } catch (const RequestError& error) {
    return error_json(error);
  } catch (const Error& error) {
    return error_json(error.what(), "error", "", "");
  } catch (const json::Failure& error) {  // the line is nested too deeply
    return error_json(error.what(), "error", "", "");
  }
}

}  // namespace
}  // namespace wherry::app

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << wherry::app::line_of(line) << "\n" << std::flush;
  }
}
