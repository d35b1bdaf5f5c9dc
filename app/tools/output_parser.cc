#include "app/tools/output_parser.h"

#include <utility>

namespace wherry::app {

OutputParser::OutputParser(const Reading& reading)
    : reading_(reading),
      sure_{Output(
                [this](size_t call) {
                  while (ids_.size() <= call) ids_.push_back(reading_.family->new_id());
                  return ids_[call];
                },
                reading.most),
            reading.thoughts ? Stage::kBegins : after_thoughts()},
      now_(sure_) {
  go();
}

// Appends to made_ what was parsed since the last call.
void OutputParser::give() {
  const std::vector<Part>& parts = now_.out.parts;
  for (size_t i = given_ > 0 ? given_ - 1 : 0; i < parts.size(); ++i) {
    Part part = parts[i];
    if (i + 1 == given_) {
      if (part.text.size() == given_text_) continue;
      part.text.erase(0, given_text_);
    }
    append(made_, std::move(part));
  }
  given_ = parts.size();
  given_text_ = parts.empty() ? 0 : parts.back().text.size();
}

// Saves the current state as the one where parsing resumes.
void OutputParser::keep() {
  give();
  given_ = given_text_ = 0;
  now_.out.parts.clear();
  now_.at = s_.at;
  sure_ = now_;
}

// Parses until the text ends or more text has to arrive; returns the new parts.
std::vector<Part> OutputParser::go() {
  now_ = sure_;
  s_.at = sure_.at;
  s_.resumable = false;
  try {
    while (now_.stage != Stage::kEnd) {
      step();
      keep();
    }
  } catch (const Wait&) {
    s_.resumable ? keep() : give();
  }
  return std::exchange(made_, {});
}

void OutputParser::step() {
  switch (now_.stage) {
    case Stage::kBegins:
      return begin_thoughts();
    case Stage::kThinks:
      return think();
    case Stage::kFormat:
      if (!reading_.family->format->read(s_, now_.out, reading_.tools, now_.state)) {
        now_.stage = Stage::kRest;
      }
      return;
    default:  // all remaining text is content
      now_.out.text(s_.rest());
      s_.at = s_.text.size();
      s_.resumable = true;
      s_.next();
      now_.stage = Stage::kEnd;
  }
}

// Consumes the opening mark, which the model may repeat even if the prompt ends with it.
void OutputParser::begin_thoughts() {
  if (reading_.opened) now_.out.think();
  const bool found = s_.attempt([this] {
    s_.space();
    return s_.accept(reading_.thoughts->begin);
  });
  now_.stage = reading_.opened || found ? Stage::kThinks : after_thoughts();
  if (now_.stage == Stage::kThinks) now_.out.think();
}

// Reads reasoning up to the closing mark. A call within the reasoning ends it, too, although the
// closing mark may still follow.
void OutputParser::think() {
  const bool may_call =
      reading_.family != nullptr && !reading_.family->channels && !reading_.tools.held;
  Texts marks = may_call ? reading_.family->format->begins() : Texts();
  marks.insert(marks.begin(), reading_.thoughts->end);
  s_.resumable = true;
  const std::optional<size_t> found = s_.until(marks, now_.out.to_text());
  s_.resumable = false;
  if (!found || *found == 0) {
    if (found) now_.out.speak();
    now_.stage = after_thoughts();
    return;
  }
  const std::string& mark = marks[*found];
  const bool called = !now_.out.full() && s_.attempt([&] {
    return reading_.family->format->calls(s_, now_.out, reading_.tools, mark);
  });
  if (!called) now_.out.text(mark);
}

std::vector<Part> OutputParser::push(std::string_view text) {
  if (reading_.family == nullptr && !reading_.thoughts) {
    if (text.empty()) return {};
    return {{Part::Kind::kText, std::string(text)}};
  }
  s_.text.erase(0, std::exchange(sure_.at, 0));
  s_.feed(text);
  return go();
}

std::vector<Part> OutputParser::finish() {
  if (reading_.family == nullptr && !reading_.thoughts) return {};
  s_.ended = true;
  std::vector<Part> made = go();
  now_.out.finish();
  give();
  for (Part& part : made_) append(made, std::move(part));
  made_.clear();
  return made;
}

}  // namespace wherry::app
