#include "app/template/code_points.h"
#include "app/tools/formats/formats.h"
#include "app/tools/json_value.h"

namespace wherry::app {

namespace {

constexpr const char *kStart = "<|start|>", *kChannel = "<|channel|>", *kMessage = "<|message|>";
const Texts& ends() {
  static const Texts kEnds = {"<|end|>", "<|call|>", "<|return|>"};
  return kEnds;
}

// Where the next text is: before a message's header, in its body, or outside of any message.
enum State { kBetween, kBody, kOther };

// Returns the recipient after "to=" in a header, without "functions."; "" if there is none.
std::string called(const std::string& header) {
  for (size_t at = header.find("to="); at != header.npos; at = header.find("to=", at + 1)) {
    size_t start = at + 3;
    constexpr std::string_view kFunctions = "functions.";
    const auto name_at = [&](size_t from) {
      size_t end = from;
      for (size_t next = end; next < header.size(); end = next) {
        const char32_t code = jinja::next_code_point(header, next);
        if (code == '<' || jinja::is_space(code)) break;
      }
      return header.substr(from, end - from);
    };
    std::string name = name_at(start);
    if (name.compare(0, kFunctions.size(), kFunctions) == 0 && name.size() > kFunctions.size()) {
      name.erase(0, kFunctions.size());
    }
    if (!name.empty()) return name;
  }
  return "";
}

bool is_analysis(const std::string& header) {
  const size_t at = header.find(kChannel);
  if (at == header.npos) return false;
  const std::string name = header.substr(at + std::string_view(kChannel).size());
  return name.compare(jinja::skip_left(name), 8, "analysis") == 0;
}

// Reads the arguments of a call up to the end of the message.
void called_body(Scanner& s, Output& out, const std::string& name) {
  out.begin(name);
  if (s.space() == '{') {
    out.end(json_value(s, out.to_arguments(), ends()[1]));
    s.until(ends(), [](std::string_view) {});
  } else {
    out.end(s.until(ends(), out.to_arguments()).has_value());
  }
}

// Reads a message's header and, if it is a call, the arguments; returns whether there was a header.
// The beginning of the first header is in the prompt.
bool message(Scanner& s, Output& out, int& state) {
  const Texts beginnings = {kStart, kChannel, "to="};
  const std::optional<size_t> begun = s.accept_one(beginnings);
  if (!begun) return false;
  std::string header = beginnings[*begun];
  Texts marks = ends();
  marks.insert(marks.begin(), kMessage);
  const auto found = s.until(marks, [&](std::string_view text) { header += text; });
  if (found != size_t{0}) return false;
  if (const std::string name = called(header); !name.empty()) {
    called_body(s, out, name);
  } else {
    if (is_analysis(header)) out.think();
    state = kBody;
  }
  return true;
}

// Emits the text before the first of `marks`, and consumes that mark if its index is below `kept`.
void said(Scanner& s, Output& out, const Texts& marks, size_t kept) {
  s.resumable = true;
  const std::optional<size_t> found = s.until(marks, out.to_text());
  s.resumable = false;
  if (found && *found >= kept) s.at -= marks[*found].size();
}

}  // namespace

Texts Harmony::markers() const {
  Texts made = {kStart, kChannel, "<|constrain|>", kMessage};
  made.insert(made.end(), ends().begin(), ends().end());
  return made;
}

bool Harmony::read(Scanner& s, Output& out, const Tools&, int& state) const {
  if (state == kBody) {
    Texts marks = ends();
    marks.emplace_back(kStart);
    said(s, out, marks, ends().size());
    if (out.thinks()) out.speak();
    state = kBetween;
    return true;
  }
  if (state == kOther) {
    said(s, out, {kStart, kChannel}, 0);
    state = kBetween;
    return true;
  }
  if (s.space() == kNoChar) return false;
  if (!s.attempt([&] { return message(s, out, state); })) {
    out.text(s.take(1));
    state = kOther;
  }
  return true;
}

// Returns the grammar of any number of messages in `channels` before the last message.
static std::string before(Rules& rules, const std::vector<std::string>& channels) {
  std::string names;
  for (const std::string& name : channels) {
    names += (names.empty() ? "" : " | ") + rules.text(name);
  }
  return "(" + rules.text(kChannel) + " (" + names + ") " + rules.text(kMessage) + " " +
         rules.up_to(std::string("<|end|>") + kStart + "assistant") + ")*";
}

// A call ends the response, so the grammar allows only one.
std::string Harmony::written(Rules& rules, const CallRules& calls, bool) const {
  std::vector<std::string> made;
  for (const CallRule& call : calls) {
    made.push_back(
        rules.text("commentary to=functions." + call.name + " <|constrain|>json" + kMessage) + " " +
        call.arguments);
  }
  return rules.either(made);
}

std::string Harmony::forced(Rules& rules, const CallRules& calls, bool) const {
  return before(rules, {"analysis"}) + " " + rules.text(kChannel) + " " +
         written(rules, calls, false);
}

std::string Harmony::free(Rules& rules, const CallRules& calls, bool) const {
  const std::string said = before(rules, {"analysis", "commentary"});
  const std::string call = said + " " + rules.text(kChannel) + " " + written(rules, calls, false);
  return rules.either({call, answer(rules, rules.rule(kAnyText))});
}

std::string Harmony::answer(Rules& rules, const std::string& body) const {
  return before(rules, {"analysis", "commentary"}) + " " +
         rules.text(std::string(kChannel) + "final" + kMessage) + " " + body;
}

}  // namespace wherry::app
