#include "app/text/steps/added_tokens.h"

#include <algorithm>
#include <utility>

#include "app/text/json/json.h"
#include "app/text/model/model.h"
#include "app/text/model/trie.h"
#include "app/value/code_points.h"
#include "app/value/unicode/properties.h"
#include "support/error.h"

namespace wherry::text {

using namespace unicode;

namespace {

bool ends_with_word(std::string_view text) {
  if (text.empty()) return false;
  size_t at = before(text, text.size());
  return is_word().contains(next_code_point(text, at));
}

bool begins_with_word(std::string_view text) {
  size_t at = 0;
  return !text.empty() && is_word().contains(next_code_point(text, at));
}

size_t space_before(std::string_view text, size_t at) {
  while (at > 0) {
    size_t begin = before(text, at), behind = begin;
    if (!is_white_space().contains(next_code_point(text, behind))) break;
    at = begin;
  }
  return at;
}

size_t space_behind(std::string_view text, size_t at) {
  while (at < text.size()) {
    size_t behind = at;
    if (!is_white_space().contains(next_code_point(text, behind))) break;
    at = behind;
  }
  return at;
}

}  // namespace

AddedTokens::Token AddedTokens::read_token(const Json& json, const Normalizer* normalizer) const {
  Token token;
  token.content = token.normal = json.at("content").string();
  token.single_word = json.at("single_word").boolean();
  token.left = json.at("lstrip").boolean();
  token.right = json.at("rstrip").boolean();
  token.normalized = json.at("normalized").boolean();
  token.special = json.at("special").boolean();
  json.at("id").id();
  if (token.normalized && normalizer) {
    Normalized text{token.content, true};
    normalizer->apply(text);
    token.normal = std::move(text.text);
  }
  return token;
}

AddedTokens::AddedTokens(const Json* json, const Model& model, const Normalizer* normalizer) {
  // A token gets its id in the model, or the next free id. The id in the file is ignored, as in
  // `tokenizers`.
  size_t next = model.size();
  if (json) {
    json->elements([&](const Json& each) {
      Token token = read_token(each, normalizer);
      if (token.content.empty()) return;
      int32_t id = find(token.content);
      if (id < 0) id = model.find(token.content);
      if (id < 0) {
        id = static_cast<int32_t>(next++);
        if (id >= kMostIds) each.fail("there are too many tokens");
      }
      ids_[token.content] = id;
      if (token.special) special_.insert(token.content);
      largest_id_ = std::max(largest_id_, id);
      tokens_.insert_or_assign(id, std::move(token));
    });
  }
  make_finder(raw_, false);
  make_finder(normal_, true);
}

AddedTokens::~AddedTokens() = default;

void AddedTokens::make_finder(Finder& finder, bool normalized) const {
  std::vector<std::pair<std::string_view, int32_t>> keys;
  for (const auto& [id, token] : tokens_) {
    if (token.normalized != normalized || token.normal.empty()) continue;
    keys.emplace_back(token.normal, id);
    finder.firsts[static_cast<unsigned char>(token.normal[0])] = true;
  }
  if (!keys.empty()) finder.trie = std::make_unique<const Trie>(std::move(keys));
}

std::vector<AddedTokens::Match> AddedTokens::find_all(std::string_view text,
                                                      const Finder& finder) const {
  std::vector<Match> matches;
  size_t done = 0;  // end of the last match
  for (size_t at = 0; finder.trie && at < text.size();) {
    size_t length = 0;
    int32_t id = -1;
    if (finder.firsts[static_cast<unsigned char>(text[at])]) {
      finder.trie->prefixes(text.substr(at), [&](size_t n, int32_t value) {
        length = n;
        id = value;
      });
    }
    if (id < 0) {
      ++at;
      continue;
    }
    size_t begin = at, end = at + length;
    at = end;  // continues after the match, even if it is rejected
    const Token& token = tokens_.at(id);
    if (token.single_word &&
        (ends_with_word(text.substr(0, begin)) || begins_with_word(text.substr(end)))) {
      continue;
    }
    if (token.left) begin = std::max(space_before(text, begin), done);
    if (token.right) end = space_behind(text, end);
    if (done < begin) matches.push_back({done, begin, -1});
    matches.push_back({begin, end, id});
    done = end;
  }
  if (done != text.size()) matches.push_back({done, text.size(), -1});
  return matches;
}

Pieces AddedTokens::split(std::string_view text, const Normalizer* normalizer) const {
  Pieces pieces;
  for (const Match& outer : find_all(text, raw_)) {
    size_t offset = pieces.text.size();
    std::string_view part = text.substr(outer.begin, outer.end - outer.begin);
    if (outer.id >= 0) {
      pieces.text += part;
      pieces.list.push_back({offset, pieces.text.size(), outer.id, outer.begin == 0});
      continue;
    }
    Normalized normalized{std::string(part), outer.begin == 0};
    if (normalizer) normalizer->apply(normalized);
    pieces.text += normalized.text;
    for (const Match& inner : find_all(normalized.text, normal_)) {
      if (inner.begin == inner.end) continue;
      pieces.list.push_back({offset + inner.begin, offset + inner.end, inner.id,
                             normalized.at_start && inner.begin == 0});
    }
  }
  return pieces;
}

int32_t AddedTokens::find(std::string_view content) const {
  auto it = ids_.find(std::string(content));
  return it == ids_.end() ? -1 : it->second;
}

std::optional<std::string_view> AddedTokens::name(int32_t id) const {
  auto it = tokens_.find(id);
  if (it == tokens_.end()) return std::nullopt;
  return it->second.normal;
}

bool AddedTokens::is_special(int32_t id) const {
  auto it = tokens_.find(id);
  return it != tokens_.end() && it->second.special;
}

bool AddedTokens::is_special_name(std::string_view name) const {
  return special_.count(std::string(name)) > 0;
}

size_t AddedTokens::beyond(const Model& model) const {
  size_t n = 0;
  for (const auto& [content, id] : ids_) n += model.find(content) < 0;
  return n;
}

}  // namespace wherry::text
