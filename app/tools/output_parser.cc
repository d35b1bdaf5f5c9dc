#include "app/tools/output_parser.h"

#include <utility>

namespace wherry::app {

OutputParser::OutputParser(const Reading& reading)
    : reading_(reading), out_(s_, [this] { return reading_.family->new_id(); }, reading.most) {
  run();
}

void OutputParser::run() {
  s_.begin_run();
  read();
}

void OutputParser::read() {
  if (reading_.thoughts) think();
  if (reading_.family != nullptr) reading_.family->format->read(s_, out_, reading_.tools);
  static const Marks kNone({});
  s_.until(kNone, out_.to_text());  // all remaining text is content
}

// Reads the reasoning. The model may repeat the opening mark even if the prompt ends with it. A
// call within the reasoning ends it, too, although the closing mark may still follow.
void OutputParser::think() {
  if (reading_.opened) out_.think();
  const bool matched = s_.attempt([this] {
    s_.space();
    return s_.accept(reading_.thoughts->begin);
  });
  if (!reading_.opened && !matched) return;
  out_.think();
  const Format* format = reading_.family != nullptr ? reading_.family->format.get() : nullptr;
  const auto marks = s_.kept([&] {
    const bool may_call =
        format != nullptr && !reading_.family->channels && !reading_.tools.constrained;
    Texts texts = may_call ? format->begins() : Texts();
    texts.insert(texts.begin(), reading_.thoughts->end);
    return Marks(std::move(texts));
  });
  for (Rounds rounds(s_); rounds.next();) {
    const std::optional<size_t> mark = s_.until(*marks, out_.to_text());
    if (!mark) return;
    if (*mark == 0) return out_.speak();
    const auto calls = [&] { return format->calls(s_, out_, reading_.tools, (*marks)[*mark]); };
    if (!out_.takes_more() || !s_.attempt(calls)) out_.text((*marks)[*mark]);
  }
}

std::vector<Part> OutputParser::push(std::string_view text) {
  if (reading_.family == nullptr && !reading_.thoughts) {
    if (text.empty()) return {};
    return {{Part::Kind::kText, std::string(text)}};
  }
  s_.feed(text);
  run();
  return out_.take();
}

std::vector<Part> OutputParser::finish() {
  s_.end();
  run();
  out_.finish();
  return out_.take();
}

}  // namespace wherry::app
