// libwherry_readers: how outputs are read (app/tools), for tests in Python
// (tests/support/readers.py). Texts are UTF-8 with a length in bytes; an answer is valid until the
// next call with its reader.
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "app/testing/guarded.h"
#include "app/tools/custom_calls.h"
#include "app/tools/families.h"
#include "app/tools/json_value.h"
#include "app/tools/output_parser.h"
#include "app/value/json_text.h"

namespace {

using namespace wherry::app;

// Returns the value of a key. Throws std::out_of_range if there is none.
const Value& field(const Value& object, const char* name) {
  const Value* match = object.is_dict() ? object.dict().find(name) : nullptr;
  if (match == nullptr) throw std::out_of_range(std::string("the reader's JSON has no ") + name);
  return *match;
}

Reading reading_of(const Value& request) {
  Reading result;
  if (const Value& name = field(request, "family"); !name.is_none()) {
    result.family = &family_named(name.text());
  }
  for (const auto& [name, schema] : field(request, "tools").dict().items) {
    result.tools.add(name.text(), schema);
  }
  result.tools.constrained = wherry::json::truth(field(request, "held"));
  if (const Value& marks = field(request, "thoughts"); !marks.is_none()) {
    result.thoughts = Thoughts{marks.items().at(0).text(), marks.items().at(1).text()};
  }
  result.opened = wherry::json::truth(field(request, "opened"));
  if (const Value& most = field(request, "most"); !most.is_none()) {
    result.most = static_cast<size_t>(most.integer());
  }
  return result;
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
      json += "[\"begin\"," + index + "," + json_string(part.id) + "," + json_string(part.name) +
              (part.custom ? ",true" : ",false");
      break;
    case Part::Kind::kCallArguments:
      json += "[\"arguments\"," + index + "," + json_string(part.text);
      break;
    case Part::Kind::kCallEnd:
      json += "[\"end\"," + index + (part.complete ? ",true" : ",false");
  }
  json += ']';
}

}  // namespace

struct wherry_reader {
  wherry_reader(Reading request, Texts names) : reading(std::move(request)), parser(reading) {
    if (!names.empty()) custom.emplace(std::move(names));
  }

  // Returns the answer to the caller, see wherry_reader_push.
  const char* answered(std::vector<Part> parts) {
    if (custom) parts = custom->translated(std::move(parts));
    answer = parser.reasoning() ? "[true," : "[false,";
    answer += parser.done() ? "true" : "false";
    for (const Part& part : parts) write(answer += ',', part);
    answer += ']';
    return answer.c_str();
  }

  const Reading reading;
  OutputParser parser;
  std::optional<CustomCalls> custom;
  std::string answer;
};

#define WHERRY_READERS extern "C" __attribute__((visibility("default")))

WHERRY_READERS const char* wherry_reader_error(void) { return last_error.c_str(); }

// Returns what a family's format says of its calls, valid until the thread's next call.
WHERRY_READERS const char* wherry_reader_family(const char* name) {
  thread_local std::string answer;
  return guarded([&] {
    const Format& format = *family_named(name).format;
    const auto list = [](const Texts& texts) {
      return wherry::json::make_list(wherry::json::Values(texts.begin(), texts.end()));
    };
    answer =
        wherry::json::to_compact_json(wherry::json::make_dict({{"begins", list(format.begins())},
                                                               {"markers", list(format.markers())},
                                                               {"silent", list(format.silent())},
                                                               {"bare", format.bare()}}));
    return answer.c_str();
  });
}

WHERRY_READERS wherry_reader* wherry_reader_open(const char* json, size_t length) {
  return guarded([&] {
    const Value request =
        wherry::json::from_json(std::string_view(json, length), wherry::json::Halves::kKept);
    Texts custom;
    for (const Value& name : field(request, "custom").items()) custom.push_back(name.text());
    return new wherry_reader(reading_of(request), std::move(custom));
  });
}

WHERRY_READERS const char* wherry_reader_push(wherry_reader* reader, const char* text,
                                              size_t length) {
  return guarded(
      [&] { return reader->answered(reader->parser.push(std::string_view(text, length))); });
}

WHERRY_READERS const char* wherry_reader_finish(wherry_reader* reader) {
  return guarded([&] { return reader->answered(reader->parser.finish()); });
}

WHERRY_READERS void wherry_reader_close(wherry_reader* reader) { delete reader; }
