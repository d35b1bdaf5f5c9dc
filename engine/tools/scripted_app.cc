// Chats whose model says what it is told to: a JSON object a line in, one a line out. For tests.
//
//   {"read": {"family": name, "tools": {name: schema}, "marks": a template's text, "opened": bool,
//             "most": count or null}, "pieces": [text, ...]}
//   -> {"parts": a list for each piece, and one for the end; "done": whether after each}
//   {"family": a template's text} -> {"family": name, "example": text}
//   {"number": word} -> {"number": text or null}
//   {"tokenizer": tokenizer.json, "template": text, "special": {...}, "eos": [id], "request":
//   {...},
//    "output": [id, ...], "tool_format": name or ""}
//   -> {"prompt": [id, ...], "answer": [JSON, ...]}; the output ends with the first eos id
//   What is refused comes as {"error": {...}}.
#include <algorithm>
#include <iostream>
#include <string>

#include "app/chat/generation.h"
#include "app/chat/request_error.h"
#include "app/template/json_text.h"
#include "app/tools/output_parser.h"
#include "app/tools/python_value.h"
#include "support/error.h"

namespace wherry::app {
namespace {

using Items = std::vector<std::pair<Value, Value>>;

constexpr int64_t kContext = 4096, kVocab = 1024;

Value value_of(const Part& part) {
  static const char* const kNames[] = {"text", "reasoning", "begin", "arguments", "end"};
  Items made = {{"kind", kNames[static_cast<size_t>(part.kind)]}};
  const bool begins = part.kind == Part::Kind::kCallBegin, ends = part.kind == Part::Kind::kCallEnd;
  if (part.kind != Part::Kind::kText && part.kind != Part::Kind::kReasoning) {
    made.emplace_back("index", Value::size(part.index));
  }
  if (begins) made.insert(made.end(), {{"name", part.name}, {"id", part.id}});
  if (ends) made.emplace_back("whole", part.whole);
  if (!begins && !ends) made.emplace_back("text", part.text);
  return jinja::make_dict(std::move(made));
}

Value values_of(const std::vector<Part>& parts) {
  Values made;
  for (const Part& part : parts) made.push_back(value_of(part));
  return jinja::make_list(std::move(made));
}

Value read(const Fields& asked, const Value& pieces) {
  Reading reading;
  reading.family = &family_named(asked.text("family"));
  for (const auto& [name, schema] : asked.find("tools")->dict().items) {
    reading.tools.add(name.text(), schema);
  }
  reading.thoughts = thoughts_of(asked.text("marks"));
  reading.opened = asked.truth("opened");
  if (const auto most = asked.integer("most")) reading.most = static_cast<size_t>(*most);
  OutputParser parser(reading);
  Values parts, done;
  for (const Value& piece : pieces.items()) {
    parts.push_back(values_of(parser.push(piece.text())));
    done.emplace_back(parser.done());
  }
  parts.push_back(values_of(parser.finish()));
  return jinja::make_dict(
      {{"parts", jinja::make_list(std::move(parts))}, {"done", jinja::make_list(std::move(done))}});
}

std::vector<int32_t> ids_of(const Value& list) {
  std::vector<int32_t> made;
  for (const Value& id : list.items()) made.push_back(static_cast<int32_t>(id.integer()));
  return made;
}

// All choices, a token each in turn, as the core would give them.
Values said(Plan plan, const Tokenizer& tokenizer, const std::vector<int32_t>& output,
            int32_t eos) {
  Values made;
  Generation generation(std::move(plan), tokenizer,
                        [&](const std::string& json, bool) { made.emplace_back(json); });
  const std::vector<int32_t> ends = generation.plan().sampling.stop_ids;
  generation.open();
  for (size_t n = 0; !generation.done(); ++n) {
    for (size_t i = 0; i < generation.plan().jobs.size(); ++i) {
      wherry_event event{};
      event.token = n < output.size() ? output[n] : eos;
      event.logprob = -0.5;
      const auto sampled = static_cast<int32_t>(n + 1);
      if (sampled == generation.plan().jobs[i].max_tokens) event.finish = WHERRY_LENGTH;
      if (std::find(ends.begin(), ends.end(), event.token) != ends.end()) {
        event.finish = WHERRY_STOP;
      }
      generation.push(i, event, "");
    }
    generation.flush();
  }
  return made;
}

Value answer(const Fields& asked) {
  const std::unique_ptr<const Tokenizer> tokenizer = Tokenizer::read(asked.text("tokenizer"));
  const Value* special = asked.find("special");
  const Dialect dialect(jinja::ChatTemplate(asked.text("template"), special ? *special : Value()),
                        asked.text("tool_format"), [&](const std::string& name) {
                          return tokenizer->id_of(name).has_value();
                        });
  const std::vector<int32_t> eos = ids_of(*asked.find("eos"));
  const Model model = {
      "small", {tokenizer.get(), eos, jinja::make_dict({}), kVocab, kContext}, &dialect};
  Plan plan = plan_of(*asked.find("request"), model, nullptr);
  Values prompt;
  for (const int32_t id : plan.jobs[0].prompt) prompt.emplace_back(static_cast<int64_t>(id));
  Values chunks = said(std::move(plan), *tokenizer, ids_of(*asked.find("output")), eos[0]);
  return jinja::make_dict({{"prompt", jinja::make_list(std::move(prompt))},
                           {"answer", jinja::make_list(std::move(chunks))}});
}

std::string line_of(const Fields& asked) {
  try {
    if (const Value* what = asked.find("read")) {
      return jinja::to_compact_json(read(Fields(*what), *asked.find("pieces")));
    }
    if (asked.has("family")) {
      const Family& family = family_of(asked.text("family"));
      return jinja::to_compact_json(
          jinja::make_dict({{"family", family.name}, {"example", family.format->example()}}));
    }
    if (asked.has("number")) {
      const auto number = python_number(asked.text("number"));
      return jinja::to_compact_json(
          jinja::make_dict({{"number", number ? Value(*number) : Value()}}));
    }
    return jinja::to_compact_json(answer(asked));
  } catch (const RequestError& error) {
    return error_json(error);
  } catch (const Error& error) {
    return error_json(error.what(), "error", "", "");
  }
}

}  // namespace
}  // namespace wherry::app

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << wherry::app::line_of(wherry::app::Fields(wherry::jinja::from_json(line))) << "\n"
              << std::flush;
  }
}
