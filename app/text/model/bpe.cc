#include "app/text/model/bpe.h"

#include <algorithm>
#include <cstdio>

#include "app/text/json/json.h"
#include "app/value/code_points.h"
#include "support/error.h"

namespace wherry::text {

using namespace unicode;

namespace {

constexpr char32_t kShortChars = 0x800;  // end of the characters of one or two UTF-8 bytes

// Orders a heap with the lowest rank, and of equal ranks the leftmost pair, on top.
bool later(const Scratch::Merge& a, const Scratch::Merge& b) {
  return a.rank != b.rank ? a.rank > b.rank : a.at > b.at;
}

}  // namespace

Bpe::Bpe(const Json& json) {
  if (auto dropout = json.find("dropout"); dropout && dropout->number() != 0) {
    dropout->fail("with dropout ids are drawn by chance; it must be null or 0");
  }
  json.at("vocab").members(
      [&](std::string_view token, const Json& id) { vocabulary_.add(token, id.id()); });
  vocabulary_.finish();
  prefix_ = json.string_or("continuing_subword_prefix", "");
  suffix_ = json.string_or("end_of_word_suffix", "");
  fuse_unknown_ = json.boolean_or("fuse_unk", false);
  ignore_merges_ = json.boolean_or("ignore_merges", false);
  if (auto name = json.find("unk_token")) {
    unknown_ = vocabulary_.find(name->string());
    // An unknown token that the vocabulary lacks is accepted: many files name one that is never
    // needed.
  }
  if (json.boolean_or("byte_fallback", false)) {
    for (int byte = 0; byte < 256; ++byte) {
      char name[8];
      std::snprintf(name, sizeof name, "<0x%02X>", byte);
      bytes_.push_back(vocabulary_.find(name));
    }
  }
  for (char32_t code = 0; code < kShortChars; ++code) {
    std::string text;
    append_code_point(text, code);
    short_chars_.push_back(vocabulary_.find(text));
  }
  read_merges(json.at("merges"));
}

void Bpe::read_merges(const Json& json) {
  size_t n = 0;
  json.elements([&](const Json&) { ++n; });
  merges_.reserve(n);
  uint32_t rank = 0;
  std::string left, right, joined;
  auto known = [&](const Json& merge, const std::string& token) {
    int32_t id = vocabulary_.find(token);
    if (id < 0) merge.fail(concat("the vocabulary has no token \"", token, "\""));
    return id;
  };
  json.elements([&](const Json& merge) {
    if (merge.is_string()) {  // files before 2024 write a merge as a string
      std::string line = merge.string();
      if (line.rfind("#version", 0) == 0) return;
      size_t space = line.find(' ');
      if (space == std::string::npos || line.find(' ', space + 1) != std::string::npos) {
        merge.fail("it must be two tokens with a space between");
      }
      left = line.substr(0, space);
      right = line.substr(space + 1);
    } else {
      size_t i = 0;
      merge.elements([&](const Json& token) {
        if (i < 2) (i == 0 ? left : right) = token.string();
        ++i;
      });
      if (i != 2) merge.fail("it must be two tokens");
    }
    if (right.size() < prefix_.size()) {
      merge.fail(concat("its second token must begin with \"", prefix_, "\""));
    }
    joined = left;
    joined.append(right, prefix_.size(), std::string::npos);
    merges_.add({known(merge, left), known(merge, right), rank++, known(merge, joined)});
  });
}

int32_t Bpe::id_of_char(std::string_view piece, size_t begin, size_t end,
                        std::string& buffer) const {
  std::string_view text = piece.substr(begin, end - begin);
  if (prefix_.empty() && suffix_.empty()) {
    if (text.size() > 2) return vocabulary_.find(text);
    size_t at = 0;
    return short_chars_[next_code_point(text, at)];
  }
  buffer = begin == 0 ? "" : prefix_;
  buffer += text;
  if (end == piece.size()) buffer += suffix_;
  return vocabulary_.find(buffer);
}

bool Bpe::add_bytes(std::string_view text, Scratch& scratch) const {
  if (bytes_.empty()) return false;
  for (char byte : text) {
    if (bytes_[static_cast<unsigned char>(byte)] < 0) return false;
  }
  for (char byte : text) {
    scratch.symbols.push_back({bytes_[static_cast<unsigned char>(byte)], 0, 0, false});
  }
  return true;
}

void Bpe::split(std::string_view piece, Scratch& scratch) const {
  auto& symbols = scratch.symbols;
  symbols.clear();
  bool unknown = false;  // true while an unknown token is pending before the next known character
  auto add_unknown = [&] {
    if (unknown) symbols.push_back({*unknown_, 0, 0, false});
    unknown = false;
  };
  for (size_t begin = 0, end; begin < piece.size(); begin = end) {
    end = begin + length_of(static_cast<unsigned char>(piece[begin]));
    int32_t id = id_of_char(piece, begin, end, scratch.text);
    if (id >= 0) {
      add_unknown();
      symbols.push_back({id, 0, 0, false});
      continue;
    }
    bool plain = prefix_.empty() && suffix_.empty();
    if (add_bytes(plain ? piece.substr(begin, end - begin) : scratch.text, scratch)) continue;
    if (!unknown_) continue;  // without an unknown token, such characters are dropped
    if (*unknown_ < 0) {
      throw Error(WHERRY_INVALID_ARGUMENT,
                  concat("the tokenizer has no token for \"", piece.substr(begin, end - begin),
                         "\", and its vocabulary lacks its unk_token"));
    }
    if (!fuse_unknown_) add_unknown();
    unknown = true;
  }
  add_unknown();
  for (size_t i = 0; i < symbols.size(); ++i) {
    symbols[i].before = static_cast<int32_t>(i) - 1;
    symbols[i].behind = i + 1 < symbols.size() ? static_cast<int32_t>(i) + 1 : -1;
  }
}

void Bpe::merge(Scratch& scratch) const {
  auto& symbols = scratch.symbols;
  auto& heap = scratch.heap;
  heap.clear();
  auto consider = [&](int32_t left) {
    const auto& symbol = symbols[static_cast<size_t>(left)];
    const Merges::Merge* match =
        merges_.find(symbol.id, symbols[static_cast<size_t>(symbol.behind)].id);
    if (match) heap.push_back({match->rank, static_cast<uint32_t>(left), match->merged});
    return match != nullptr;
  };
  for (size_t i = 0; i + 1 < symbols.size(); ++i) consider(static_cast<int32_t>(i));
  std::make_heap(heap.begin(), heap.end(), later);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), later);
    Scratch::Merge top = heap.back();
    heap.pop_back();
    auto& left = symbols[top.at];
    if (left.gone || left.behind < 0) continue;
    auto& right = symbols[static_cast<size_t>(left.behind)];
    const Merges::Merge* still = merges_.find(left.id, right.id);
    if (!still || still->merged != top.merged) continue;  // one of the two tokens has changed since
    left.id = top.merged;
    left.behind = right.behind;
    right.gone = true;
    auto here = static_cast<int32_t>(top.at);
    if (left.behind >= 0) symbols[static_cast<size_t>(left.behind)].before = here;
    if (left.before >= 0 && consider(left.before)) std::push_heap(heap.begin(), heap.end(), later);
    if (left.behind >= 0 && consider(here)) std::push_heap(heap.begin(), heap.end(), later);
  }
}

void Bpe::encode(std::string_view piece, std::vector<int32_t>& ids, Scratch& scratch) const {
  if (ignore_merges_) {
    if (int32_t id = vocabulary_.find(piece); id >= 0) {
      ids.push_back(id);
      return;
    }
  }
  split(piece, scratch);
  merge(scratch);
  for (const auto& symbol : scratch.symbols) {
    if (!symbol.gone) ids.push_back(symbol.id);
  }
}

}  // namespace wherry::text
