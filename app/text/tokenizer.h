// A model's tokenizer, as defined by tokenizer.json: it converts text to ids and back.
//
// This is our own code because no library builds from source with a phone's C++ compiler alone (as
// of November 2026). `tokenizers` and its wrappers need Rust. pytorch-tokenizers supports only BPE
// with the normalizers Replace and NFC, and needs RE2, PCRE2, Abseil and SentencePiece;
// sentencepiece reads its own format; llama.cpp has a list of models by name. IREE's tokenizer
// comes closest, but lacks NFKC, depends on IREE's base library, and is not packaged as source. The
// results equal those of `tokenizers` 0.23 (tests/app/test_tokenizer.py), including its oddities.
#ifndef WHERRY_APP_TEXT_TOKENIZER_H_
#define WHERRY_APP_TEXT_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/text/steps/post_processor.h"

namespace wherry {

// A tokenizer. It is thread-safe, because nothing changes after `read`.
class Tokenizer {
 public:
  // Reads a tokenizer. Throws Error(WHERRY_INVALID_ARGUMENT) with the path and value of an
  // unsupported part: invalid JSON, a missing field, an unknown component. `tokenizer_json` need
  // not outlive the result.
  static std::unique_ptr<Tokenizer> read(std::string_view tokenizer_json);
  ~Tokenizer();

  // Encodes UTF-8 text; ill-formed parts become U+FFFD. add_special_tokens: whether to add BOS and
  // other special tokens. Ignores the file's truncation and padding.
  std::vector<int32_t> encode(std::string_view text, bool add_special_tokens) const;
  // Encodes two texts with the special tokens of a pair. Throws Error if the tokenizer has none.
  text::Pair encode_pair(std::string_view first, std::string_view second) const;
  // Decodes all ids together; ignores unknown ids.
  std::string decode(const std::vector<int32_t>& ids, bool skip_special_tokens) const;

  std::optional<int32_t> id_of(std::string_view token) const;
  // Returns the token's name, e.g. "Ġthe" or "<|im_end|>".
  std::optional<std::string> token_of(int32_t id) const;
  size_t vocab_size() const;   // returns the number of different tokens, including added ones
  int32_t largest_id() const;  // returns -1 if there are no ids; ids may have gaps

  bool is_special(int32_t id) const;  // whether decode can omit the token
  bool is_text(int32_t id) const;     // whether the id is known and not special
  // Returns the id of the special token with this name, if it exists.
  std::optional<int32_t> special_id(std::string_view name) const;
  // Returns the bytes of one token, which may be a part of a character; for a special token the
  // bytes of its name.
  std::string piece(int32_t id) const;

  struct Parts;  // the tokenizer's components, which only the files of this folder see
  const Parts& parts() const { return *parts_; }

 private:
  std::vector<int32_t> bare(std::string_view source) const;  // without special tokens around it
  explicit Tokenizer(std::unique_ptr<const Parts> parts);
  std::unique_ptr<const Parts> parts_;
};

}  // namespace wherry

#endif  // WHERRY_APP_TEXT_TOKENIZER_H_
