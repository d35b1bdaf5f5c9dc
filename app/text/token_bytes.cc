#include "app/text/token_bytes.h"

#include <vector>

#include "app/text/byte_level.h"
#include "app/text/json/json.h"
#include "app/text/steps/decoder.h"

namespace wherry::text {

std::string TokenBytes::of(std::string_view name) const {
  std::string bytes;
  if (byte_level) {  // an added token may contain characters outside of the byte-level alphabet
    return append_as_bytes(name, bytes) ? bytes : std::string(name);
  }
  if (int byte = byte_of(name); byte >= 0) return std::string(1, static_cast<char>(byte));
  return replaced(name, pattern, content);
}

std::optional<TokenBytes> token_bytes_of(const Json& decoder) {
  auto type = [](const Json& json) { return json.at("type").string(); };
  std::vector<Json> steps{decoder};
  if (type(decoder) == "Sequence") steps = decoder.at("decoders").elements();
  TokenBytes bytes;
  if (steps.size() == 1 && type(steps[0]) == "ByteLevel") {
    bytes.byte_level = true;
    return bytes;
  }
  if (!steps.empty() && type(steps.back()) == "Strip") {
    if (steps.back().at("content").string() != " " || steps.back().at("stop").integer() != 0) {
      return std::nullopt;
    }
    bytes.strip = steps.back().at("start").integer();
    steps.pop_back();
  }
  if (steps.size() != 3 || type(steps[0]) != "Replace" || type(steps[1]) != "ByteFallback" ||
      type(steps[2]) != "Fuse") {
    return std::nullopt;
  }
  auto pattern = steps[0].at("pattern").find("String");
  if (!pattern) return std::nullopt;
  bytes.pattern = pattern->string();
  bytes.content = steps[0].at("content").string();
  return bytes;
}

}  // namespace wherry::text
