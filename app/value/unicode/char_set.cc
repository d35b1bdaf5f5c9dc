#include "app/value/unicode/char_set.h"

#include <algorithm>
#include <map>

namespace wherry::unicode {

CodePoints::CodePoints(std::vector<std::pair<char32_t, char32_t>> ranges) {
  std::sort(ranges.begin(), ranges.end());
  for (auto [begin, end] : ranges) {
    if (begin >= end) continue;
    if (!ranges_.empty() && begin <= ranges_.back().second) {
      ranges_.back().second = std::max(ranges_.back().second, end);
    } else {
      ranges_.emplace_back(begin, end);
    }
  }
}

CodePoints CodePoints::operator|(const CodePoints& other) const {
  auto all = ranges_;
  all.insert(all.end(), other.ranges_.begin(), other.ranges_.end());
  return CodePoints(std::move(all));
}

CodePoints CodePoints::operator~() const {
  CodePoints code_points;
  char32_t at = 0;
  for (auto [begin, end] : ranges_) {
    if (at < begin) code_points.ranges_.emplace_back(at, begin);
    at = end;
  }
  if (at < kEnd) code_points.ranges_.emplace_back(at, kEnd);
  return code_points;
}

CharSet::CharSet(const CodePoints& members) {
  std::vector<Page> all(CodePoints::kEnd >> 8, Page{});
  for (auto [begin, end] : members.ranges()) {
    for (char32_t code = begin; code < end;) {
      if (code % 64 == 0 && code + 64 <= end) {
        all[code >> 8][code >> 6 & 3] = ~uint64_t{0};
        code += 64;
      } else {
        all[code >> 8][code >> 6 & 3] |= uint64_t{1} << (code & 63);
        ++code;
      }
    }
  }
  std::map<Page, uint16_t> known;
  for (const Page& page : all) {
    auto [it, is_new] = known.try_emplace(page, static_cast<uint16_t>(pages_.size()));
    if (is_new) pages_.push_back(page);
    page_of_.push_back(it->second);
  }
  for (char32_t code = 0; code < 128; ++code) {
    ascii_[code] = pages_[page_of_[0]][code >> 6] >> (code & 63) & 1;
  }
}

}  // namespace wherry::unicode
