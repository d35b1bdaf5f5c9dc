#include "app/text/steps/normalizer.h"

#include <utility>
#include <vector>

#include "app/text/byte_level.h"
#include "app/text/json/json.h"
#include "app/text/steps/read_pattern.h"
#include "app/value/code_points.h"
#include "app/value/unicode/normal_forms.h"
#include "app/value/unicode/properties.h"

namespace wherry::text {

using namespace unicode;

namespace {

// Rewrites a text character by character: `each(code, out)` appends the replacement, and returns
// whether it changed.
template <typename Each>
void rewrite_chars(Normalized& text, Each each) {
  std::string out;
  out.reserve(text.text.size());
  for (size_t at = 0; at < text.text.size();) {
    bool first = at == 0;
    bool kept = each(next_code_point(text.text, at), out);
    if (first && !kept) text.at_start = false;
  }
  text.text = std::move(out);
}

std::unique_ptr<Normalizer> form(NormalForm which) {
  return make_step<Normalized>(
      [which](Normalized& text) { text.text = normal_form(text.text, which); });
}

void remove(Normalized& text, const CharSet& set) {
  rewrite_chars(text, [&](char32_t code, std::string& out) {
    if (set.contains(code)) return false;
    append_code_point(out, code);
    return true;
  });
}

// Applies SentencePiece's rules for machine translation (nmt): removes control characters, and
// replaces white space and invisible characters by spaces.
void nmt(Normalized& text) {
  static const CharSet gone(
      CodePoints({{0x1, 0x9}, {0xB, 0xC}, {0xE, 0x20}, {0x7F, 0x80}, {0x8F, 0x90}, {0x9F, 0xA0}}));
  static const CharSet space(CodePoints({{0x9, 0xB},
                                         {0xC, 0xE},
                                         {0x1680, 0x1681},
                                         {0x200B, 0x2010},
                                         {0x2028, 0x202A},
                                         {0x2581, 0x2582},
                                         {0xFEFF, 0xFF00},
                                         {0xFFFD, 0xFFFE}}));
  rewrite_chars(text, [](char32_t code, std::string& out) {
    if (gone.contains(code)) return false;
    append_code_point(out, space.contains(code) ? U' ' : code);
    return true;
  });
}

void strip_spaces(Normalized& text, bool left, bool right) {
  std::string& all = text.text;
  size_t begin = 0, end = all.size();
  while (left && begin < end) {
    size_t behind = begin;
    if (!is_white_space().contains(next_code_point(all, behind))) break;
    begin = behind;
  }
  while (right && end > begin) {
    size_t at = before(all, end), behind = at;
    if (!is_white_space().contains(next_code_point(all, behind))) break;
    end = at;
  }
  if (begin > 0) text.at_start = false;
  all = all.substr(begin, end - begin);
}

class Replace : public Normalizer {
 public:
  explicit Replace(const Json& json)
      : pattern_(read_pattern(json)), content_(json.at("content").string()) {}

  void apply(Normalized& text) const override {
    auto hit = pattern_.all(text.text);
    if (hit.empty()) return;
    // Text that is inserted at the start gets the position of the last removed character.
    if (hit[0].begin == 0 && hit[0].end > 0) {
      size_t one = length_of(static_cast<unsigned char>(text.text[0]));
      if (content_.empty() || hit[0].end > one) text.at_start = false;
    }
    std::string out;
    size_t at = 0;
    for (Match match : hit) {
      out.append(text.text, at, match.begin - at);
      out += content_;
      at = match.end;
    }
    out.append(text.text, at);
    text.text = std::move(out);
  }

 private:
  Pattern pattern_;
  std::string content_;
};

class Bert : public Normalizer {
 public:
  explicit Bert(const Json& json)
      : clean_(json.at("clean_text").boolean()),
        chinese_(json.at("handle_chinese_chars").boolean()),
        lower_(json.at("lowercase").boolean()),
        accents_(json.boolean_or("strip_accents", lower_)) {}

  void apply(Normalized& text) const override {
    if (clean_) {
      rewrite_chars(text, [](char32_t code, std::string& out) {
        if (is_control().contains(code)) return false;
        append_code_point(out, is_white_space().contains(code) ? U' ' : code);
        return true;
      });
    }
    if (chinese_) {
      rewrite_chars(text, [](char32_t code, std::string& out) {
        bool apart = ideographs().contains(code);
        if (apart) out += ' ';
        append_code_point(out, code);
        if (apart) out += ' ';
        return true;
      });
    }
    if (accents_) {
      text.text = normal_form(text.text, NormalForm::kNfd);
      remove(text, is_nonspacing());
    }
    if (lower_) text.text = lowered(text.text);
  }

 private:
  // Returns the blocks of ideographs in BERT's own code, without those that Unicode added later.
  static const CharSet& ideographs() {
    static const CharSet set(CodePoints({{0x4E00, 0xA000},
                                         {0x3400, 0x4DC0},
                                         {0x20000, 0x2A6E0},
                                         {0x2A700, 0x2B740},
                                         {0x2B740, 0x2B820},
                                         {0x2B920, 0x2CEB0},
                                         {0xF900, 0xFB00},
                                         {0x2F800, 0x2FA20}}));
    return set;
  }

  bool clean_, chinese_, lower_, accents_;
};

std::unique_ptr<Normalizer> normalizer_sequence(const Json& json) {
  std::vector<std::shared_ptr<const Normalizer>> all;
  json.at("normalizers").elements([&](const Json& each) { all.push_back(read_normalizer(each)); });
  return make_sequence(std::move(all));
}

}  // namespace

std::unique_ptr<Normalizer> read_normalizer(const Json& json) {
  std::string type = json.at("type").string();
  if (type == "Sequence") return normalizer_sequence(json);
  if (type == "NFC") return form(NormalForm::kNfc);
  if (type == "NFD") return form(NormalForm::kNfd);
  if (type == "NFKC") return form(NormalForm::kNfkc);
  if (type == "NFKD") return form(NormalForm::kNfkd);
  if (type == "Replace") return std::make_unique<Replace>(json);
  if (type == "BertNormalizer") return std::make_unique<Bert>(json);
  if (type == "Precompiled") return read_precompiled(json);
  if (type == "Lowercase")
    return make_step<Normalized>([](Normalized& text) { text.text = lowered(text.text); });
  if (type == "StripAccents")
    return make_step<Normalized>([](Normalized& text) { remove(text, is_mark()); });
  if (type == "Nmt") return make_step<Normalized>([](Normalized& text) { nmt(text); });
  if (type == "Strip") {
    bool left = json.at("strip_left").boolean(), right = json.at("strip_right").boolean();
    return make_step<Normalized>([=](Normalized& text) { strip_spaces(text, left, right); });
  }
  if (type == "Prepend") {
    return make_step<Normalized>([begin = json.at("prepend").string()](Normalized& text) {
      if (!text.text.empty()) text.text.insert(0, begin);
    });
  }
  if (type == "ByteLevel") {
    return make_step<Normalized>([](Normalized& text) {
      std::string out;
      append_as_chars(text.text, out);
      text.text = std::move(out);
    });
  }
  json.at("type").fail(
      "known normalizers are BertNormalizer, ByteLevel, Lowercase, NFC, NFD, NFKC, NFKD, Nmt, "
      "Precompiled, Prepend, Replace, Sequence, Strip and StripAccents");
}

}  // namespace wherry::text
