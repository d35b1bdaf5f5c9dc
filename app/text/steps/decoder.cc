#include "app/text/steps/decoder.h"

#include <cstdint>
#include <utility>

#include "app/text/byte_level.h"
#include "app/text/json/json.h"
#include "app/text/steps/pre_tokenizer.h"
#include "app/text/steps/read_pattern.h"
#include "app/value/code_points.h"

namespace wherry::text {

using namespace unicode;

namespace {

using Tokens = std::vector<std::string>;

void join_byte_level(Tokens& tokens) {
  std::string bytes;
  for (const std::string& token : tokens) {
    if (!append_as_bytes(token, bytes)) bytes += token;
  }
  tokens.assign(1, well_formed(bytes));
}

void join_bytes(Tokens& tokens) {
  Tokens result;
  std::string run;
  auto end_run = [&] {
    if (run.empty()) return;
    if (is_well_formed(run)) {
      result.push_back(run);
    } else {
      result.insert(result.end(), run.size(), kReplacement);
    }
    run.clear();
  };
  for (std::string& token : tokens) {
    int byte = byte_of(token);
    if (byte >= 0) {
      run += static_cast<char>(byte);
    } else {
      end_run();
      result.push_back(std::move(token));
    }
  }
  end_run();
  tokens = std::move(result);
}

void fuse(Tokens& tokens) {
  std::string all;
  for (const std::string& token : tokens) all += token;
  tokens.assign(1, std::move(all));
}

void strip_ends(Tokens& tokens, const std::string& what, int64_t start, int64_t stop) {
  for (std::string& token : tokens) {
    size_t begin = 0, end = token.size(), n = what.size();
    for (int64_t i = 0; i < start && token.compare(begin, n, what) == 0; ++i) begin += n;
    for (int64_t i = 0; i < stop && end >= begin + n && token.compare(end - n, n, what) == 0; ++i) {
      end -= n;
    }
    token = token.substr(begin, end - begin);
  }
}

// Removes spaces as BERT's clean-up does, in the same order.
std::string tidied(std::string text) {
  constexpr const char* kRules[][2] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},     {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},   {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
  };
  for (const auto& rule : kRules) text = replaced(text, rule[0], rule[1]);
  return text;
}

std::unique_ptr<Decoder> word_piece_decoder(const Json& json) {
  return make_step<Tokens>(
      [prefix = json.at("prefix").string(), tidy = json.at("cleanup").boolean()](Tokens& tokens) {
        for (size_t i = 0; i < tokens.size(); ++i) {
          std::string& token = tokens[i];
          if (i > 0) {
            bool continues = token.compare(0, prefix.size(), prefix) == 0;
            token = continues ? token.substr(prefix.size()) : " " + token;
          }
          if (tidy) token = tidied(std::move(token));
        }
      });
}

std::unique_ptr<Decoder> metaspace_decoder(const Json& json) {
  std::string mark;
  append_code_point(mark, json.at("replacement").character());
  bool stripped = read_prepend_scheme(json) != PrependScheme::kNever;
  return make_step<Tokens>([=](Tokens& tokens) {
    for (size_t i = 0; i < tokens.size(); ++i) {
      tokens[i] = replaced(tokens[i], mark, i == 0 && stripped ? "" : " ");
    }
  });
}

std::unique_ptr<Decoder> replace_decoder(const Json& json) {
  auto pattern = std::make_shared<const Pattern>(read_pattern(json));
  return make_step<Tokens>([pattern, content = json.at("content").string()](Tokens& tokens) {
    for (std::string& token : tokens) {
      std::string result;
      size_t at = 0;
      for (Match match : pattern->all(token)) {
        result.append(token, at, match.begin - at);
        result += content;
        at = match.end;
      }
      token = result.append(token, at);
    }
  });
}

std::unique_ptr<Decoder> bpe_decoder(const Json& json) {
  return make_step<Tokens>([suffix = json.at("suffix").string()](Tokens& tokens) {
    for (size_t i = 0; i < tokens.size(); ++i) {
      tokens[i] = replaced(tokens[i], suffix, i + 1 == tokens.size() ? "" : " ");
    }
  });
}

std::unique_ptr<Decoder> decoder_sequence(const Json& json) {
  std::vector<std::shared_ptr<const Decoder>> all;
  json.at("decoders").elements([&](const Json& each) { all.push_back(read_decoder(each)); });
  return make_sequence(std::move(all));
}

}  // namespace

std::string replaced(std::string_view text, std::string_view what, std::string_view with) {
  if (what.empty()) return std::string(text);
  std::string result;
  size_t at = 0;
  for (size_t match; (match = text.find(what, at)) != std::string_view::npos;
       at = match + what.size()) {
    result += text.substr(at, match - at);
    result += with;
  }
  return result += text.substr(at);
}

int byte_of(std::string_view token) {
  if (token.size() != 6 || token.substr(0, 3) != "<0x" || token[5] != '>') return -1;
  int value = 0;
  for (char c : token.substr(3, 2)) {
    int digit = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : -1;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

std::unique_ptr<Decoder> read_decoder(const Json& json) {
  std::string type = json.at("type").string();
  if (type == "Sequence") return decoder_sequence(json);
  if (type == "ByteLevel") return make_step<Tokens>(join_byte_level);
  if (type == "ByteFallback") return make_step<Tokens>(join_bytes);
  if (type == "Fuse") return make_step<Tokens>(fuse);
  if (type == "WordPiece") return word_piece_decoder(json);
  if (type == "Metaspace") return metaspace_decoder(json);
  if (type == "Replace") return replace_decoder(json);
  if (type == "BPEDecoder") return bpe_decoder(json);
  if (type == "Strip") {
    std::string what;
    append_code_point(what, json.at("content").character());
    int64_t start = json.at("start").integer(), stop = json.at("stop").integer();
    return make_step<Tokens>([=](Tokens& tokens) { strip_ends(tokens, what, start, stop); });
  }
  json.at("type").fail(
      "known decoders are BPEDecoder, ByteFallback, ByteLevel, Fuse, Metaspace, Replace, "
      "Sequence, Strip and WordPiece");
}

}  // namespace wherry::text
