#include "app/tools/history.h"

#include <algorithm>

#include "app/tools/history_steps.h"

namespace wherry::app {

namespace {

// The steps, in the order in which they follow each other; the order of the names below.
enum Step : size_t {
  kObjects,
  kWrittenCalls,
  kOneCall,
  kTextApart,
  kOneSystem,
  kReminders,
  kNoSystem,
  kNoEmpty,
  kJoined,
  kAlternate,
  kSteps
};
constexpr const char* kNames[kSteps] = {
    "call-arguments",   "calls-as-text",  "one-call-per-turn", "text-with-calls", "system-joined",
    "system-reminders", "system-in-user", "empty-turns",       "turns-joined",    "turns-added"};
// Told where the template prints either the text or the calls of a turn, and takes no turn of text
// before one of calls.
constexpr const char* kDropped = "text-with-calls-left-out";
// The order in which messages that are still refused are rewritten: the most likely reasons first,
// and each step before those that mend what it leaves behind.
constexpr Step kRetried[] = {kOneSystem, kReminders, kNoSystem, kNoEmpty,     kJoined,
                             kAlternate, kObjects,   kOneCall,  kWrittenCalls};

Value said(const char* role, const char* content) {
  return json::make_dict({{"role", role}, {"content", content}});
}
Value system(const char* content) { return said("system", content); }
Value user(const char* content) { return said("user", content); }
Value assistant(const char* content) { return said("assistant", content); }

struct ExampleCall {
  const char *id, *name;
  Value arguments;
};

Value arguments(const char* text, bool as_text) {
  if (as_text) return Value(std::string("{\"needlekey\": \"") + text + "\"}");
  return json::make_dict({{"needlekey", text}});
}

Value calling(const char* content, const std::vector<ExampleCall>& calls) {
  Values values;
  for (const ExampleCall& one : calls) {
    values.push_back(json::make_dict(
        {{"id", one.id},
         {"type", "function"},
         {"function", json::make_dict({{"name", one.name}, {"arguments", one.arguments}})}}));
  }
  return json::make_dict({{"role", "assistant"},
                          {"content", content},
                          {"tool_calls", json::make_list(std::move(values))}});
}

Value result(const char* id, const char* name, const char* content) {
  return json::make_dict(
      {{"role", "tool"}, {"content", content}, {"name", name}, {"tool_call_id", id}});
}

struct Example {
  Values messages;
  Texts texts;  // which the prompt has to contain
};

std::vector<Example> examples(size_t step, bool as_text) {
  const Value a = arguments("needlea", as_text), b = arguments("needleb", as_text);
  const char *f = "abcdefgh1", *g = "abcdefgh2";
  switch (step) {
    case kObjects:
      return {{{user("x"), calling("", {{f, "needlef", Value("{\"needlekey\": \"needlea")}}),
                result(f, "needlef", "needler")},
               {"needlef", "needlea", "needler"}}};
    case kWrittenCalls:
      return {{{user("x"), calling("", {{f, "needlef", a}}), result(f, "needlef", "needler")},
               {"needlef", "needlekey", "needlea", "needler"}}};
    case kOneCall:
      return {{{user("x"), calling("", {{f, "needlef", a}, {g, "needleg", b}}),
                result(f, "needlef", "needler"), result(g, "needleg", "needles")},
               {"needlef", "needlea", "needler", "needleg", "needleb", "needles"}}};
    case kTextApart:
      return {{{user("x"), calling("needlet", {{f, "needlef", a}}), result(f, "needlef", "needler"),
                assistant("needley"), user("needlez")},
               {"needlet", "needlef", "needlea", "needler", "needley", "needlez"}}};
    case kOneSystem:
      return {{{system("needles"), system("needlet"), user("needleu")},
               {"needles", "needlet", "needleu"}}};
    case kReminders:
      return {{{system("needles"), user("needleu"), assistant("needley"), system("needlet"),
                user("needlez")},
               {"needles", "needleu", "needley", "needlet", "needlez"}},
              {{system("needles"), user("needleu"), system("needlet")},
               {"needles", "needleu", "needlet"}}};
    case kNoSystem:
      return {{{system("needles"), user("needleu")}, {"needles", "needleu"}}};
    case kNoEmpty:
      return {{{user("needleu"), assistant(""), user("needlez")}, {"needleu", "needlez"}}};
    case kJoined:
      return {{{user("needleu"), user("needlez")}, {"needleu", "needlez"}},
              {{user("needleu"), assistant("needlex"), assistant("needley"), user("needlez")},
               {"needleu", "needlex", "needley", "needlez"}}};
    default:
      return {{{assistant("needley"), user("needlez")}, {"needley", "needlez"}},
              {{user("needleu"), calling("", {{f, "needlef", a}}), result(f, "needlef", "needler"),
                user("needlez")},
               {"needleu", "needler", "needlez"}}};
  }
}

Values example_tools() {
  Values values;
  for (const char* name : {"needlef", "needleg"}) {
    const Value properties =
        json::make_dict({{"k", json::make_dict({{"type", "string"}, {"description", "k"}})}});
    values.push_back(json::make_dict(
        {{"type", "function"},
         {"function",
          json::make_dict({{"name", name},
                           {"description", "d"},
                           {"parameters", json::make_dict({{"type", "object"},
                                                           {"properties", properties}})}})}}));
  }
  return values;
}

bool same(const Values& a, const Values& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), json::equal);
}

