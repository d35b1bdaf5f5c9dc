#include "app/grammar/embedded.h"

#include <set>

namespace wherry::app {

namespace {

bool of_name(char c, bool first) {
  return c == '_' || c == '-' || c == '.' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (!first && c >= '0' && c <= '9');
}

// Returns the position after a quoted text or a character class that begins at `at`.
size_t skip_to(std::string_view ebnf, size_t at, char end) {
  for (++at; at < ebnf.size() && ebnf[at] != end; ++at) {
    if (ebnf[at] == '\\') ++at;
  }
  return at < ebnf.size() ? at + 1 : ebnf.size();
}

// Calls `name(text, begins)` for each name and `other(text)` for the text between names; begins:
// whether the name is the first of its line, as in the definition of a rule.
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
      // Square brackets directly after the name of a rule that is being defined contain its
      // options, elsewhere they are a character class.
      const bool options = at > 0 && of_name(ebnf[at - 1], false);
      if (c == '[' && !options) end = skip_to(ebnf, at, ']');
      other(ebnf.substr(at, end - at));
    }
    begins = c == '\n';
    at = end;
  }
}

}  // namespace

std::string embedded(std::string_view ebnf, const std::string& name,
                     const std::vector<std::string>& others) {
  std::set<std::string, std::less<>> rules(others.begin(), others.end());
  each(
      ebnf,
      [&](std::string_view text, bool begins) {
        if (begins) rules.emplace(text);
      },
      [](std::string_view) {});
  std::string result;
  each(
      ebnf,
      [&](std::string_view text, bool) {
        if (rules.find(text) == rules.end()) {
          result += text;
        } else {
          result += text == "root" ? name : name + "." + std::string(text);
        }
      },
      [&](std::string_view text) { result += text; });
  return result.empty() || result.back() == '\n' ? result : result + '\n';
}

}  // namespace wherry::app
