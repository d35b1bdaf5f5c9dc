// A model's tokenizer, as its tokenizer.json says: text to ids and back.
//
// Written here, because no library does this from source that a phone's compiler takes (looked at
// in November 2026). `tokenizers` itself, and what wraps it, is Rust, without which the core is
// built everywhere. pytorch-tokenizers has BPE alone, of normalizers Replace and NFC, and brings
// RE2, PCRE2, Abseil and SentencePiece; sentencepiece reads its own format; llama.cpp knows a list
// of models by name. IREE's tokenizer comes nearest, but lacks NFKC, stands on IREE's own base,
// and is in no package as source. What is here is held to the answers of `tokenizers` 0.23
// (tests/app/test_tokenizer.py), its oddities included.
#ifndef WHERRY_ENGINE_APP_TEXT_TOKENIZER_H_
#define WHERRY_ENGINE_APP_TEXT_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace wherry {

// May be used by many threads at once: nothing in it changes after `read`.
class Tokenizer {
 public:
  // Throws Error(WHERRY_INVALID_ARGUMENT) with the path and the value of what it cannot read: bad
  // JSON, a missing field, a component of an unknown type. `tokenizer_json` is not needed later.
  static std::unique_ptr<Tokenizer> read(std::string_view tokenizer_json);
  ~Tokenizer();

  // Ids of a text in UTF-8, whose ill-formed parts become U+FFFD; `add_special_tokens` puts the
  // model's BOS and the like around them. Truncation and padding of the file are not applied.
  std::vector<int32_t> encode(std::string_view text, bool add_special_tokens) const;
  // The text of all ids together; unknown ids have none.
  std::string decode(const std::vector<int32_t>& ids, bool skip_special_tokens) const;

  std::optional<int32_t> id_of(std::string_view token) const;
  std::optional<std::string> token_of(int32_t id) const;  // its name: "Ġthe", "<|im_end|>"
  size_t vocab_size() const;                              // different tokens, added ones included
  int32_t largest_id() const;                             // -1 without any; ids may have gaps

  bool is_special(int32_t id) const;  // its text is skipped by decode
  bool is_text(int32_t id) const;     // known, and not special
  // The special token of a name; nothing if there is none.
  std::optional<int32_t> special_id(std::string_view name) const;
  // Bytes that one token stands for, maybe a part of a character; of special ones their name.
  std::string piece(int32_t id) const;

  struct Parts;  // the components, for the files of this folder
  const Parts& parts() const { return *parts_; }

 private:
  explicit Tokenizer(std::unique_ptr<const Parts> parts);
  std::unique_ptr<const Parts> parts_;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_APP_TEXT_TOKENIZER_H_
