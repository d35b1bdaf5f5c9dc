// A tokenizer as tokenizer.json defines it.
//
// This is our own code because no library builds from source with a phone's C++ compiler alone (as
// of November 2026). `tokenizers` and its wrappers need Rust. pytorch-tokenizers supports only BPE
// with the normalizers Replace and NFC, and needs RE2, PCRE2, Abseil and SentencePiece;
// sentencepiece reads its own format; llama.cpp has a list of models by name. IREE's tokenizer
// comes closest, but lacks NFKC, depends on IREE's base library, and is not packaged as source. The
// results equal those of `tokenizers` 0.23 (tests/app/test_tokenizer.py), including its oddities.
#ifndef WHERRY_APP_TEXT_JSON_TOKENIZER_H_
#define WHERRY_APP_TEXT_JSON_TOKENIZER_H_

#include <memory>

#include "app/text/tokenizer.h"

namespace wherry {

// Nothing changes after `read`.
class JsonTokenizer : public Tokenizer {
 public:
  // Reads a tokenizer. Throws Error(WHERRY_INVALID_ARGUMENT) with the path and value of an
  // unsupported part: invalid JSON, a missing field, an unknown component. `tokenizer_json` need
  // not outlive the result. The file's truncation and padding are ignored.
  static std::unique_ptr<JsonTokenizer> read(std::string_view tokenizer_json);
  ~JsonTokenizer() override;

  std::vector<int32_t> encode(std::string_view text, bool add_special_tokens) const override;
  text::Pair encode_pair(std::string_view first, std::string_view second) const override;
  std::string decode(const std::vector<int32_t>& ids, bool skip_special_tokens) const override;
  std::optional<int32_t> id_of(std::string_view token) const override;
  std::optional<std::string> token_of(int32_t id) const override;
  size_t vocab_size() const override;
  int32_t largest_id() const override;
  bool is_special(int32_t id) const override;
  std::string piece(int32_t id) const override;
  std::optional<text::ByteRules> byte_rules() const override;

 private:
  struct Parts;
  std::vector<int32_t> bare(std::string_view source) const;  // without special tokens around it
  explicit JsonTokenizer(std::unique_ptr<const Parts> parts);
  std::unique_ptr<const Parts> parts_;
};

}  // namespace wherry

#endif  // WHERRY_APP_TEXT_JSON_TOKENIZER_H_
