// Renders chat templates without a model: reads one JSON object per line and writes one per line.
// For tests.
//
// {"source": ..., "special": {...}, "messages": [...], "variables": {...}, "open": true}
// -> {"text": ...}, {"refused": ...} or {"invalid": ...}; with "names": {"variables": [...]}
#include <iostream>
#include <string>

#include "app/template/chat_template.h"
#include "app/value/json_text.h"

namespace {

using wherry::jinja::InterpretedTemplate;
using wherry::json::Value;

Value field(const Value& request, const char* name, Value otherwise) {
  const Value* match = request.dict().find(std::string_view(name));
  return match != nullptr ? *match : otherwise;
}

std::pair<const char*, Value> answer(const Value& request) {
  try {
    const InterpretedTemplate interpreted(field(request, "source", Value("")).text(),
                                          field(request, "special", Value()));
    if (truth(field(request, "names", Value(false)))) {
      wherry::json::Values names;
      for (const std::string& name : interpreted.variables()) names.emplace_back(name);
      return {"variables", make_list(std::move(names))};
    }
    const Value text(interpreted.render(field(request, "messages", Value()),
                                        truth(field(request, "open", Value(true))),
                                        field(request, "variables", Value())));
    return {"text", text};
  } catch (const wherry::jinja::Refused& error) {
    return {"refused", Value(error.what())};
  } catch (const wherry::jinja::Invalid& error) {
    return {"invalid", Value(error.what())};
  }
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    const auto [name, value] = answer(wherry::json::from_json(line));
    std::cout << wherry::json::to_compact_json(wherry::json::make_dict({{name, value}})) << "\n"
              << std::flush;
  }
}
