#include "app/text/model/unigram.h"

#include <algorithm>
#include <cstdio>
#include <limits>

#include "app/text/json/json.h"
#include "app/value/code_points.h"
#include "support/error.h"

namespace wherry::text {

using namespace unicode;

namespace {

// Penalty of unknown tokens, subtracted from the lowest score of a token, as in SentencePiece.
constexpr double kUnknownPenalty = 10;

}  // namespace

Unigram::Unigram(const Json& json) {
  double least = std::numeric_limits<double>::infinity();
  json.at("vocab").elements([&](const Json& entry) {
    auto pair = entry.elements();
    if (pair.size() != 2) entry.fail("it must be a token and its score");
    if (scores_.size() == static_cast<size_t>(kMostIds)) entry.fail("there are too many tokens");
    vocabulary_.add(pair[0].string(), static_cast<int32_t>(scores_.size()));
    scores_.push_back(pair[1].number());
    least = std::min(least, scores_.back());
  });
  vocabulary_.finish();
  unknown_score_ = least - kUnknownPenalty;
  if (auto id = json.find("unk_id")) {
    unknown_ = id->id();
    if (static_cast<size_t>(*unknown_) >= scores_.size()) {
      id->fail(concat("the vocabulary has ", scores_.size(), " tokens"));
    }
  }
  if (json.boolean_or("byte_fallback", false)) {
    for (int byte = 0; byte < 256; ++byte) {
      char name[8];
      std::snprintf(name, sizeof name, "<0x%02X>", byte);
      bytes_.push_back(vocabulary_.find(name));
    }
  }
  std::vector<std::pair<std::string_view, int32_t>> keys;
  for (int32_t id = 0; id <= vocabulary_.largest_id(); ++id) {
    if (auto token = vocabulary_.token(id)) keys.emplace_back(*token, id);
  }
  trie_ = std::make_unique<const Trie>(std::move(keys));
}

void Unigram::find_paths(std::string_view piece, Scratch& scratch) const {
  auto& paths = scratch.paths;
  paths.assign(piece.size() + 1, {0, 0, 0, false});
  auto offer = [&](size_t begin, size_t end, int32_t id, double score) {
    auto& path = paths[end];
    score += paths[begin].score;
    if (!path.reached || score > path.score) path = {score, id, begin, true};
  };
  for (size_t begin = 0; begin < piece.size();) {
    size_t length = length_of(static_cast<unsigned char>(piece[begin]));
    bool alone = false;  // true if the character by itself is a token
    trie_->prefixes(piece.substr(begin), [&](size_t n, int32_t id) {
      offer(begin, begin + n, id, scores_[static_cast<size_t>(id)]);
      alone |= n == length;
    });
    if (!alone) {
      if (!unknown_) {
        throw Error(WHERRY_INVALID_ARGUMENT,
                    concat("the tokenizer has no token for \"", piece.substr(begin, length),
                           "\", and no unk_id"));
      }
      offer(begin, begin + length, *unknown_, unknown_score_);
    }
    begin += length;
  }
}

void Unigram::add_unknown(std::string_view text, std::vector<int32_t>& ids) const {
  if (int32_t id = vocabulary_.find(text); id >= 0) {
    ids.push_back(id);
    return;
  }
  auto id_of = [&](char byte) { return bytes_[static_cast<unsigned char>(byte)]; };
  if (!bytes_.empty() &&
      std::all_of(text.begin(), text.end(), [&](char byte) { return id_of(byte) >= 0; })) {
    for (char byte : text) ids.push_back(id_of(byte));
  } else {
    ids.push_back(*unknown_);
  }
}

void Unigram::encode(std::string_view piece, std::vector<int32_t>& ids, Scratch& scratch) const {
  find_paths(piece, scratch);
  auto& ends = scratch.ends;  // ends of the tokens, in reverse order
  ends.clear();
  for (size_t end = piece.size(); end > 0; end = scratch.paths[end].begin) ends.push_back(end);
  size_t unknown = 0, begin = 0;  // place where pending unknown characters begin
  for (auto end = ends.rbegin(); end != ends.rend(); begin = *end++) {
    int32_t id = scratch.paths[*end].id;
    if (unknown_ && id == *unknown_) continue;
    if (unknown < begin) add_unknown(piece.substr(unknown, begin - unknown), ids);
    ids.push_back(id);
    unknown = *end;
  }
  if (unknown < piece.size()) add_unknown(piece.substr(unknown), ids);
}

}  // namespace wherry::text
