// The output head of a model that generates no text; see src/wherry/artifact/head.py.
#ifndef WHERRY_APP_VECTORS_HEAD_H_
#define WHERRY_APP_VECTORS_HEAD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/request/fields.h"

namespace wherry::app {

enum class HeadKind { kText, kEmbedding, kScore, kClass };  // kText: the model generates text

enum class Activation { kSoftmax, kSigmoid, kIdentity };

struct Head {
  HeadKind kind = HeadKind::kText;
  bool writes_text = true;    // whether the model generates text, too
  bool normalize = true;      // scales embeddings to length 1
  int64_t max_tokens = 0;     // tokens of a text at most; 0: context
  bool reads_source = false;  // whether it is an encoder-decoder's, which writes a text of its own
  bool embeds = true;         // whether the compiled library computes embeddings
  int64_t size = 0;           // dimensions of an embedding; 0: unknown
  // Of a model with classes: their names, what makes probabilities of the logits, and the token
  // after which the second text of a pair begins (-1: the model has no segments).
  std::vector<std::string> labels;
  Activation activation = Activation::kSoftmax;
  int32_t separator = -1;
  int32_t yes = 0, no = 0;  // of a model that scores pairs: the tokens that say whether they match
  std::vector<std::pair<std::string, std::string>> prompts;  // by name; they precede texts
  std::optional<std::string> default_prompt;                 // name of the prompt of other texts

  // Returns the prompt of this name; null if there is none.
  const std::string* prompt(const std::string& name) const;
};

// Reads the content of wherry-head.json; an empty object is a model that generates text. path: the
// file's name in errors. Throws Error.
Head read_head(const Value& json, const std::string& path);

}  // namespace wherry::app

#endif  // WHERRY_APP_VECTORS_HEAD_H_
