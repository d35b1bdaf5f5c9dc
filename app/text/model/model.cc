#include "app/text/model/model.h"

#include "app/text/json/json.h"
#include "app/text/model/bpe.h"
#include "app/text/model/unigram.h"
#include "app/text/model/word_piece.h"

namespace wherry::text {

namespace {

// Returns the model's type. The first versions of the format name none, so it follows from the
// fields.
std::string type_of(const Json& json) {
  if (auto type = json.find("type")) return type->string();
  if (json.find("merges")) return "BPE";
  if (json.find("max_input_chars_per_word")) return "WordPiece";
  return json.find("unk_token") ? "WordLevel" : "Unigram";
}

}  // namespace

std::unique_ptr<Model> read_model(const Json& json) {
  std::string type = type_of(json);
  if (type == "BPE") return std::make_unique<Bpe>(json);
  if (type == "Unigram") return std::make_unique<Unigram>(json);
  if (type == "WordPiece") return std::make_unique<WordPiece>(json, false);
  if (type == "WordLevel") return std::make_unique<WordPiece>(json, true);
  json.at("type").fail("known are BPE, Unigram, WordPiece and WordLevel");
}

}  // namespace wherry::text
