#include "app/grammar/grammars.h"

#include <algorithm>

#include "app/chat/request_error.h"
#include "app/text/parts.h"
#include "support/error.h"

namespace wherry::app {

namespace {

constexpr size_t kMostKept = 32;                 // grammars, and errors
constexpr size_t kMostBytes = size_t{32} << 20;  // of them together, beside the latest
constexpr size_t kLongestReason = 1000;          // bytes

std::string key_of(const Constraint& constraint) {
  std::string made = constraint.ebnf;
  for (const GrammarPart& part : constraint.parts) {
    made +=
        '\0' + part.rule + '\0' + static_cast<char>('0' + static_cast<int>(part.kind)) + part.text;
  }
  return made;
}

}  // namespace

HeldToPtr Grammars::compile(const Constraint& constraint) {
  const std::lock_guard lock(mutex_);
  const Kept& kept = found(constraint);
  if (kept.grammar) return kept.grammar;
  throw RequestError(constraint.param + " cannot be enforced: " + kept.reason, constraint.param,
                     "invalid_grammar");
}

void Grammars::forget() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  kept_.clear();
  compiler_.reset();
}

Grammars::Kept& Grammars::found(const Constraint& constraint) {
  std::string key = key_of(constraint);
  const auto known =
      std::find_if(kept_.begin(), kept_.end(), [&](const Kept& kept) { return kept.key == key; });
  if (known != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, known);
    return kept_.front();
  }
  kept_.push_front(made(constraint, std::move(key)));
  size_t bytes = 0, count = 0;
  for (auto kept = kept_.begin(); kept != kept_.end(); ++count) {
    bytes += kept->key.size() + (kept->grammar ? kept->grammar->bytes() : 0);
    const bool stays = count == 0 || (bytes <= kMostBytes && count < kMostKept);
    kept = stays ? std::next(kept) : kept_.erase(kept);
  }
  return kept_.front();
}

Grammars::Kept Grammars::made(const Constraint& constraint, std::string key) {
  if (!tokenizer_.parts().token_bytes) {
    throw RequestError(
        "Structured output needs a tokenizer whose tokens are bytes (byte-level BPE, or "
        "SentencePiece with byte fallback); this model's is of another kind",
        "", "unsupported_tokenizer");
  }
  if (!compiler_) compiler_ = make_grammar_compiler(tokenizer_, vocab_size_);
  if (!compiler_) {
    throw RequestError(constraint.param +
                           " needs a grammar that holds the output to it, and this program was "
                           "built without xgrammar. mobile/README.md says how to build one with it",
                       constraint.param, "unsupported_parameter");
  }
  try {
    return {std::move(key), compiler_->compile(constraint), ""};
  } catch (const Error& error) {
    std::string reason = error.what();
    if (reason.size() > kLongestReason) reason = reason.substr(0, kLongestReason) + " ...";
    return {std::move(key), nullptr, std::move(reason)};
  }
}

}  // namespace wherry::app
