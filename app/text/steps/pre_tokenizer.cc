#include "app/text/steps/pre_tokenizer.h"

#include <utility>

#include "app/text/byte_level.h"
#include "app/text/json/json.h"
#include "app/text/steps/read_pattern.h"
#include "app/value/code_points.h"
#include "app/value/unicode/properties.h"

namespace wherry::text {

using namespace unicode;

namespace {

// Splits pieces at each character for which `is` returns true.
template <typename Is>
void split_chars(Pieces& pieces, SplitBehavior behavior, Is is) {
  split(pieces, behavior, [&](std::string_view text) {
    std::vector<Match> matches;
    for (size_t at = 0; at < text.size();) {
      size_t begin = at;
      if (is(next_code_point(text, at))) matches.push_back({begin, at});
    }
    return parts_of(text, matches);
  });
}

void split_chars(Pieces& pieces, SplitBehavior behavior, const CharSet& set) {
  split_chars(pieces, behavior, [&](char32_t code) { return set.contains(code); });
}

// Returns GPT-2's pattern (https://github.com/openai/gpt-2/blob/master/src/encoder.py).
const Pattern& gpt2_pattern() {
  static const Pattern pattern = Pattern::regex(
      R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)");
  return pattern;
}

std::unique_ptr<PreTokenizer> byte_level_splitter(const Json& json) {
  bool space = json.at("add_prefix_space").boolean(), regex = json.boolean_or("use_regex", true);
  json.at("trim_offsets").boolean();
  return make_step<Pieces>([=](Pieces& pieces) {
    if (space) {
      rewrite(pieces, [](const Piece&, std::string_view text, std::string& out) {
        if (text[0] != ' ') out += ' ';
        out += text;
      });
    }
    if (regex) {
      split(pieces, SplitBehavior::kIsolated,
            [](std::string_view text) { return parts_of(text, gpt2_pattern().all(text)); });
    }
    rewrite(pieces, [](const Piece&, std::string_view text, std::string& out) {
      append_as_chars(text, out);
    });
  });
}

std::unique_ptr<PreTokenizer> metaspace_splitter(const Json& json) {
  char32_t replacement = json.at("replacement").character();
  std::string mark;
  append_code_point(mark, replacement);
  PrependScheme scheme = read_prepend_scheme(json);
  bool cut = json.boolean_or("split", true);
  return make_step<Pieces>([=](Pieces& pieces) {
    rewrite(pieces, [&](const Piece& piece, std::string_view text, std::string& out) {
      bool first = text[0] == ' ' || text.substr(0, mark.size()) == mark;
      if (!first && (scheme == PrependScheme::kAlways ||
                     (scheme == PrependScheme::kFirst && piece.at_start))) {
        out += mark;
      }
      for (char byte : text) {
        if (byte == ' ') {
          out += mark;
        } else {
          out += byte;
        }
      }
    });
    if (cut) {
      const Pattern marks = Pattern::literal(mark);
      split(pieces, SplitBehavior::kMergedWithNext,
            [&](std::string_view text) { return parts_of(text, marks.all(text)); });
    }
  });
}

std::unique_ptr<PreTokenizer> pattern_split(const Json& json) {
  // The pattern is shared because std::function requires a copyable object.
  auto pattern = std::make_shared<const Pattern>(read_pattern(json));
  SplitBehavior behavior = read_behavior(json.at("behavior"));
  bool inverted = json.at("invert").boolean();
  return make_step<Pieces>([=](Pieces& pieces) {
    split(pieces, behavior,
          [&](std::string_view text) { return parts_of(text, pattern->all(text), inverted); });
  });
}

void words(Pieces& pieces) {  // splits into words and other runs: \w+|[^\w\s]+
  split(pieces, SplitBehavior::kRemoved, [](std::string_view text) {
    auto kind = [](char32_t code) {
      return is_word().contains(code) ? 2 : !is_white_space().contains(code);
    };
    std::vector<Match> matches;
    int before = 0;
    for (size_t at = 0; at < text.size();) {
      size_t begin = at;
      int now = kind(next_code_point(text, at));
      if (now != 0 && now == before) {
        matches.back().end = at;
      } else if (now != 0) {
        matches.push_back({begin, at});
      }
      before = now;
    }
    return parts_of(text, matches, true);
  });
}

void fixed_length(Pieces& pieces, size_t length) {
  split(pieces, SplitBehavior::kIsolated, [length](std::string_view text) {
    std::vector<Match> matches;
    for (size_t at = 0; at < text.size();) {
      size_t begin = at;
      for (size_t i = 0; i < length && at < text.size(); ++i) next_code_point(text, at);
      matches.push_back({begin, at});
    }
    return parts_of(text, matches);
  });
}

std::unique_ptr<PreTokenizer> splitter_sequence(const Json& json) {
  std::vector<std::shared_ptr<const PreTokenizer>> all;
  json.at("pretokenizers").elements([&](const Json& each) {
    all.push_back(read_pre_tokenizer(each));
  });
  return make_sequence(std::move(all));
}

}  // namespace

PrependScheme read_prepend_scheme(const Json& metaspace) {
  auto scheme = metaspace.find("prepend_scheme");
  std::string name = scheme ? scheme->string() : "always";
  bool old = metaspace.boolean_or("add_prefix_space", true);
  if (!old && scheme && name != "never") scheme->fail("add_prefix_space is false");
  if (name == "never" || !old) return PrependScheme::kNever;
  if (name == "first") return PrependScheme::kFirst;
  if (name != "always") scheme->fail("known are first, never and always");
  return PrependScheme::kAlways;
}

std::unique_ptr<PreTokenizer> read_pre_tokenizer(const Json& json) {
  std::string type = json.at("type").string();
  if (type == "Sequence") return splitter_sequence(json);
  if (type == "ByteLevel") return byte_level_splitter(json);
  if (type == "Metaspace") return metaspace_splitter(json);
  if (type == "Split") return pattern_split(json);
  if (type == "Whitespace") return make_step<Pieces>([](Pieces& pieces) { words(pieces); });
  if (type == "WhitespaceSplit") {
    return make_step<Pieces>(
        [](Pieces& pieces) { split_chars(pieces, SplitBehavior::kRemoved, is_white_space()); });
  }
  if (type == "BertPreTokenizer") {
    return make_step<Pieces>([](Pieces& pieces) {
      split_chars(pieces, SplitBehavior::kRemoved, is_white_space());
      split_chars(pieces, SplitBehavior::kIsolated, is_punctuation());
    });
  }
  if (type == "Punctuation") {
    auto name = json.find("behavior");
    SplitBehavior behavior = name ? read_behavior(*name) : SplitBehavior::kIsolated;
    return make_step<Pieces>(
        [=](Pieces& pieces) { split_chars(pieces, behavior, is_punctuation()); });
  }
  if (type == "Digits") {
    bool single = json.at("individual_digits").boolean();
    return make_step<Pieces>([=](Pieces& pieces) {
      split_chars(pieces, single ? SplitBehavior::kIsolated : SplitBehavior::kContiguous,
                  is_number());
    });
  }
  if (type == "CharDelimiterSplit" || type == "Delimiter") {
    char32_t delimiter = json.at("delimiter").character();
    return make_step<Pieces>([=](Pieces& pieces) {
      split_chars(pieces, SplitBehavior::kRemoved,
                  [=](char32_t code) { return code == delimiter; });
    });
  }
  if (type == "FixedLength") {
    auto length = json.find("length");
    if (length && length->integer() < 1) length->fail("it must be a number of characters");
    size_t n = length ? static_cast<size_t>(length->integer()) : 5;
    return make_step<Pieces>([=](Pieces& pieces) { fixed_length(pieces, n); });
  }
  json.at("type").fail(
      "known pre-tokenizers are BertPreTokenizer, ByteLevel, CharDelimiterSplit, Digits, "
      "FixedLength, Metaspace, Punctuation, Sequence, Split, Whitespace and WhitespaceSplit");
}

}  // namespace wherry::text
