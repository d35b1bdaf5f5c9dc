#include "app/grammar/refusals.h"

namespace wherry::app {

namespace {

constexpr size_t kLongestReason = 1000;  // bytes

}  // namespace

void require_token_bytes(const Tokenizer& tokenizer) {
  if (tokenizer.byte_rules()) return;
  throw RequestError(
      "Structured output needs a tokenizer whose tokens are bytes (byte-level BPE, or "
      "SentencePiece with byte fallback); this model's is of another kind",
      "", "unsupported_tokenizer");
}

RequestError cannot_enforce(const std::string& param, const std::string& reason) {
  const bool longer = reason.size() > kLongestReason;
  return RequestError(
      param + " cannot be enforced: " + reason.substr(0, kLongestReason) + (longer ? " ..." : ""),
      param, "invalid_grammar");
}

RequestError without_grammars(const std::string& param) {
  return RequestError(
      param +
          " needs a grammar that holds the output to it, and this program was built without "
          "xgrammar. mobile/README.md says how to build one with it",
      param, "unsupported_parameter");
}

}  // namespace wherry::app
