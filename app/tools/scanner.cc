#include "app/tools/scanner.h"

#include <algorithm>

#include "app/template/code_points.h"

namespace wherry::app {

namespace {

bool begins_with(std::string_view text, std::string_view beginning) {
  return text.substr(0, beginning.size()) == beginning;
}

// Returns the position and the index of the literal that occurs first at or after `from`; nothing
// if there is none. Of several literals at one position, it selects the longest.
std::optional<std::pair<size_t, size_t>> first_of(std::string_view text, size_t from,
                                                  const std::vector<std::string>& literals) {
  std::optional<std::pair<size_t, size_t>> best;
  for (size_t i = 0; i < literals.size(); ++i) {
    const size_t place = text.find(literals[i], from);
    if (place == text.npos) continue;
    const bool better =
        !best || place < best->first ||
        (place == best->first && literals[i].size() > literals[best->second].size());
    if (better) best = {place, i};
  }
  return best;
}

}  // namespace

void Scanner::feed(std::string_view piece) { text += piece; }

void Scanner::more() const {
  if (!ended) throw Wait();
}

char32_t Scanner::next() {
  if (at == text.size()) {
    more();
    return kNoChar;
  }
  size_t end = at;
  return jinja::next_code_point(text, end);
}

std::string Scanner::take(size_t chars) {
  const size_t start = at;
  while (chars-- > 0 && next() != kNoChar) jinja::next_code_point(text, at);
  return text.substr(start, at - start);
}

char32_t Scanner::space() {
  char32_t code = next();
  while (code != kNoChar && jinja::is_space(code)) {
    jinja::next_code_point(text, at);
    code = next();
  }
  return code;
}

bool Scanner::accept(std::string_view literal) {
  const std::string_view there = rest().substr(0, literal.size());
  if (!begins_with(literal, there)) return false;
  if (there.size() < literal.size()) {
    more();
    return false;
  }
  at += literal.size();
  return true;
}

bool Scanner::comes(std::string_view literal) {
  const bool found = accept(literal);
  if (found) at -= literal.size();
  return found;
}

std::optional<size_t> Scanner::accept_one(const std::vector<std::string>& literals) {
  for (size_t i = 0; i < literals.size(); ++i) {
    if (accept(literals[i])) return i;
  }
  return std::nullopt;
}

std::optional<size_t> Scanner::until(const std::vector<std::string>& literals, const Emit& emit) {
  const std::string_view all = text;
  const auto found = first_of(all, at, literals);
  const size_t start = at, sure = safe(literals);
  // An incomplete literal that begins earlier may turn out to contain the found one.
  if (found && found->first <= sure && !may_grow(found->first, found->second, literals)) {
    at = found->first + literals[found->second].size();
    emit(all.substr(start, found->first - start));
    return found->second;
  }
  at = found ? std::min(found->first, sure) : sure;
  emit(all.substr(start, at - start));
  more();
  return std::nullopt;
}

// Returns whether a longer literal may begin at the position `start` of the literal `which`.
bool Scanner::may_grow(size_t start, size_t which, const std::vector<std::string>& literals) const {
  const std::string_view left = std::string_view(text).substr(start);
  return !ended && std::any_of(literals.begin(), literals.end(), [&](const std::string& other) {
    return other.size() > left.size() && begins_with(other, left) && other != literals[which];
  });
}

// Returns the position up to which the text cannot be the beginning of an incomplete literal.
size_t Scanner::safe(const std::vector<std::string>& literals) const {
  if (ended) return text.size();
  size_t longest = 1;
  for (const std::string& literal : literals) longest = std::max(longest, literal.size());
  for (size_t start = std::max(at, text.size() - std::min(text.size(), longest - 1));
       start < text.size(); ++start) {
    const std::string_view left = std::string_view(text).substr(start);
    const bool begun = std::any_of(literals.begin(), literals.end(),
                                   [&](const std::string& l) { return begins_with(l, left); });
    if (begun) return start;
  }
  return text.size();
}

std::string Scanner::match(CharSet first, CharSet rest, size_t most, size_t longest) {
  size_t end = at, count = 0;
  while (end < text.size() && count < std::min(most, longest)) {
    size_t behind = end;
    const char32_t code = jinja::next_code_point(text, behind);
    if (!(count == 0 ? first : rest)(code)) break;
    end = behind;
    ++count;
  }
  if (end == text.size() && count < most) more();
  std::string taken = text.substr(at, end - at);
  at = end;
  return taken;
}

}  // namespace wherry::app
