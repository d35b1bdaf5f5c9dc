#include "app/chat/conversation.h"

#include <algorithm>
#include <map>

#include "app/request/request_error.h"
#include "app/tools/custom_calls.h"
#include "app/value/code_points.h"
#include "app/value/json_text.h"

namespace wherry::app {

namespace {

using Items = std::vector<std::pair<Value, Value>>;
using Names = std::map<std::string, std::string>;  // maps call ids to tool names

std::string text_of(const Fields& message, size_t index, ImageParts& images) {
  const Value* content = message.find("content");
  if (content == nullptr || content->is_none()) return "";
  if (content->is_string()) return content->text();
  std::string result;
  for (size_t i = 0; i < content->items().size(); ++i) {
    const Fields part(content->items()[i]);
    const std::string type = part.text("type");
    const bool text = type == "text" || type == "input_text" || type == "output_text";
    result += text && part.has("text")
                  ? part.text("text")
                  : images.placed(part, message.text("role"),
                                  item(item("messages", index) + ".content", i));
  }
  return result;
}

// Returns a call; a custom tool's as the call of the function that the model sees.
Value called_function(const Value& call) {
  const Fields fields(call);
  if (fields.text("type") != "custom") return call;
  const Fields custom(*fields.find("custom"));
  const std::string arguments =
      json::to_json(json::make_dict({{kInputArgument, custom.text("input")}}));
  Items result = call.dict().items;
  result.emplace_back("function",
                      json::make_dict({{"name", custom.text("name")}, {"arguments", arguments}}));
  return json::make_dict(std::move(result));
}

// Returns the calls of a message, also one in `function_call`, OpenAI's older field.
Values calls_of(const Fields& message) {
  const Value* calls = message.find("tool_calls");
  if (calls != nullptr && !calls->items().empty()) {
    Values values;
    for (const Value& call : calls->items()) values.push_back(called_function(call));
    return values;
  }
  const Value* older = message.find("function_call");
  if (older == nullptr) return {};
  const Value* arguments = older->is_dict() ? older->dict().find("arguments") : nullptr;
  const bool written = arguments == nullptr || arguments->is_string() || arguments->is_dict();
  if (!older->is_dict() || Fields(*older).text("name").empty() || !written) {
    throw RequestError("function_call in a message takes a name and arguments", "messages");
  }
  return {json::make_dict({{"type", "function"}, {"function", *older}})};
}

Names names_of_calls(const Value& messages) {
  Names names;
  for (const Value& message : messages.items()) {
    for (const Value& call : calls_of(Fields(message))) {
      const Fields fields(call);
      if (fields.has("id"))
        names[fields.text("id")] = Fields(*fields.find("function")).text("name");
    }
  }
  return names;
}

// Returns a call's arguments in the form that the template expects. Text that is not a JSON object
// stays as it is, because the model should see what it wrote.
Value arguments_of(const Fields& function, const ChatFormat& chat_format) {
  const Value* given = function.find("arguments");
  const Value arguments = given != nullptr && json::truth(*given) ? *given : Value("{}");
  if (chat_format.takes_text()) {
    return arguments.is_string() ? arguments : Value(json::to_json(arguments));
  }
  if (!arguments.is_string()) return arguments;
  try {
    Value object = json::from_json(arguments.text());
    return object.is_dict() ? object : arguments;
  } catch (const json::Failure&) {
    return arguments;
  }
}

Value call_of(const Value& call, const ChatFormat& chat_format) {
  const Fields fields(call), function(*fields.find("function"));
  Items items;
  if (fields.has("id")) items.emplace_back("id", chat_format.family().known_id(fields.text("id")));
  items.emplace_back("type", "function");
  items.emplace_back("function",
                     json::make_dict({{"name", function.text("name")},
                                      {"arguments", arguments_of(function, chat_format)}}));
  return json::make_dict(std::move(items));
}

// Returns the fields of a message unchanged, known fields first.
Items given_fields(const Fields& fields) {
  Items result;
  static const char* const kKnown[] = {"role", "content", "name", "tool_call_id",
                                       "reasoning_content"};
  for (const char* name : kKnown) {
    if (const Value* value = fields.find(name)) result.emplace_back(name, *value);
  }
  for (const auto& [name, value] : fields.object().dict().items) {
    const std::string& text = name.text();
    const bool known =
        std::any_of(std::begin(kKnown), std::end(kKnown), [&](const char* k) { return text == k; });
    const bool rewritten =
        text == "tool_calls" || text == "function_call" || text == "reasoning" || text == "prefix";
    if (!known && !rewritten && !value.is_none()) {
      result.emplace_back(name, value);
    }
  }
  return result;
}

Value plain(const Value& message, size_t index, const Names& names, const ChatFormat& chat_format,
            ImageParts& images) {
  const Fields fields(message);
  Items items = given_fields(fields);
  const std::string content = text_of(fields, index, images);
  items.emplace_back("content", content);
  const std::string role = fields.text("role"), id = fields.text("tool_call_id");
  if (role == "developer") items.emplace_back("role", "system");
  if (role == "tool" || role == "function") {
    items.emplace_back("role", "tool");
    const auto called = names.find(id);
    if (!fields.has("name")) {
      items.emplace_back("name", called != names.end() ? called->second : "unknown");
    }
  }
  if (fields.has("tool_call_id"))
    items.emplace_back("tool_call_id", chat_format.family().known_id(id));
  Values calls;
  for (const Value& call : calls_of(fields)) calls.push_back(call_of(call, chat_format));
  const bool calling = !calls.empty();
  if (calling) items.emplace_back("tool_calls", json::make_list(std::move(calls)));
  std::string thoughts = fields.text("reasoning_content");
  if (thoughts.empty()) thoughts = fields.text("reasoning");
  if (!thoughts.empty()) {
    items.emplace_back("reasoning_content", thoughts);
    const bool spoken = !content.empty() && calling;
    if (chat_format.family().thinking_field && !spoken) items.emplace_back("thinking", thoughts);
  }
  return json::make_dict(std::move(items));
}

std::string stripped(const std::string& text) {
  const size_t start = unicode::skip_left(text), end = unicode::skip_right(text);
  return start < end ? text.substr(start, end - start) : "";
}

// Returns a copy of a message with other content, without null fields.
Value with_content(const Value& message, const std::string& content, bool calls = true) {
  Items fields;
  for (const auto& [name, value] : message.dict().items) {
    if (calls || name.text() != "tool_calls") fields.emplace_back(name, value);
  }
  fields.emplace_back("content", content);
  return json::make_dict(std::move(fields));
}

std::string content_of(const Value& message) { return Fields(message).text("content"); }

// Replaces calls and results by plain text; consecutive results become one user message.
Values without_calls(const Values& messages) {
  Values values;
  bool results = false;  // whether the last message holds tool results
  for (const Value& message : messages) {
    const Fields fields(message);
    if (fields.text("role") == "tool") {
      std::string text = "Result of " + fields.text("name") + ":\n" + content_of(message);
      if (results) {
        text = content_of(values.back()) + "\n\n" + text;
        values.pop_back();
      }
      values.push_back(json::make_dict({{"role", "user"}, {"content", text}}));
      results = true;
      continue;
    }
    results = false;
    Values functions;
    for (const Value& call : calls_of(fields)) functions.push_back(*call.dict().find("function"));
    if (functions.empty()) {
      values.push_back(message);
      continue;
    }
    const std::string written = json::to_json(json::make_list(std::move(functions)));
    values.push_back(with_content(message, stripped(content_of(message) + "\n" + written), false));
  }
  return values;
}

std::string preamble(const Values& tools, const std::string& example) {
  std::string lines;
  for (const Value& tool : tools) {
    lines += (lines.empty() ? "" : "\n") + json::to_json(*tool.dict().find("function"));
  }
  const std::string how =
      example.empty()
          ? "To call a function, answer with nothing but a JSON object of its name and its "
            "arguments: {\"name\": \"NAME\", \"arguments\": {...}}. To call several, answer with a "
            "list of such objects."
          : "To call a function, write this, with what is meant in place of the words in capitals, "
            "and nothing after it:\n" +
                example + "\n";
  return "You can call functions. Each line here describes one, as JSON:\n" + lines + "\n\n" + how +
         " You get the results in the next message. Where no function helps, answer in words.";
}

Values with_preamble(Values messages, const Values& tools, const ChatFormat& chat_format) {
  const std::string text = preamble(tools, chat_format.family().format->example());
  const std::string first = content_of(messages[0]);
  if (!chat_format.takes_system()) {
    messages[0] = with_content(messages[0], text + "\n\n" + first);
  } else if (Fields(messages[0]).text("role") == "system") {
    messages[0] = with_content(messages[0], stripped(first + "\n\n" + text));
  } else {
    messages.insert(messages.begin(), json::make_dict({{"role", "system"}, {"content", text}}));
  }
  return messages;
}

}  // namespace

Values conversation(const Value& messages, const Values& tools, const ChatFormat& chat_format,
                    ImageParts& images) {
  const Names names = names_of_calls(messages);
  Values values;
  for (const Value& message : messages.items()) {
    values.push_back(plain(message, values.size(), names, chat_format, images));
  }
  if (!chat_format.takes_calls()) values = without_calls(values);
  return chat_format.native() || tools.empty()
             ? values
             : with_preamble(std::move(values), tools, chat_format);
}

}  // namespace wherry::app
