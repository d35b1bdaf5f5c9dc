#include "matcher/vocabulary.h"

#include <limits>
#include <vector>

#include "support/error.h"

namespace wherry {
namespace {

// The byte with which llguidance starts a special token's name.
constexpr uint8_t kSpecial = 0xff;
constexpr char kEnd[] = "\xff<|wherry_end|>";
constexpr size_t kMaxTokens = std::numeric_limits<int32_t>::max() - 1;

}  // namespace

Vocabulary::Vocabulary(const std::string& library, const uint8_t* bytes, const uint32_t* lengths,
                       size_t n)
    : api_(open_llguidance(library)), size_(n) {
  if (n == 0 || n > kMaxTokens) {
    throw Error(WHERRY_INVALID_ARGUMENT, concat("a vocabulary of ", n, " tokens"));
  }
  std::vector<uint32_t> sizes(lengths, lengths + n);
  std::vector<uint8_t> text;
  const uint8_t* next = bytes;
  for (uint32_t& size : sizes) {
    // This token is the byte 0xff alone, which no UTF-8 text contains, so no text can match it.
    if (size == 1 && *next == kSpecial) {
      size = 0;
      ++next;
    }
    text.insert(text.end(), next, next + size);
    next += size;
  }
  sizes.push_back(sizeof(kEnd) - 1);
  text.insert(text.end(), kEnd, kEnd + sizeof(kEnd) - 1);

  LlgTokenizerInit init{};
  init.struct_size = sizeof(init);
  init.vocab_size = static_cast<uint32_t>(sizes.size());
  init.tok_eos = end();
  init.token_lens = sizes.data();
  init.token_bytes = text.data();
  // Allows all token sequences that spell a text: no tokenization is canonical for a mask.
  init.use_approximate_greedy_tokenize_fn = true;
  char error[512] = "";
  tokenizer_ = api_.new_tokenizer(&init, error, sizeof(error));
  if (tokenizer_ == nullptr) throw Error(WHERRY_INVALID_ARGUMENT, error);
}

Vocabulary::~Vocabulary() { api_.free_tokenizer(tokenizer_); }

}  // namespace wherry
