#include "app/text/json_tokenizer.h"

#include <algorithm>

#include "app/text/json/json.h"
#include "app/text/model/model.h"
#include "app/text/model/vocabulary.h"
#include "app/text/steps/added_tokens.h"
#include "app/text/steps/decoder.h"
#include "app/text/steps/normalizer.h"
#include "app/text/steps/post_processor.h"
#include "app/text/steps/pre_tokenizer.h"
#include "app/text/token_bytes.h"
#include "app/value/code_points.h"

namespace wherry {

namespace {

// A cache of the words of one text: it finds the ids of a repeated word in the ids so far.
class SeenWords {
 public:
  explicit SeenWords(size_t pieces) {
    size_t n = 16;
    while (n < pieces && n < kMost) n *= 2;
    slots_.resize(n);
  }

  // Copies the ids of a cached word; returns false if the word is not in the cache.
  bool copy(std::string_view word, uint64_t hash, std::vector<int32_t>& ids) const {
    const Slot& slot = slots_[hash & (slots_.size() - 1)];
    if (slot.hash != hash || slot.word != word) return false;
    for (size_t i = slot.begin; i < slot.end; ++i) ids.push_back(ids[i]);
    return true;
  }
  void add(std::string_view word, uint64_t hash, size_t begin, size_t end) {
    slots_[hash & (slots_.size() - 1)] = {hash, word, begin, end};
  }

  static constexpr size_t kLongest = 256;  // upper bound on the bytes of a cached word

 private:
  static constexpr size_t kMost = 1 << 13;
  struct Slot {
    uint64_t hash = 0;
    std::string_view word;
    size_t begin = 0, end = 0;
  };
  std::vector<Slot> slots_;
};

}  // namespace

struct JsonTokenizer::Parts {
  std::unique_ptr<const text::Model> model;
  // May be nullptr, which leaves texts as they are.
  std::unique_ptr<const text::Normalizer> normalizer;
  std::unique_ptr<const text::AddedTokens> added;
  // May be nullptr, which leaves pieces whole.
  std::unique_ptr<const text::PreTokenizer> pre_tokenizer;
  text::PostProcessor post_processor;
  std::unique_ptr<const text::Decoder> decoder;  // nullptr joins the tokens' names with spaces
  std::optional<text::TokenBytes> token_bytes;
};

JsonTokenizer::JsonTokenizer(std::unique_ptr<const Parts> parts) : parts_(std::move(parts)) {}
JsonTokenizer::~JsonTokenizer() = default;

std::unique_ptr<JsonTokenizer> JsonTokenizer::read(std::string_view tokenizer_json) {
  auto json = text::Json::parse(tokenizer_json);
  if (auto version = json.find("version"); version && version->string() != "1.0") {
    version->fail("1.0 is known");
  }
  auto parts = std::make_unique<Parts>();
  parts->model = text::read_model(json.at("model"));
  if (auto own = json.find("normalizer")) parts->normalizer = text::read_normalizer(*own);
  auto tokens = json.find("added_tokens");
  parts->added = std::make_unique<text::AddedTokens>(tokens ? &*tokens : nullptr, *parts->model,
                                                     parts->normalizer.get());
  if (auto own = json.find("pre_tokenizer")) parts->pre_tokenizer = text::read_pre_tokenizer(*own);
  if (auto own = json.find("post_processor")) parts->post_processor = text::PostProcessor(*own);
  if (auto own = json.find("decoder")) {
    parts->decoder = text::read_decoder(*own);
    parts->token_bytes = text::token_bytes_of(*own);
  }
  return std::unique_ptr<JsonTokenizer>(new JsonTokenizer(std::move(parts)));
}

std::vector<int32_t> JsonTokenizer::encode(std::string_view source, bool add_special_tokens) const {
  return parts_->post_processor.apply(bare(source), add_special_tokens);
}

text::Pair JsonTokenizer::encode_pair(std::string_view first, std::string_view second) const {
  return parts_->post_processor.apply(bare(first), bare(second));
}

std::vector<int32_t> JsonTokenizer::bare(std::string_view source) const {
  std::string mended;
  if (!unicode::is_well_formed(source)) source = mended = unicode::well_formed(source);
  text::Pieces pieces = parts_->added->split(source, parts_->normalizer.get());
  if (parts_->pre_tokenizer) parts_->pre_tokenizer->apply(pieces);
  std::vector<int32_t> ids;
  text::Scratch scratch;
  SeenWords seen(pieces.list.size());
  for (const text::Piece& piece : pieces.list) {
    if (piece.id >= 0) {
      ids.push_back(piece.id);
      continue;
    }
    std::string_view word = pieces.of(piece);
    if (word.size() > SeenWords::kLongest) {
      parts_->model->encode(word, ids, scratch);
      continue;
    }
    uint64_t hash = text::hash_of(word);
    if (seen.copy(word, hash, ids)) continue;
    size_t begin = ids.size();
    parts_->model->encode(word, ids, scratch);
    seen.add(word, hash, begin, ids.size());
  }
  return ids;
}

std::string JsonTokenizer::decode(const std::vector<int32_t>& ids, bool skip_special_tokens) const {
  std::vector<std::string> tokens;
  for (int32_t id : ids) {
    auto name = token_of(id);
    if (!name || (skip_special_tokens && parts_->added->is_special_name(*name))) continue;
    tokens.push_back(std::move(*name));
  }
  if (parts_->decoder) parts_->decoder->apply(tokens);
  std::string result;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (!parts_->decoder && i > 0) result += ' ';
    result += tokens[i];
  }
  return result;
}

std::optional<int32_t> JsonTokenizer::id_of(std::string_view token) const {
  int32_t id = parts_->added->find(token);
  if (id < 0) id = parts_->model->find(token);
  return id < 0 ? std::nullopt : std::optional<int32_t>(id);
}

std::optional<std::string> JsonTokenizer::token_of(int32_t id) const {
  auto name = parts_->added->name(id);
  if (!name) name = parts_->model->token(id);
  return name ? std::optional<std::string>(*name) : std::nullopt;
}

size_t JsonTokenizer::vocab_size() const {
  return parts_->model->size() + parts_->added->beyond(*parts_->model);
}

int32_t JsonTokenizer::largest_id() const {
  return std::max(parts_->model->largest_id(), parts_->added->largest_id());
}

bool JsonTokenizer::is_special(int32_t id) const { return parts_->added->is_special(id); }

std::optional<text::ByteRules> JsonTokenizer::byte_rules() const {
  if (!parts_->token_bytes) return std::nullopt;
  return text::ByteRules{parts_->token_bytes->each_byte(), parts_->token_bytes->strip};
}

std::string JsonTokenizer::piece(int32_t id) const {
  if (is_special(id)) return *token_of(id);
  if (!parts_->token_bytes) return decode({id}, true);
  auto name = token_of(id);
  return name ? parts_->token_bytes->of(*name) : "";
}

}  // namespace wherry
