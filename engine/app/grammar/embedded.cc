#include "app/grammar/embedded.h"

#include <set>

namespace wherry::app {

namespace {

bool of_name(char c, bool first) {
  return c == '_' || c == '-' || c == '.' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (!first && c >= '0' && c <= '9');
}

// Behind a text in quotes or a character class, which begins at `at`.
size_t skip_to(std::string_view ebnf, size_t at, char end) {
  for (++at; at < ebnf.size() && ebnf[at] != end; ++at) {
    if (ebnf[at] == '\\') ++at;
  }
  return at < ebnf.size() ? at + 1 : ebnf.size();
}

// Calls `name(text, begins)` for each name and `other(text)` for what is between them; begins:
// whether it is the first of its line, as names of rules are where they are defined.
template <typename Name, typename Other>
void each(std::string_view ebnf, Name name, Other other) {
  bool begins = true;
  for (size_t at = 0; at < ebnf.size();) {
    size_t end = at + 1;
    const char c = ebnf[at];
    if (of_name(c, true)) {
      while (end < ebnf.size() && of_name(ebnf[end], false)) ++end;
      name(ebnf.substr(at, end - at), begins);
    } else {
      if (c == '"') end = skip_to(ebnf, at, '"');
      // Behind a rule's own name its options stand in brackets, elsewhere a class of characters.
      const bool options = at > 0 && of_name(ebnf[at - 1], false);
      if (c == '[' && !options) end = skip_to(ebnf, at, ']');
      other(ebnf.substr(at, end - at));
    }
    begins = c == '\n';
    at = end;
  }
}

// Rules for names of additional properties have this in their own names in xgrammar.
constexpr std::string_view kAddedName = "_addl_key";
constexpr std::string_view kEscape = R"( | ("\\" basic_escape basic_string_sub))";

}  // namespace

std::string without_escaped_names(std::string ebnf) {
  for (size_t at = ebnf.find(kEscape); at != ebnf.npos; at = ebnf.find(kEscape, at)) {
    const size_t line = ebnf.rfind('\n', at) + 1;  // 0 where it is the first
    const std::string_view rule = std::string_view(ebnf).substr(line, ebnf.find(' ', line) - line);
    if (rule.find(kAddedName) != rule.npos) {
      ebnf.erase(at, kEscape.size());
    } else {
      at += kEscape.size();
    }
  }
  return ebnf;
}

std::string embedded(std::string_view ebnf, const std::string& name,
                     const std::vector<std::string>& others) {
  std::set<std::string, std::less<>> rules(others.begin(), others.end());
  each(
      ebnf,
      [&](std::string_view text, bool begins) {
        if (begins) rules.emplace(text);
      },
      [](std::string_view) {});
  std::string made;
  each(
      ebnf,
      [&](std::string_view text, bool) {
        if (rules.find(text) == rules.end()) {
          made += text;
        } else {
          made += text == "root" ? name : name + "." + std::string(text);
        }
      },
      [&](std::string_view text) { made += text; });
  return made.empty() || made.back() == '\n' ? made : made + '\n';
}

}  // namespace wherry::app
