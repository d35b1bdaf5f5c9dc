#include "app/text/pattern/pattern.h"

#include "app/text/pattern/matcher.h"
#include "app/text/pattern/program.h"
#include "app/value/code_points.h"

namespace wherry::text {

using namespace unicode;

Pattern::Pattern() = default;
Pattern::Pattern(Pattern&&) noexcept = default;
Pattern::~Pattern() = default;

Pattern Pattern::regex(std::string_view source) {
  Pattern made;
  made.program_ = std::make_unique<const Program>(parse_pattern(source));
  return made;
}

Pattern Pattern::literal(std::string_view text) {
  if (text.empty()) return regex("");
  Pattern made;
  made.literal_ = text;
  return made;
}

std::vector<Match> Pattern::all(std::string_view text) const {
  std::vector<Match> found;
  if (!program_) {
    for (size_t at = text.find(literal_); at != std::string_view::npos;
         at = text.find(literal_, at + literal_.size())) {
      found.push_back({at, at + literal_.size()});
    }
    return found;
  }
  Matcher matcher(*program_, text);
  for (size_t at = 0; at <= text.size();) {
    size_t end = matcher.may_begin(at) ? matcher.end_of(at) : Matcher::kNone;
    bool follows = end == at && !found.empty() && found.back().end == at;
    if (end != Matcher::kNone && !follows) {
      found.push_back({at, end});
      if (end > at) {
        at = end;
        continue;
      }
    }
    if (at == text.size()) break;
    at += length_of(static_cast<unsigned char>(text[at]));
  }
  return found;
}

}  // namespace wherry::text
