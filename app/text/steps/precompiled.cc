// SentencePiece's normalization with a double-array trie (Darts) that maps texts to texts.
//
// The rule is odd, but models were trained with it: if a grapheme has fewer than six bytes, the
// shortest prefix with a mapping replaces the whole grapheme; otherwise each character is mapped
// separately. Grapheme boundaries therefore matter for six bytes only, and the rules that join
// longer graphemes (Hangul, flags, emoji) are omitted.
#include <cstring>

#include "app/text/json/json.h"
#include "app/text/steps/normalizer.h"
#include "app/value/base64.h"
#include "app/value/code_points.h"
#include "app/value/unicode/properties.h"
#include "app/value/unicode/tables.h"
#include "support/error.h"

namespace wherry::text {

using namespace unicode;

namespace {

constexpr size_t kShortGrapheme = 6;  // graphemes with fewer bytes are mapped as a whole

// The grapheme break properties that matter here, with the table's numbers.
enum Break : uint8_t {
  kOther,
  kCarriageReturn,
  kLineFeed,
  kControl,
  kExtend,
  kJoiner,
  kRegional,
  kPrepend,
  kSpacingMark,
};

bool joined(uint8_t left, uint8_t right) {
  if (left == kCarriageReturn && right == kLineFeed) return true;
  auto alone = [](uint8_t kind) { return kind >= kCarriageReturn && kind <= kControl; };
  if (alone(left) || alone(right)) return false;
  return right == kExtend || right == kJoiner || right == kSpacingMark || left == kPrepend;
}

uint8_t break_of(char32_t code) {
  static const RunTable table(tables::kBreaks);
  return table[code];
}

class Precompiled : public Normalizer {
 public:
  explicit Precompiled(const Json& json);
  void apply(Normalized& text) const override;

 private:
  uint32_t unit(size_t at) const {  // returns 0, a unit without transitions, beyond the end
    uint32_t value = 0;
    if (at < units_) std::memcpy(&value, data_.data() + 4 + 4 * at, 4);
    return value;
  }
  // Finds the mapping of the shortest prefix of `part`; returns false if there is none.
  bool find(std::string_view part, std::string_view& becomes) const;

  std::string data_;  // size of the array in bytes, the array, the NUL-terminated mapped texts
  size_t units_ = 0;
  std::string_view texts_;
};

Precompiled::Precompiled(const Json& json) {
  Json map = json.at("precompiled_charsmap");
  if (map.is_null() || map.string().empty()) return;
  uint32_t size = 0;
  const bool wrong = decode_base64(map.string(), data_) != std::string::npos;
  if (wrong || data_.size() < 4) map.fail("it is not base64");
  std::memcpy(&size, data_.data(), 4);  // little-endian, as all supported machines are
  if (size % 4 != 0 || size > data_.size() - 4) map.fail("its array is longer than it");
  units_ = size / 4;
  texts_ = std::string_view(data_).substr(4 + size);
}

bool Precompiled::find(std::string_view part, std::string_view& becomes) const {
  auto offset = [](uint32_t value) { return size_t{value >> 10} << ((value & 1u << 9) >> 6); };
  size_t at = offset(unit(0));
  for (char byte : part) {
    auto label = static_cast<unsigned char>(byte);
    if (label == 0) return false;
    at ^= label;
    uint32_t value = unit(at);
    if ((value & (1u << 31 | 0xFF)) != label) return false;
    at ^= offset(value);
    if (value >> 8 & 1) {
      size_t begin = unit(at) & ~(1u << 31);
      if (begin >= texts_.size()) return false;
      becomes = texts_.substr(begin, texts_.find('\0', begin) - begin);
      return true;
    }
  }
  return false;
}

void Precompiled::apply(Normalized& text) const {
  if (units_ == 0) return;
  const std::string& all = text.text;
  std::string out;
  out.reserve(all.size());
  std::string_view becomes;
  for (size_t begin = 0; begin < all.size();) {
    size_t end = begin;
    uint8_t left = break_of(next_code_point(all, end));
    while (end < all.size()) {
      size_t behind = end;
      uint8_t right = break_of(next_code_point(all, behind));
      if (!joined(left, right)) break;
      left = right;
      end = behind;
    }
    if (end - begin < kShortGrapheme &&
        find(std::string_view(all).substr(begin, end - begin), becomes)) {
      out += becomes;
      begin = end;
      continue;
    }
    while (begin < end) {
      size_t behind = begin;
      next_code_point(all, behind);
      std::string_view one = std::string_view(all).substr(begin, behind - begin);
      out += find(one, becomes) ? becomes : one;
      begin = behind;
    }
  }
  text.text = std::move(out);
}

}  // namespace

std::unique_ptr<Normalizer> read_precompiled(const Json& json) {
  return std::make_unique<Precompiled>(json);
}

}  // namespace wherry::text
