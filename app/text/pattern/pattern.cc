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
  Pattern pattern;
  pattern.program_ = std::make_unique<const Program>(parse_pattern(source));
  return pattern;
}

Pattern Pattern::literal(std::string_view text) {
  if (text.empty()) return regex("");
  Pattern pattern;
  pattern.literal_ = text;
  return pattern;
}

std::vector<Match> Pattern::all(std::string_view text) const {
  std::vector<Match> matches;
  if (!program_) {
    for (size_t at = text.find(literal_); at != std::string_view::npos;
         at = text.find(literal_, at + literal_.size())) {
      matches.push_back({at, at + literal_.size()});
    }
    return matches;
  }
  Matcher matcher(*program_, text);
  for (size_t at = 0; at <= text.size();) {
    size_t end = matcher.may_begin(at) ? matcher.end_of(at) : Matcher::kNone;
    bool follows = end == at && !matches.empty() && matches.back().end == at;
    if (end != Matcher::kNone && !follows) {
      matches.push_back({at, end});
      if (end > at) {
        at = end;
        continue;
      }
    }
    if (at == text.size()) break;
    at += length_of(static_cast<unsigned char>(text[at]));
  }
  return matches;
}

}  // namespace wherry::text
