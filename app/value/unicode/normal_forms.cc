#include "app/value/unicode/normal_forms.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "app/value/code_points.h"
#include "app/value/unicode/mappings.h"
#include "app/value/unicode/properties.h"
#include "app/value/unicode/tables.h"

namespace wherry::unicode {

namespace {

// Constants of Hangul syllables, which are composed by arithmetic (The Unicode Standard, 3.12).
constexpr char32_t kS = 0xAC00, kL = 0x1100, kV = 0x1161, kT = 0x11A7;
constexpr char32_t kLs = 19, kVs = 21, kTs = 28, kSs = kLs * kVs * kTs;

uint64_t pair_of(char32_t a, char32_t b) { return static_cast<uint64_t>(a) << 32 | b; }

struct Forms {
  Forms()
      : canonical(tables::kCanonical),
        compatible(tables::kCompatible),
        classes(tables::kCombining) {
    // Maps a full decomposition to the character that it composes to.
    std::unordered_map<std::u32string, char32_t> compositions;
    const CharSet composed(packed_set(tables::kComposed));
    for (const auto& [code, to] : canonical.all()) {
      if (composed.contains(code)) compositions.emplace(to, code);
    }
    // The last character of a full decomposition is also the last character of the single step.
    for (const auto& [to, code] : compositions) {
      std::u32string start = to.substr(0, to.size() - 1);
      auto match = start.size() == 1 ? compositions.end() : compositions.find(start);
      if (start.size() > 1 && match == compositions.end()) continue;
      pairs.emplace(pair_of(start.size() == 1 ? start[0] : match->second, to.back()), code);
    }
  }

  uint8_t class_of(char32_t code) const { return code < 0x300 ? 0 : classes[code]; }

  char32_t compose(char32_t a, char32_t b) const {  // returns 0 if the two do not compose
    if (a >= kL && a < kL + kLs && b >= kV && b < kV + kVs) {
      return kS + ((a - kL) * kVs + (b - kV)) * kTs;
    }
    if (a >= kS && a < kS + kSs && (a - kS) % kTs == 0 && b > kT && b < kT + kTs) {
      return a + (b - kT);
    }
    auto it = pairs.find(pair_of(a, b));
    return it == pairs.end() ? 0 : it->second;
  }

  Mappings canonical, compatible;
  RunTable classes;
  std::unordered_map<uint64_t, char32_t> pairs;
};

const Forms& forms() {
  static const Forms result;
  return result;
}

struct Unit {
  char32_t code;
  uint8_t kind;  // canonical combining class of the character
};

void decompose(char32_t code, bool compatible, std::vector<Unit>& units) {
  const Forms& all = forms();
  if (code >= kS && code < kS + kSs) {
    char32_t s = code - kS;
    units.push_back({kL + s / (kVs * kTs), 0});
    units.push_back({kV + s % (kVs * kTs) / kTs, 0});
    if (s % kTs) units.push_back({kT + s % kTs, 0});
    return;
  }
  const std::u32string* to = compatible ? all.compatible.find(code) : nullptr;
  if (!to) to = all.canonical.find(code);
  if (!to) {
    units.push_back({code, all.class_of(code)});
    return;
  }
  for (char32_t c : *to) units.push_back({c, all.class_of(c)});
}

void order(std::vector<Unit>& units) {
  for (size_t begin = 0; begin < units.size();) {
    if (units[begin].kind == 0) {
      ++begin;
      continue;
    }
    size_t end = begin;
    while (end < units.size() && units[end].kind != 0) ++end;
    std::stable_sort(units.begin() + static_cast<std::ptrdiff_t>(begin),
                     units.begin() + static_cast<std::ptrdiff_t>(end),
                     [](const Unit& a, const Unit& b) { return a.kind < b.kind; });
    begin = end;
  }
}

void compose(std::vector<Unit>& units) {
  size_t starter = units.size(), kept = 0;
  int last = -1;  // class of the last character kept after the starter; -1 if there is none
  for (const Unit unit : units) {
    // No character between the starter and this one blocks their composition.
    if (starter < kept && last < unit.kind) {
      if (char32_t code = forms().compose(units[starter].code, unit.code)) {
        units[starter].code = code;
        continue;
      }
    }
    if (unit.kind == 0) {
      starter = kept;
      last = -1;
    } else {
      last = unit.kind;
    }
    units[kept++] = unit;
  }
  units.resize(kept);
}

bool is_ascii(char byte) { return static_cast<unsigned char>(byte) < 0x80; }

}  // namespace

std::string normal_form(std::string_view text, NormalForm form) {
  bool compatible = form == NormalForm::kNfkc || form == NormalForm::kNfkd;
  bool composed = form == NormalForm::kNfc || form == NormalForm::kNfkc;
  std::string out;
  out.reserve(text.size());
  std::vector<Unit> units;
  // Splits the text at ASCII characters, which are unchanged in all forms, and never compose with
  // preceding characters.
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && is_ascii(text[end])) ++end;
    size_t plain = end == text.size() || end == at ? end : end - 1;
    out.append(text, at, plain - at);
    at = plain;
    if (at == text.size()) break;
    units.clear();
    do decompose(next_code_point(text, at), compatible, units);
    while (at < text.size() && !is_ascii(text[at]));
    order(units);
    if (composed) compose(units);
    for (const Unit& unit : units) append_code_point(out, unit.code);
  }
  return out;
}

}  // namespace wherry::unicode
