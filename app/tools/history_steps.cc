#include "app/tools/history_steps.h"

#include <algorithm>
#include <set>
#include <utility>

#include "app/value/code_points.h"
#include "app/value/json_text.h"

namespace wherry::app {

namespace {

using Items = std::vector<std::pair<Value, Value>>;

// The turns that with_alternate_turns adds.
constexpr const char *kGoOn = "Go on.", *kSeen = "OK.";

std::string text_at(const Value& message, const char* name) {
  const Value* match = message.dict().find(name);
  return match != nullptr && match->is_string() ? match->text() : "";
}

std::string role_of(const Value& message) { return text_at(message, "role"); }
std::string content_of(const Value& message) { return text_at(message, "content"); }
bool is_system(const Value& message) { return role_of(message) == "system"; }

const Values& calls_of(const Value& message) {
  static const Values kNone;
  const Value* calls = message.dict().find("tool_calls");
  return calls != nullptr && calls->is_sequence() ? calls->items() : kNone;
}

bool blank(const std::string& text) { return unicode::skip_left(text) == text.size(); }

std::string stripped(const std::string& text) {
  const size_t start = unicode::skip_left(text), end = unicode::skip_right(text);
  return start < end ? text.substr(start, end - start) : "";
}

std::string joined(const std::string& a, const std::string& b, const char* between = "\n\n") {
  return a.empty() || b.empty() ? a + b : a + between + b;
}

// Returns a message with other fields; an undefined value removes its field.
Value with(const Value& message, Items fields) {
  Items result;
  for (const auto& item : message.dict().items) {
    const bool gone = std::any_of(fields.begin(), fields.end(), [&](const auto& field) {
      return field.first.text() == item.first.text() && field.second.is(json::Kind::kUndefined);
    });
    if (!gone) result.push_back(item);
  }
  for (auto& field : fields) {
    if (!field.second.is(json::Kind::kUndefined)) result.push_back(std::move(field));
  }
  return json::make_dict(std::move(result));
}

Value nothing() { return json::undefined(""); }

Value turn(const char* role, std::string content) {
  return json::make_dict({{"role", role}, {"content", std::move(content)}});
}

// Returns arguments as an object; adds a text that cannot be one to `rest`.
Value object_of(const Value& arguments, std::string& rest) {
  if (arguments.is_dict()) return arguments;
  if (arguments.is_string()) {
    try {
      Value value = json::from_json(arguments.text());
      if (value.is_dict()) return value;
    } catch (const json::Failure&) {
      Value closed = closed_object(arguments.text());
      if (closed.is_dict()) return closed;
    }
  }
  rest = joined(rest, arguments.is_string() ? arguments.text() : json::to_json(arguments), "\n");
  return json::make_dict({});
}

// Takes the result of a call out of `results`: that of its id, or the first.
std::pair<bool, Value> result_of(const Value& call, std::vector<Value>& results, bool by_id) {
  const std::string id = text_at(call, "id");
  const auto match = std::find_if(results.begin(), results.end(), [&](const Value& result) {
    return !by_id || text_at(result, "tool_call_id") == id;
  });
  if (match == results.end()) return {false, Value()};
  Value value = *match;
  results.erase(match);
  return {true, std::move(value)};
}

// Whether each result names another of the calls, so that ids tell what belongs together.
bool named_by_ids(const Values& calls, const Values& results) {
  std::set<std::string> known, seen;
  for (const Value& call : calls) known.insert(text_at(call, "id"));
  return known.size() == calls.size() &&
         std::all_of(results.begin(), results.end(), [&](const Value& result) {
           const std::string id = text_at(result, "tool_call_id");
           return known.count(id) > 0 && seen.insert(id).second;
         });
}

}  // namespace

Values with_objects(const Values& messages, bool as_text) {
  Values values;
  for (const Value& message : messages) {
    Values calls;
    std::string rest;
    bool changed = false;
    for (const Value& call : calls_of(message)) {
      const Value* function = call.dict().find("function");
      const Value* given = function != nullptr ? function->dict().find("arguments") : nullptr;
      std::string more;
      const Value object = given != nullptr ? object_of(*given, more) : json::make_dict({});
      bool same = given != nullptr && given->is_dict() && !as_text;
      if (as_text && given != nullptr && given->is_string() && more.empty()) {
        try {
          same = json::from_json(given->text()).is_dict();
        } catch (const json::Failure&) {
        }
      }
      if (same || function == nullptr) {
        calls.push_back(call);
        continue;
      }
      changed = true;
      rest = joined(rest, more, "\n");
      const Value arguments = as_text ? Value(json::to_json(object)) : object;
      calls.push_back(with(call, {{"function", with(*function, {{"arguments", arguments}})}}));
    }
    values.push_back(changed ? with(message, {{"content", joined(content_of(message), rest, "\n")},
                                              {"tool_calls", json::make_list(std::move(calls))}})
                             : message);
  }
  return values;
}

Values with_written_calls(const Values& messages, const Family& family) {
  Values values;
  for (const Value& message : messages) {
    std::vector<std::pair<std::string, Value>> calls;
    std::string rest;
    for (const Value& call : calls_of(message)) {
      const Value* function = call.dict().find("function");
      const Value* given = function != nullptr ? function->dict().find("arguments") : nullptr;
      if (given == nullptr) continue;
      calls.emplace_back(text_at(*function, "name"), object_of(*given, rest));
    }
    if (calls.empty()) {
      values.push_back(message);
      continue;
    }
    const std::string text = joined(content_of(message), rest, "\n");
    values.push_back(with(message, {{"content", joined(text, family.format->history(calls), "\n")},
                                    {"tool_calls", nothing()}}));
  }
  return values;
}

Values with_one_call_a_turn(const Values& messages) {
  Values values;
  for (size_t i = 0; i < messages.size(); ++i) {
    const Values& calls = calls_of(messages[i]);
    if (calls.size() < 2) {
      values.push_back(messages[i]);
      continue;
    }
    Values results;
    for (; i + 1 < messages.size() && role_of(messages[i + 1]) == "tool"; ++i) {
      results.push_back(messages[i + 1]);
    }
    const bool by_id = named_by_ids(calls, results);
    const Value& message = messages[i - results.size()];
    for (size_t k = 0; k < calls.size(); ++k) {
      Items fields = {{"tool_calls", json::make_list({calls[k]})}};
      if (k > 0) {
        fields.emplace_back("content", "");
        for (const char* name : {"reasoning_content", "thinking"}) {
          fields.emplace_back(name, nothing());
        }
      }
      values.push_back(with(message, std::move(fields)));
      auto [exists, result] = result_of(calls[k], results, by_id);
      if (exists) values.push_back(std::move(result));
    }
    values.insert(values.end(), results.begin(), results.end());
  }
  return values;
}

Values with_text_apart(const Values& messages) {
  Values values;
  for (const Value& message : messages) {
    if (calls_of(message).empty() || blank(content_of(message))) {
      values.push_back(message);
      continue;
    }
    values.push_back(turn("assistant", content_of(message)));
    values.push_back(with(message, {{"content", ""}}));
  }
  return values;
}

Values with_one_system(const Values& messages) {
  const auto end = std::find_if_not(messages.begin(), messages.end(), is_system);
  if (end - messages.begin() < 2) return messages;
  std::string text;
  for (auto at = messages.begin(); at != end; ++at) text = joined(text, content_of(*at));
  Values values = {with(messages[0], {{"content", text}})};
  values.insert(values.end(), end, messages.end());
  return values;
}

Values with_reminders(const Values& messages) {
  Values values;
  bool spoken = false;
  for (const Value& message : messages) {
    const bool system = is_system(message);
    spoken = spoken || !system;
    if (!spoken || !system) {
      values.push_back(message);
    } else if (!blank(content_of(message))) {
      values.push_back(turn(
          "user", "<system-reminder>\n" + stripped(content_of(message)) + "\n</system-reminder>"));
    }
  }
  return values;
}

Values without_system(const Values& messages) {
  const auto end = std::find_if_not(messages.begin(), messages.end(), is_system);
  if (end == messages.begin()) return messages;
  std::string text;
  for (auto at = messages.begin(); at != end; ++at) text = joined(text, content_of(*at));
  Values values(end, messages.end());
  if (!values.empty() && role_of(values[0]) == "user") {
    values[0] = with(values[0], {{"content", joined(text, content_of(values[0]))}});
  } else if (!blank(text) || values.empty()) {
    values.insert(values.begin(), turn("user", text));
  }
  return values;
}

Values without_empty(const Values& messages) {
  Values values;
  for (const Value& message : messages) {
    const bool empty = role_of(message) == "assistant" && calls_of(message).empty() &&
                       blank(content_of(message)) && text_at(message, "reasoning_content").empty();
    if (!empty) values.push_back(message);
  }
  return values;
}

Values with_joined_turns(const Values& messages) {
  Values values;
  for (const Value& message : messages) {
    const std::string role = role_of(message);
    const bool joins = !values.empty() && role_of(values.back()) == role &&
                       (role == "user" || (role == "assistant" && calls_of(values.back()).empty()));
    if (!joins) {
      values.push_back(message);
      continue;
    }
    const Value last = values.back();
    Items fields = {{"content", joined(content_of(last), content_of(message))}};
    for (const char* name : {"reasoning_content", "thinking"}) {
      const std::string text = joined(text_at(last, name), text_at(message, name));
      if (!text.empty()) fields.emplace_back(name, text);
    }
    values.back() = with(message, std::move(fields));
  }
  return values;
}

Values with_alternate_turns(const Values& messages) {
  Values values;
  bool due = true;  // whether the next turn is the user's
  for (const Value& message : messages) {
    const std::string role = role_of(message);
    if (role == "user") {
      if (!due) values.push_back(turn("assistant", kSeen));
      due = false;
    } else if (role == "assistant" && calls_of(message).empty()) {
      if (due) values.push_back(turn("user", kGoOn));
      due = true;
    }
    values.push_back(message);
  }
  return values;
}

}  // namespace wherry::app
