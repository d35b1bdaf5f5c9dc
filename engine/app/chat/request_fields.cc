// Which fields a request has, in the order in which Python's class has them.
#include <algorithm>

#include "app/chat/fields.h"
#include "app/chat/input_fields.h"
#include "app/chat/request_error.h"
#include "app/chat/tool_fields.h"
#include "app/chat/whole_characters.h"

namespace wherry::app {

namespace {

constexpr double kInt31 = 2147483648.0;  // 2^31
constexpr double kSeedLow = -9223372036854775808.0, kSeedHigh = 18446744073709551616.0;
constexpr size_t kLongText = 1024;
constexpr size_t kMostFields = 256;
constexpr double kTopLogprobs = 20;

struct NumberRow {
  const char* name;
  bool whole;
  Bounds bounds;
};

Bounds between(double low, double high) { return {low, {}, high, {}}; }
Bounds from_below(double low, double high) { return {low, {}, {}, high}; }
Bounds over(double low, double high) { return {{}, low, high, {}}; }

const std::vector<NumberRow>& sampling_rows() {
  static const std::vector<NumberRow> kRows = {
      {"temperature", false, between(0, 2)},
      {"dynatemp_range", false, between(0, 2)},
      {"dynatemp_exponent", false, over(0, 100)},
      {"top_p", false, over(0, 1)},
      {"top_k", true, from_below(-1, kInt31)},
      {"min_p", false, from_below(0, 1)},
      {"typical_p", false, over(0, 1)},
      {"top_n_sigma", false, between(-1, 1000)},
      {"xtc_probability", false, between(0, 1)},
      {"xtc_threshold", false, over(0, 1)},
      {"mirostat", true, {}},
      {"mirostat_tau", false, over(0, 100)},
      {"mirostat_eta", false, over(0, 1)},
      {"presence_penalty", false, between(-2, 2)},
      {"frequency_penalty", false, between(-2, 2)},
      {"repetition_penalty", false, over(0, 10)},
      {"dry_multiplier", false, between(0, 1000)},
      {"dry_base", false, between(1, 1000)},
      {"dry_allowed_length", true, from_below(1, kInt31)},
      {"dry_penalty_last_n", true, from_below(-1, kInt31)},
  };
  return kRows;
}

// A request on its way to Fields.
class Reader {
 public:
  explicit Reader(const Value& request) : given_(request) {}

  Fields done() {
    check_.raise();
    std::vector<std::pair<Value, Value>> items = given_.dict().items;
    for (auto& item : made_) items.push_back(std::move(item));  // in place of what was given
    return Fields(jinja::make_dict(std::move(items)));
  }

  void sampling() {
    for (const NumberRow& row : sampling_rows()) numeric(row);
    if (const Value* value = find("mirostat"); value && value->is_number()) {
      if (value->number() != 0 && value->number() != 2) {
        check_.add("mirostat", "Input should be 0 or 2");
      }
    }
    words("dry_sequence_breakers", 64, "texts");
    biases();
    words("bad_words", 1024, "words");
    allowed();
    numeric({"min_tokens", true, from_below(0, kInt31)});
    flag("ignore_eos");
    numeric({"priority", true, {{}, -kInt31, {}, kInt31}});
  }

  void common(double fewest_tokens) {
    line("model");
    numeric({"max_tokens", true, between(fewest_tokens, kInt31 - 1)});
    numeric({"n", true, between(1, 128)});
    numeric({"seed", true, from_below(kSeedLow, kSeedHigh)});
    stops();
    flag("stream");
    stream_options();
    for (const char* name : {"user", "safety_identifier", "cache_salt"}) line(name);
    numeric({"max_drafts", true, between(0, 64)});
    held_to();
  }

