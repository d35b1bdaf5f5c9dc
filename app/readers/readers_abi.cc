// Implements readers_abi.h over app/tools.
#include "app/readers/readers_abi.h"

#include <exception>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "app/grammar/endless.h"
#include "app/grammar/schema/repair.h"
#include "app/tools/dialect.h"
#include "app/tools/json_value.h"
#include "app/tools/output_parser.h"
#include "app/value/json_text.h"

namespace {

using namespace wherry::app;

thread_local std::string last_error, last_answer;

// Returns the value of a key. Throws std::out_of_range if there is none.
const Value& field(const Value& object, const char* name) {
  const Value* found = object.is_dict() ? object.dict().find(name) : nullptr;
  if (found == nullptr) throw std::out_of_range(std::string("the reader's JSON has no ") + name);
  return *found;
}

Reading reading_of(const Value& asked) {
  Reading made;
  if (const Value& row = field(asked, "family"); !row.is_none()) {
    made.family = &family_at(static_cast<size_t>(row.integer()));
  }
  for (const auto& [name, schema] : field(asked, "tools").dict().items) {
    made.tools.add(name.text(), schema);
  }
  made.tools.held = wherry::json::truth(field(asked, "held"));
  if (const Value& marks = field(asked, "thoughts"); !marks.is_none()) {
    made.thoughts = Thoughts{marks.items().at(0).text(), marks.items().at(1).text()};
  }
  made.opened = wherry::json::truth(field(asked, "opened"));
  if (const Value& most = field(asked, "most"); !most.is_none()) {
    made.most = static_cast<size_t>(most.integer());
  }
  return made;
}

void write(std::string& json, const Part& part) {
  const std::string index = std::to_string(part.index);
  switch (part.kind) {
    case Part::Kind::kText:
      json += "[\"text\"," + json_string(part.text);
      break;
    case Part::Kind::kReasoning:
      json += "[\"reasoning\"," + json_string(part.text);
      break;
    case Part::Kind::kCallBegin:
      json += "[\"begin\"," + index + "," + json_string(part.id) + "," + json_string(part.name);
      break;
    case Part::Kind::kCallArguments:
      json += "[\"arguments\"," + index + "," + json_string(part.text);
      break;
    case Part::Kind::kCallEnd:
      json += "[\"end\"," + index + (part.whole ? ",true" : ",false");
  }
  json += ']';
}

// Runs the body of an API call, which returns a pointer; null if it throws.
template <typename Work>
auto guarded(Work work) noexcept -> decltype(work()) {
  try {
    return work();
  } catch (const std::exception& error) {
    last_error = error.what();
    return nullptr;
  }
}

}  // namespace

struct wherry_reader {
  explicit wherry_reader(Reading asked) : reading(std::move(asked)), parser(reading) {}

  // Returns the answer to the caller, see wherry_reader_push.
  const char* told(const std::vector<Part>& parts) {
    answer = parser.reasoning() ? "[true," : "[false,";
    answer += parser.done() ? "true" : "false";
    for (const Part& part : parts) write(answer += ',', part);
    answer += ']';
    return answer.c_str();
  }

  const Reading reading;
  OutputParser parser;
  std::string answer;
};

int wherry_readers_abi_version(void) { return WHERRY_READERS_ABI_VERSION; }

const char* wherry_reader_error(void) { return last_error.c_str(); }

wherry_reader* wherry_reader_open(const char* json, size_t length) {
  return guarded([&] {
    const Value asked =
        wherry::json::from_json(std::string_view(json, length), wherry::json::Halves::kKept);
    return new wherry_reader(reading_of(asked));
  });
}

const char* wherry_reader_push(wherry_reader* reader, const char* text, size_t length) {
  return guarded([&] { return reader->told(reader->parser.push(std::string_view(text, length))); });
}

const char* wherry_reader_finish(wherry_reader* reader) {
  return guarded([&] { return reader->told(reader->parser.finish()); });
}

void wherry_reader_close(wherry_reader* reader) { delete reader; }

struct wherry_history {
  explicit wherry_history(const Value& given)
      : dialect(std::make_unique<wherry::jinja::InterpretedTemplate>(
                    field(given, "source").text(), field(given, "special_tokens")),
                field(given, "tool_format").text(), [](const std::string&) { return false; }) {}

  Adapted adapted(const Value& given) const {
    Adapted made{field(given, "messages").items(), {}};
    const History& history = *dialect.history();
    if (!wherry::json::truth(field(given, "refused"))) return history.adapted(made.messages);
    for (const Value& name : field(given, "changes").items()) made.changes.push_back(name.text());
    const Value& variables = field(given, "variables");
    const bool opens = wherry::json::truth(field(variables, "add_generation_prompt"));
    return history.retried(std::move(made), opens, variables);
  }

  const Dialect dialect;
};

wherry_history* wherry_history_open(const char* json, size_t length) {
  return guarded(
      [&] { return new wherry_history(wherry::json::from_json(std::string_view(json, length))); });
}

const char* wherry_history_adapt(wherry_history* history, const char* json, size_t length) {
  return guarded([&] {
    const Value given = wherry::json::from_json(std::string_view(json, length));
    Adapted adapted = history->adapted(given);
    last_answer = "null";
    if (!adapted.changes.empty()) {
      Values changes(adapted.changes.begin(), adapted.changes.end());
      last_answer = wherry::json::to_compact_json(wherry::json::make_dict(
          {{"messages", wherry::json::make_list(std::move(adapted.messages))},
           {"changes", wherry::json::make_list(std::move(changes))}}));
    }
    return last_answer.c_str();
  });
}

void wherry_history_close(wherry_history* history) { delete history; }

const char* wherry_schema_repair(const char* json, size_t length) {
  return guarded([&] {
    Repaired made = repaired(wherry::json::from_json(std::string_view(json, length)));
    Values problems(made.problems.begin(), made.problems.end());
    last_answer = wherry::json::to_compact_json(
        wherry::json::make_dict({{"schema", std::move(made.schema)},
                                 {"problems", wherry::json::make_list(std::move(problems))}}));
    return last_answer.c_str();
  });
}

const char* wherry_grammar_endless(const char* text, size_t length) {
  return guarded([&] {
    last_answer = endless_rule(std::string_view(text, length));
    return last_answer.c_str();
  });
}
