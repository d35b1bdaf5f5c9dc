#include "app/text/model/word_piece.h"

#include <algorithm>

#include "app/text/json/json.h"
#include "app/value/code_points.h"
#include "support/error.h"

namespace wherry::text {

using namespace unicode;

WordPiece::WordPiece(const Json& json, bool word_level) : word_level_(word_level) {
  json.at("vocab").members(
      [&](std::string_view token, const Json& id) { vocabulary_.add(token, id.id()); });
  vocabulary_.finish();
  unknown_name_ = json.at("unk_token").string();
  unknown_ = vocabulary_.find(unknown_name_);
  if (word_level) return;
  prefix_ = json.at("continuing_subword_prefix").string();
  Json longest = json.at("max_input_chars_per_word");
  if (longest.integer() < 0) longest.fail("it must be a number of characters");
  longest_ = static_cast<size_t>(longest.integer());
}

bool WordPiece::split(std::string_view piece, std::vector<int32_t>& ids,
                      std::string& buffer) const {
  if (count_code_points(piece) > longest_) return false;
  buffer = prefix_;
  buffer += piece;
  // Looks each part up together with its continuation prefix, which overwrites the bytes before
  // each part but the first.
  for (size_t begin = 0; begin < piece.size();) {
    int32_t id = -1;
    size_t most = begin == 0
                      ? vocabulary_.longest()
                      : vocabulary_.longest() - std::min(vocabulary_.longest(), prefix_.size());
    size_t end = std::min(piece.size(), begin + most);
    while (end > begin && end < piece.size() && is_continuation(piece[end])) --end;
    if (begin > 0) buffer.replace(begin, prefix_.size(), prefix_);
    for (; end > begin; end = before(piece, end)) {
      std::string_view part = piece.substr(0, end);
      if (begin > 0) part = std::string_view(buffer).substr(begin, prefix_.size() + end - begin);
      if ((id = vocabulary_.find(part)) >= 0) break;
    }
    if (id < 0) return false;
    ids.push_back(id);
    begin = end;
  }
  return true;
}

void WordPiece::encode(std::string_view piece, std::vector<int32_t>& ids, Scratch& scratch) const {
  size_t before = ids.size();
  if (word_level_) {
    int32_t id = vocabulary_.find(piece);
    if (id >= 0) {
      ids.push_back(id);
      return;
    }
  } else if (split(piece, ids, scratch.text)) {
    return;
  }
  ids.resize(before);
  if (unknown_ < 0) {
    throw Error(WHERRY_INVALID_ARGUMENT,
                concat("the tokenizer has no token for \"", piece.substr(0, 100),
                       "\", and its vocabulary lacks its unk_token \"", unknown_name_, "\""));
  }
  ids.push_back(unknown_);
}

}  // namespace wherry::text