  void chat() {
    check_messages(check_, given_.dict().find("messages"));
    numeric({"max_completion_tokens", true, between(1, kInt31 - 1)});
    flag("logprobs");
    numeric({"top_logprobs", true, between(0, kTopLogprobs)});
    if (const Value* value = find("tools")) check_tools(check_, *value);
    if (const Value* value = find("tool_choice")) check_tool_choice(check_, *value);
    flag("parallel_tool_calls");
    choice("reasoning_effort", {"none", "minimal", "low", "medium", "high", "xhigh", "max"});
    flag("enable_thinking");
    choice("reasoning_format", {"auto", "deepseek", "none"});
    for (const char* name : {"separate_reasoning", "include_reasoning"}) flag(name);
    if (const Value* value = find("chat_template_kwargs")) {
      check_.object("chat_template_kwargs", *value);
    }
    flag("add_generation_prompt");
    flag("continue_final_message");
  }

  void completion() {
    check_prompt(check_, given_.dict().find("prompt"));
    numeric({"logprobs", true, between(0, kTopLogprobs)});
  }

 private:
  const Value* find(const char* name) const {
    const Value* found = given_.dict().find(std::string_view(name));
    return found == nullptr || found->is_none() ? nullptr : found;
  }
  void keep(const char* name, std::optional<Value> value) {
    if (value) made_.emplace_back(name, std::move(*value));
  }

  void numeric(const NumberRow& row) {
    const Value* value = find(row.name);
    if (value == nullptr) return;
    keep(row.name, row.whole ? check_.integer(row.name, *value, row.bounds)
                             : check_.number(row.name, *value, row.bounds));
  }

  void flag(const char* name) {
    if (const Value* value = find(name)) keep(name, check_.boolean(name, *value));
  }

  void line(const char* name, size_t longest = kLongText) {
    if (const Value* value = find(name)) check_.text(name, *value, longest);
  }

  void words(const char* name, size_t limit, const char* what) {
    const Value* value = find(name);
    if (value == nullptr || !check_.few(name, *value, limit, what) || !check_.list(name, *value)) {
      return;
    }
    for (size_t i = 0; i < value->items().size(); ++i) {
      check_.text(name + ("[" + std::to_string(i) + "]"), value->items()[i], kLongText, 1);
    }
  }

  void biases() {
    const Value* value = find("logit_bias");
    if (value == nullptr || !check_.few("logit_bias", *value, 4096, "tokens") ||
        !check_.object("logit_bias", *value)) {
      return;
    }
    std::vector<std::pair<Value, Value>> made;
    for (const auto& [key, bias] : value->dict().items) {
      const std::string where = "logit_bias." + jinja::to_string(key);
      const auto token = check_.integer("logit_bias", key, from_below(0, kInt31));
      const auto amount = check_.number("logit_bias", bias, between(-100, 100));
      if (token && amount) made.emplace_back(*token, *amount);
    }
    keep("logit_bias", jinja::make_dict(std::move(made)));
  }

  void allowed() {
    const Value* value = find("allowed_token_ids");
    if (value == nullptr || !check_.few("allowed_token_ids", *value, size_t{1} << 18, "tokens") ||
        !check_.list("allowed_token_ids", *value)) {
      return;
    }
    if (value->items().empty()) {
      check_.add("allowed_token_ids", "List should have at least 1 item after validation, not 0");
    }
    for (size_t i = 0; i < value->items().size(); ++i) {
      check_.integer("allowed_token_ids[" + std::to_string(i) + "]", value->items()[i],
                     from_below(0, kInt31));
    }
  }

  void stops() {
    const Value* value = find("stop");
    if (value == nullptr) return;
    Values made;
    if (value->is(jinja::Kind::kList)) {
      if (value->items().size() > kLongText) {
        check_.add("stop", "List should have at most 1024 items after validation, not " +
                               std::to_string(value->items().size()));
      }
      const bool texts = std::all_of(value->items().begin(), value->items().end(),
                                     [](const Value& stop) { return stop.is_string(); });
      if (!texts) check_.add("stop", "Input should be a valid string");  // it might be one text
      for (size_t i = 0; i < value->items().size(); ++i) {
        check_.text("stop[" + std::to_string(i) + "]", value->items()[i], kLongText);
        made.push_back(value->items()[i]);
      }
    } else if (check_.text("stop", *value, kLongText)) {
      made.push_back(*value);
    }
    keep("stop", jinja::make_list(std::move(made)));
  }

