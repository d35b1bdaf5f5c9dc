#include <iterator>

#include "app/tools/formats/formats.h"
#include "app/tools/json_value.h"
#include "app/value/code_points.h"

namespace wherry::app {

namespace {

constexpr const char *kStart = "<|start|>", *kChannel = "<|channel|>", *kMessage = "<|message|>";
constexpr const char* kEnds[] = {"<|end|>", "<|call|>", "<|return|>"};

// Returns the recipient after "to=" in a header, without "functions."; "" if there is none.
std::string called(const std::string& header) {
  for (size_t at = header.find("to="); at != header.npos; at = header.find("to=", at + 1)) {
    size_t start = at + 3;
    constexpr std::string_view kFunctions = "functions.";
    const auto name_at = [&](size_t from) {
      size_t end = from;
      for (size_t next = end; next < header.size(); end = next) {
        const char32_t code = unicode::next_code_point(header, next);
        if (code == '<' || unicode::is_space(code)) break;
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
  return name.compare(unicode::skip_left(name), 8, "analysis") == 0;
}

// Reads the arguments of a call up to the end of the message.
void called_body(Scanner& s, Output& out, const std::string& name) {
  static const Marks kMarks(Texts(std::begin(kEnds), std::end(kEnds)));
  out.begin(name);
  if (s.space() == '{') {
    out.end(json_value(s, out.to_arguments(), kEnds[1]));
    s.until(kMarks, [](std::string_view) {});
  } else {
    out.end(s.until(kMarks, out.to_arguments()).has_value());
  }
}

// Emits the text before the first of `marks`, and consumes that mark if its index is below `taken`.
void said(Scanner& s, Output& out, const Marks& marks, size_t taken) {
  const std::optional<size_t> match = s.until(marks, out.to_text());
  if (match && *match >= taken) s.at -= marks[*match].size();
}

// Reads a message; returns whether there was one. The beginning of the first header is in the
// prompt.
bool message(Scanner& s, Output& out) {
  static const Texts kBeginnings = {kStart, kChannel, "to="};
  static const Marks kAfterHeader({kMessage, kEnds[0], kEnds[1], kEnds[2]});
  static const Marks kAfterBody({kEnds[0], kEnds[1], kEnds[2], kStart});
  const std::optional<size_t> begun = s.accept_one(kBeginnings);
  if (!begun) return false;
  const auto rest = s.kept_text();
  if (s.until(kAfterHeader, s.to(rest)) != size_t{0}) return false;
  s.release();
  const std::string header = kBeginnings[*begun] + *rest;
  if (const std::string name = called(header); !name.empty()) {
    called_body(s, out, name);
    return true;
  }
  if (is_analysis(header)) out.think();
  said(s, out, kAfterBody, std::size(kEnds));
  if (out.thinks()) out.speak();
  return true;
}

}  // namespace

Texts Harmony::markers() const {
  Texts texts = {kStart, kChannel, "<|constrain|>", kMessage};
  texts.insert(texts.end(), std::begin(kEnds), std::end(kEnds));
  return texts;
}

void Harmony::read(Scanner& s, Output& out, const Tools&) const {
  static const Marks kBeginnings({kStart, kChannel});
  for (Rounds rounds(s); rounds.next() && s.space() != kNoChar;) {
    if (s.attempt([&] { return message(s, out); })) continue;
    out.text(s.take(1));
    said(s, out, kBeginnings, 0);
  }
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
  std::vector<std::string> texts;
  for (const CallRule& call : calls) {
    texts.push_back(
        rules.text("commentary to=functions." + call.name + " <|constrain|>json" + kMessage) + " " +
        call.arguments);
  }
  return rules.either(texts);
}

std::string Harmony::forced(Rules& rules, const CallRules& calls, bool) const {
  return before(rules, {"analysis"}) + " " + rules.text(kChannel) + " " +
         written(rules, calls, false);
}

std::string Harmony::free(Rules& rules, const CallRules& calls, bool) const {
  const std::string said = before(rules, {"analysis", "commentary"});
  const std::string call = said + " " + rules.text(kChannel) + " " + written(rules, calls, false);
  return rules.either({call, answer(rules, rules.any_text())});
}

std::string Harmony::answer(Rules& rules, const std::string& body) const {
  return before(rules, {"analysis", "commentary"}) + " " +
         rules.text(std::string(kChannel) + "final" + kMessage) + " " + body;
}

}  // namespace wherry::app
