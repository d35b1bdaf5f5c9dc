#include "app/tools/formats/formats.h"
#include "app/value/code_points.h"
#include "app/value/json_text.h"

namespace wherry::app {

namespace {

// Whether a character may be skipped after a call: models sometimes write surplus brackets.
bool left_over(char32_t code) { return code == '}' || code == ']' || unicode::is_space(code); }

}  // namespace

Texts Tagged::markers() const {
  Texts texts = begin;
  texts.push_back(end);
  texts.insert(texts.end(), left_out.begin(), left_out.end());
  return not_empty(texts);
}

std::string Tagged::example() const {
  std::string call = head + "NAME" + middle + "{ARGUMENTS}}";
  if (listed) call = "[" + call + "]";
  return begin[0] + space + call + space + end;
}

std::string Tagged::history(const std::vector<std::pair<std::string, Value>>& calls) const {
  std::string result;
  for (const auto& [name, arguments] : calls) {
    const std::string call = head + name + middle + json::to_json(arguments) + "}";
    if (listed) {
      result += (result.empty() ? "[" : ", ") + call;
    } else {
      result += (result.empty() ? "" : "\n") + begin[0] + space + call + space + end;
    }
  }
  return listed ? begin[0] + space + result + "]" + space + end : result;
}

bool Tagged::calls(Scanner& s, Output& out, const Tools&, const std::string&) const {
  if (!form.list(s, out, nullptr, end)) return false;
  s.match(left_over);
  if (!end.empty()) s.accept(end);
  return true;
}

std::string Bare::example() const {
  return fences.empty() ? "{\"name\": \"NAME\", \"parameters\": {ARGUMENTS}}" : "";
}

bool Bare::calls(Scanner& s, Output& out, const Tools& tools, const std::string& mark) const {
  const Tools* known = mark.empty() ? &tools : nullptr;
  const CallObject form;
  s.space();
  std::string fence;
  for (size_t i = 0; mark.empty() && i < fences.size() && fence.empty(); ++i) {
    if (!s.accept(fences[i].first)) continue;
    fence = fences[i].second;
    s.space();
  }
  const auto begun = [](char32_t code) { return code == '{' || code == '['; };
  if (!begun(s.next()) || !form.list(s, out, known)) return false;
  for (Rounds rounds(s); rounds.next() && out.takes_more();) {
    // Llama models separate calls by semicolons.
    const char32_t code = s.space();
    if (code == ';' || code == ',') ++s.at;
    if (!begun(s.space()) || !s.attempt([&] { return form.list(s, out, known); })) break;
  }
  if (!fence.empty()) {
    s.space();
    s.accept(fence);
  }
  return true;
}

}  // namespace wherry::app