  void stream_options() {
    const Value* value = find("stream_options");
    if (value == nullptr || !check_.object("stream_options", *value, "StreamOptions")) return;
    const Value* usage = value->dict().find("include_usage");
    if (usage != nullptr) check_.boolean("stream_options.include_usage", *usage);
  }

  // One of some words.
  void choice(const char* name, const std::vector<std::string>& words) {
    const Value* value = find(name);
    if (value == nullptr) return;
    std::string named;
    for (size_t i = 0; i < words.size(); ++i) {
      if (value->is_string() && value->text() == words[i]) return;
      named += (i == 0 ? "" : i + 1 < words.size() ? ", " : " or ") + jinja::repr_text(words[i]);
    }
    check_.add(name, "Input should be " + named);
  }

  // What the output is held to; app/grammar/fields.cc reads more of it.
  void held_to() {
    for (const char* name : {"response_format", "structured_outputs"}) {
      if (const Value* value = find(name)) check_.object(name, *value);
    }
    schema("guided_json", true);
    line("guided_regex", 0);
    if (const Value* value = find("guided_choice"); value && check_.list("guided_choice", *value)) {
      for (size_t i = 0; i < value->items().size(); ++i) {
        check_.text("guided_choice[" + std::to_string(i) + "]", value->items()[i]);
      }
    }
    for (const char* name : {"guided_grammar", "grammar"}) line(name, 0);
    schema("json_schema", false);
  }

  // An object or a boolean, or a text where that may be.
  void schema(const char* name, bool text) {
    const Value* value = find(name);
    if (value == nullptr || value->is_dict() || (text && value->is_string())) return;
    Checker other;
    if (std::optional<Value> made = other.boolean(std::string(name) + ".bool", *value)) {
      return keep(name, std::move(made));
    }
    check_.object(name, *value);
    check_.add_all(other);
  }

  const Value& given_;
  Checker check_;
  std::vector<std::pair<Value, Value>> made_;
};

// Fields whose neglect would change the answer, each with the values that ask for nothing; then
// those that Python's engine has and this one does not.
void refuse_unknown(const Value& request) {
  struct Row {
    const char* name;
    const char* instead;
    std::vector<Value> harmless;
  };
  static const std::vector<Row> kRows = {
      {"functions", " (send 'tools')", {jinja::make_list({})}},
      {"function_call", " (send 'tool_choice')", {"none", "auto"}},
      {"modalities", "", {jinja::make_list({"text"})}},
      {"audio", "", {}},
      {"web_search_options", "", {}},
      {"best_of", "", {1}},
      {"prediction", "", {}},
      {"prompt_logprobs", "", {Value(false)}},
      {"suffix", "", {""}},
      {"echo", "", {Value(false)}},
  };
  std::string names, first;
  for (const Row& row : kRows) {
    const Value* value = request.dict().find(std::string_view(row.name));
    if (value == nullptr || value->is_none()) continue;
    const bool harmless = std::any_of(row.harmless.begin(), row.harmless.end(),
                                      [&](const Value& v) { return equal(v, *value); });
    if (harmless) continue;
    if (first.empty()) first = row.name;
    names += (names.empty() ? "" : ", ") + jinja::repr_text(row.name) + row.instead;
  }
  if (first.empty()) return;
  throw RequestError("Not supported, and leaving it out would change the answer: " + names, first,
                     "unsupported_parameter");
}

Fields checked(const Value& request, void (*read)(Reader&)) {
  if (!request.is_dict()) throw RequestError("The request is no JSON object");
  const size_t count = request.dict().items.size();
  if (count > kMostFields) {
    throw RequestError("The request has " + std::to_string(count) + " fields; at most " +
                       std::to_string(kMostFields) + " are read");
  }
  require_whole_characters(request);
  Reader reader(request);
  read(reader);
  Fields made = reader.done();
  refuse_unknown(request);
  return made;
}

}  // namespace

Fields checked_chat(const Value& request) {
  return checked(request, [](Reader& reader) {
    reader.sampling();
    reader.common(1);
    reader.chat();
  });
}

Fields checked_completion(const Value& request) {
  return checked(request, [](Reader& reader) {
    reader.sampling();
    reader.common(0);
    reader.completion();
  });
}

}  // namespace wherry::app
