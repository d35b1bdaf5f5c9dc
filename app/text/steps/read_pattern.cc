#include "app/text/steps/read_pattern.h"

#include "support/error.h"

namespace wherry::text {

Pattern read_pattern(const Json& component) {
  Json json = component.at("pattern");
  if (auto text = json.find("String")) return Pattern::literal(text->string());
  auto source = json.find("Regex");
  if (!source) json.fail("it must have \"String\" or \"Regex\"");
  try {
    return Pattern::regex(source->string());
  } catch (const Error& error) {
    source->fail(error.what());
  }
}

}  // namespace wherry::text
