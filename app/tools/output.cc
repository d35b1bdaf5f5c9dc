#include "app/tools/output.h"

#include "app/value/code_points.h"

namespace wherry::app {

using Kind = Part::Kind;

void append(std::vector<Part>& parts, Part part) {
  const bool grows = part.kind != Kind::kCallBegin && part.kind != Kind::kCallEnd;
  if (grows && !parts.empty() && parts.back().kind == part.kind &&
      parts.back().index == part.index) {
    parts.back().text += part.text;
  } else {
    parts.push_back(std::move(part));
  }
}

void Output::text(std::string_view piece) {
  if (!s_.live()) return;
  std::string text = std::exchange(space_, "") + std::string(piece);
  const size_t end = unicode::skip_right(text);
  space_ = text.substr(end);
  text.resize(end);
  if (text.empty()) return;
  if (std::exchange(fresh_, false)) {
    const size_t start = unicode::skip_left(text);
    if (gap_.empty()) gap_ = text.substr(0, start);
    text.replace(0, start, said_ ? gap_ : "");
  }
  gap_.clear();
  said_ = !thinks_;
  append(parts_, {thinks_ ? Kind::kReasoning : Kind::kText, std::move(text)});
}

void Output::think() { change(true); }

void Output::speak() { change(false); }

void Output::change(bool thinks) {
  if (!s_.live()) return;
  space_.clear();
  gap_.clear();
  said_ = false;
  fresh_ = true;
  thinks_ = thinks;
}

void Output::begin(const std::string& name, const std::string& id) {
  s_.release();
  if (!s_.live()) return;
  if (thinks_) speak();
  if (gap_.empty()) gap_ = space_;
  space_.clear();
  fresh_ = open_ = true;
  append(parts_, {Kind::kCallBegin, "", calls_, id.empty() ? id_() : id, name});
}

void Output::arguments(std::string_view text) {
  if (s_.live() && !text.empty()) append(parts_, {Kind::kCallArguments, std::string(text), calls_});
}

void Output::end(bool complete) {
  if (s_.live()) close(complete);
}

void Output::close(bool complete) {
  append(parts_, {Kind::kCallEnd, "", calls_, "", "", complete});
  ++calls_;
  open_ = false;
}

void Output::finish() {
  if (open_) {
    close(false);
  } else if (!thinks_ && !fresh_ && !space_.empty()) {
    append(parts_, {Kind::kText, space_});
  }
  space_.clear();
}

}  // namespace wherry::app
