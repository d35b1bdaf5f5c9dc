// Grammars by xgrammar: which tokens may come next, in a compiled form that is made once.
#include <dlpack/dlpack.h>
#include <xgrammar/compiler.h>
#include <xgrammar/exception.h>
#include <xgrammar/matcher.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "app/grammar/embedded.h"
#include "app/grammar/grammars.h"
#include "app/grammar/xgrammar/budget.h"
#include "grammar/mask.h"
#include "support/error.h"

namespace wherry::app {

namespace {

// Steps, see Budget.
constexpr int64_t kCompileSteps = 100'000'000, kTokenSteps = 20'000'000;
constexpr char kSpecial = '\xff';                 // before a special token's name; in no text
constexpr size_t kMostRules = size_t{512} << 10;  // bytes of a grammar with all its parts
constexpr size_t kMostMasks = size_t{256} << 20;  // bytes of what is compiled

// Calls `work`; xgrammar's errors become ours.
template <typename Work>
auto translated(const Work& work) {
  try {
    return work();
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw Error(WHERRY_INVALID_ARGUMENT, "it takes too much memory");
  } catch (const std::exception& error) {
    throw Error(WHERRY_INVALID_ARGUMENT, error.what());
  }
}

// Bytes of each token, as grammars read them, and of the end behind them.
std::vector<std::string> vocabulary_of(const Tokenizer& tokenizer, int64_t vocab_size) {
  std::vector<std::string> made(static_cast<size_t>(vocab_size) + 1);
  for (int32_t id = 0; id < vocab_size; ++id) {
    std::string& text = made[static_cast<size_t>(id)];
    if (!tokenizer.token_of(id)) continue;
    text = tokenizer.piece(id);
    if (tokenizer.is_special(id)) {
      text.insert(text.begin(), kSpecial);
    } else if (text.find(kSpecial) != std::string::npos) {
      text.clear();  // no text has this byte
    }
  }
  made.back() = std::string(1, kSpecial);
  return made;
}

// One output on its way through a grammar.
class Match : public Matcher {
 public:
  Match(const xgrammar::CompiledGrammar& grammar, size_t tokens)
      : matcher_(grammar), tokens_(tokens) {}

  size_t tokens() const override { return tokens_; }
  size_t words() const override { return tokens_ / 32 + 1; }

  bool fill(uint32_t* bits) override {
    return guarded([&] {
      int64_t shape = static_cast<int64_t>(words());
      DLTensor tensor{};
      tensor.data = bits;
      tensor.device = {kDLCPU, 0};
      tensor.ndim = 1;
      tensor.dtype = {kDLInt, 32, 1};
      tensor.shape = &shape;
      matcher_.FillNextTokenBitmask(&tensor);
      return true;
    });
  }

  bool accept(uint32_t token) override {
    return guarded([&] { return matcher_.AcceptToken(static_cast<int32_t>(token)); });
  }

  bool rollback(size_t tokens) override {
    return guarded([&] {
      matcher_.Rollback(static_cast<int>(tokens));
      return true;
    });
  }

  bool stopped() override {
    if (!matcher_.IsCompleted()) return false;
    std::vector<uint32_t> bits(words());
    if (!fill(bits.data())) return false;
    bits[tokens_ / 32] &= ~(1u << tokens_ % 32);
    for (const uint32_t word : bits) {
      if (word != 0) return false;
    }
    return true;
  }

  bool accepting() override { return matcher_.IsCompleted(); }
  const char* error() const override { return error_.empty() ? nullptr : error_.c_str(); }

 private:
  template <typename Work>
  bool guarded(const Work& work) {
    const Budget budget(kTokenSteps, "to find the tokens that may come next");
    try {
      return work();
    } catch (const std::exception& error) {
      error_ = error.what();
      return false;
    }
  }

  xgrammar::GrammarMatcher matcher_;
  const size_t tokens_;
  std::string error_;
};

class Compiled : public HeldTo {
 public:
  Compiled(xgrammar::CompiledGrammar grammar, size_t tokens)
      : grammar_(std::move(grammar)), tokens_(tokens) {}

  wherry_mask mask(const std::vector<int32_t>& stop_ids) const override {
    return mask_record(
        std::make_unique<Mask>(std::make_unique<Match>(grammar_, tokens_), stop_ids));
  }
  size_t bytes() const override { return grammar_.MemorySizeBytes(); }

  bool begins() const {
    Match match(grammar_, tokens_);
    std::vector<uint32_t> bits(match.words());
    if (!match.fill(bits.data())) throw Error(WHERRY_INVALID_ARGUMENT, match.error());
    return std::any_of(bits.begin(), bits.end(), [](uint32_t word) { return word != 0; });
  }

 private:
  xgrammar::CompiledGrammar grammar_;
  size_t tokens_;
};

class Compiler : public GrammarCompiler {
 public:
  Compiler(const Tokenizer& tokenizer, int64_t vocab_size)
      : tokens_(static_cast<size_t>(vocab_size)),
        vocabulary_(vocabulary_of(tokenizer, vocab_size), xgrammar::VocabType::RAW, std::nullopt,
                    std::vector<int32_t>{static_cast<int32_t>(vocab_size)}),
        compiler_(vocabulary_, /*max_threads=*/1, /*cache_enabled=*/false) {}

  HeldToPtr compile(const Constraint& constraint, const std::atomic<bool>& unwanted) override {
    const Budget budget(kCompileSteps, "to compile", &unwanted);
    return translated([&] {
      std::string ebnf = constraint.ebnf;
      for (const GrammarPart& part : constraint.parts) {
        ebnf += embedded(without_escaped_names(grammar_of(part).ToString()), part.rule);
        if (ebnf.size() > kMostRules) {
          throw Error(WHERRY_INVALID_ARGUMENT,
                      concat("it has more than ", kMostRules, " bytes as a grammar"));
        }
      }
      const xgrammar::Grammar grammar = xgrammar::Grammar::FromEBNF(ebnf);
      budget.check_warnings();
      auto made = std::make_shared<Compiled>(compiler_.CompileGrammar(grammar), tokens_);
      budget.check_warnings();
      if (made->bytes() > kMostMasks) {
        throw Error(WHERRY_INVALID_ARGUMENT, "it takes too much memory");
      }
      if (!made->begins()) {
        throw Error(WHERRY_INVALID_ARGUMENT, "no token of the vocabulary can begin it");
      }
      return made;
    });
  }

 private:
  // JSON on one line with a space after ":" and ",": small models would go on with blanks for ever.
  xgrammar::Grammar grammar_of(const GrammarPart& part) const {
    switch (part.kind) {
      case GrammarPart::Kind::kSchema:
        return xgrammar::Grammar::FromJSONSchema(part.text, /*any_whitespace=*/false, std::nullopt,
                                                 std::nullopt, /*strict_mode=*/false);
      case GrammarPart::Kind::kEbnf:
        return xgrammar::Grammar::FromEBNF(part.text);
      default:
        return xgrammar::Grammar::FromLark(part.text, vocabulary_);
    }
  }

  const size_t tokens_;
  const xgrammar::TokenizerInfo vocabulary_;
  xgrammar::GrammarCompiler compiler_;
};

}  // namespace

std::unique_ptr<GrammarCompiler> make_grammar_compiler(const Tokenizer& tokenizer,
                                                       int64_t vocab_size) {
  return translated([&] { return std::make_unique<Compiler>(tokenizer, vocab_size); });
}

}  // namespace wherry::app
