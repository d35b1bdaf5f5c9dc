// A tokenizer's model, which converts a piece of text to ids: BPE, Unigram, WordPiece or WordLevel.
#ifndef WHERRY_APP_TEXT_MODEL_MODEL_H_
#define WHERRY_APP_TEXT_MODEL_MODEL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace wherry::text {

class Json;

// Buffers for the encoding of one text, reused for each piece.
struct Scratch {
  struct Symbol {
    int32_t id;
    int32_t before, behind;  // indices of the neighbours; -1 if there is none
    bool gone;
  };
  struct Merge {
    uint32_t rank, at;
    int32_t merged;
  };
  struct Path {
    double score;
    int32_t id;
    size_t begin;
    bool reached;
  };
  std::vector<Symbol> symbols;
  std::vector<Merge> heap;
  std::vector<Path> paths;
  std::vector<size_t> ends;
  std::string text;
};

class Model {
 public:
  virtual ~Model() = default;
  // Appends the ids of a non-empty piece. Throws Error if the model cannot encode the piece.
  virtual void encode(std::string_view piece, std::vector<int32_t>& ids, Scratch&) const = 0;
  virtual int32_t find(std::string_view token) const = 0;  // returns -1 if the token does not exist
  virtual std::optional<std::string_view> token(int32_t id) const = 0;
  virtual size_t size() const = 0;
  virtual int32_t largest_id() const = 0;
};

std::unique_ptr<Model> read_model(const Json& json);

}  // namespace wherry::text

#endif  // WHERRY_APP_TEXT_MODEL_MODEL_H_
