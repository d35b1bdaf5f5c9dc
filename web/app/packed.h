// Serialization of texts that one WebAssembly module passes to another: each text follows its
// length in bytes, a little-endian uint32.
#ifndef WHERRY_WEB_APP_PACKED_H_
#define WHERRY_WEB_APP_PACKED_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "app/grammar/constraint.h"

namespace wherry::app {

inline void pack(std::string& to, std::string_view text) {
  const auto length = static_cast<uint32_t>(text.size());
  to.append(reinterpret_cast<const char*>(&length), sizeof length);
  to += text;
}

inline std::vector<std::string> unpacked(std::string_view from) {
  std::vector<std::string> texts;
  while (from.size() >= sizeof(uint32_t)) {
    uint32_t length = 0;
    std::memcpy(&length, from.data(), sizeof length);
    texts.emplace_back(from.substr(sizeof length, length));
    from.remove_prefix(sizeof length + length);
  }
  return texts;
}

// Returns the grammar of a constraint and, for each of its parts, rule, kind and text.
inline std::string packed(const Constraint& constraint) {
  std::string bytes;
  pack(bytes, constraint.ebnf);
  for (const GrammarPart& part : constraint.parts) {
    pack(bytes, part.rule);
    pack(bytes, std::string(1, static_cast<char>('0' + static_cast<int>(part.kind))));
    pack(bytes, part.text);
  }
  return bytes;
}

inline Constraint unpacked_constraint(std::string_view from) {
  const std::vector<std::string> texts = unpacked(from);
  Constraint constraint{texts.at(0), {}, ""};
  for (size_t i = 1; i + 2 < texts.size(); i += 3) {
    const auto kind = static_cast<GrammarPart::Kind>(texts[i + 1].at(0) - '0');
    constraint.parts.push_back({texts[i], kind, texts[i + 2]});
  }
  return constraint;
}

}  // namespace wherry::app

#endif  // WHERRY_WEB_APP_PACKED_H_