bool calls_in(const Values& messages) {
  return std::any_of(messages.begin(), messages.end(),
                     [](const Value& one) { return one.dict().find("tool_calls") != nullptr; });
}

}  // namespace

History::History(const jinja::ChatTemplate& chat_template, const Family& family,
                 const ToolVariables& tool_variables, bool takes_text)
    : template_(chat_template),
      family_(family),
      tool_variables_(tool_variables),
      takes_text_(takes_text),
      needed_(kSteps) {
  needs_tools_ = !shows({user("needleu")}, {"needleu"});
  for (size_t step = 0; step < kSteps; ++step) needed_[step] = lacks(step);
  const Example text = examples(kTextApart, takes_text)[0];
  drops_text_ = !shows(adapted(text.messages).messages, text.texts);
}

bool History::needed() const {
  return drops_text_ || std::find(needed_.begin(), needed_.end(), true) != needed_.end();
}

Values History::stepped(size_t step, const Values& messages) const {
  switch (step) {
    case kObjects:
      return with_objects(messages, takes_text_);
    case kWrittenCalls:
      return with_written_calls(messages, family_);
    case kOneCall:
      return with_one_call_a_turn(messages);
    case kTextApart:
      return with_text_apart(messages);
    case kOneSystem:
      return with_one_system(messages);
    case kReminders:
      return with_reminders(messages);
    case kNoSystem:
      return without_system(messages);
    case kNoEmpty:
      return without_empty(messages);
    case kJoined:
      return with_joined_turns(messages);
    default:
      return with_alternate_turns(messages);
  }
}

// Whether the prompt of these messages contains each of the texts. The names and descriptions of
// tools are part of the prompt, too, so names are looked for in what the calls add to it.
bool History::shows(const Values& messages, const Texts& texts) const {
  const auto rendered = [&](const Values& some) {
    const bool with_tools = needs_tools_ || calls_in(messages);
    auto variables = tool_variables_.of(with_tools ? example_tools() : Values());
    return template_.render(json::make_list(some), true, json::make_dict(std::move(variables)));
  };
  try {
    std::string text = rendered(messages);
    if (calls_in(messages)) {
      const std::string before = rendered({messages[0]});
      const auto [rest, _] = std::mismatch(text.begin(), text.end(), before.begin(), before.end());
      text.erase(text.begin(), rest);
    }
    return std::all_of(texts.begin(), texts.end(),
                       [&](const std::string& one) { return text.find(one) != text.npos; });
  } catch (const jinja::Refused&) {
    return false;
  }
}

// Whether the template refuses an example of the step, or leaves a part of it out, and takes it
// after the step, or after the step and those that follow it.
bool History::lacks(size_t step) const {
  for (const Example& example : examples(step, takes_text_)) {
    Values messages = example.messages;
    for (size_t i = 0; i < step; ++i) {
      if (needed_[i]) messages = stepped(i, messages);
    }
    if (shows(messages, example.texts)) continue;
    messages = stepped(step, messages);
    if (shows(messages, example.texts)) return true;
    for (size_t i = kOneSystem; i < kSteps; ++i) {
      if (i > step) messages = stepped(i, messages);
    }
    if (shows(messages, example.texts)) return true;
  }
  return false;
}

Adapted History::adapted(Values messages) const {
  Adapted result{std::move(messages), {}};
  for (size_t step = 0; step < kSteps; ++step) {
    if (!needed_[step]) continue;
    Values next = stepped(step, result.messages);
    if (same(next, result.messages)) continue;
    result.messages = std::move(next);
    result.changes.emplace_back(kNames[step]);
  }
  const bool dropped =
      std::any_of(result.messages.begin(), result.messages.end(), [](const Value& one) {
        const Value* content = one.dict().find("content");
        return calls_in({one}) && content != nullptr && json::truth(*content);
      });
  if (drops_text_ && dropped) result.changes.emplace_back(kDropped);
  return result;
}

Adapted History::retried(Adapted refused, bool add_generation_prompt, const Value& variables,
                         const std::function<bool()>& gone) const {
  for (const Step step : kRetried) {
    Values next = stepped(step, refused.messages);
    if (next.empty() || same(next, refused.messages)) continue;
    refused.messages = std::move(next);
    const auto& known = refused.changes;
    if (std::find(known.begin(), known.end(), kNames[step]) == known.end()) {
      refused.changes.emplace_back(kNames[step]);
    }
    try {
      template_.render(json::make_list(refused.messages), add_generation_prompt, variables, gone);
      return refused;
    } catch (const jinja::Refused&) {
    }
  }
  return {};
}

}  // namespace wherry::app
