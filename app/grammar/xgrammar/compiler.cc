// Compiles grammars with xgrammar, which precomputes the masks of allowed tokens.
#include "app/grammar/compiler.h"

#include <dlpack/dlpack.h>
#include <xgrammar/compiler.h>
#include <xgrammar/exception.h>
#include <xgrammar/matcher.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "app/grammar/embedded.h"
#include "app/grammar/xgrammar/budget.h"
#include "matcher/mask.h"
#include "support/error.h"

namespace wherry::app {

namespace {

// Upper bounds on steps; see Budget.
constexpr int64_t kCompileSteps = 100'000'000, kTokenSteps = 20'000'000;
// Upper bound on the bytes of a grammar, including its parts.
constexpr size_t kMostRules = size_t{512} << 10;
constexpr size_t kMostMasks = size_t{256} << 20;  // upper bound on the bytes of a compiled grammar

// Calls `work` and turns xgrammar's exceptions into ours.
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

// Matches one request's output with xgrammar's state.
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

class Compiled : public CompiledGrammar {
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
  explicit Compiler(const std::vector<std::string>& vocabulary)
      : tokens_(vocabulary.size() - 1),
        vocabulary_(vocabulary, xgrammar::VocabType::RAW, std::nullopt,
                    std::vector<int32_t>{static_cast<int32_t>(tokens_)}),
        compiler_(vocabulary_, /*max_threads=*/1, /*cache_enabled=*/false) {}

  CompiledGrammarPtr compile(const Constraint& constraint,
                             const std::atomic<bool>& cancelled) override {
    const Budget budget(kCompileSteps, "to compile", &cancelled);
    return translated([&] {
      std::string ebnf = constraint.ebnf;
      for (const GrammarPart& part : constraint.parts) {
        const bool is_rules = part.kind == GrammarPart::Kind::kRules;
        ebnf += embedded(is_rules ? part.text : grammar_of(part).ToString(), part.rule);
        if (ebnf.size() > kMostRules) {
          throw Error(WHERRY_INVALID_ARGUMENT,
                      concat("it has more than ", kMostRules, " bytes as a grammar"));
        }
      }
      const xgrammar::Grammar grammar = xgrammar::Grammar::FromEBNF(ebnf);
      budget.check_warnings();
      auto result = std::make_shared<Compiled>(compiler_.CompileGrammar(grammar), tokens_);
      budget.check_warnings();
      if (result->bytes() > kMostMasks) {
        throw Error(WHERRY_INVALID_ARGUMENT, "it takes too much memory");
      }
      if (!result->begins()) {
        throw Error(WHERRY_INVALID_ARGUMENT, "no token of the vocabulary can begin it");
      }
      return result;
    });
  }

 private:
  xgrammar::Grammar grammar_of(const GrammarPart& part) const {
    return part.kind == GrammarPart::Kind::kEbnf
               ? xgrammar::Grammar::FromEBNF(part.text)
               : xgrammar::Grammar::FromLark(part.text, vocabulary_);
  }

  const size_t tokens_;
  const xgrammar::TokenizerInfo vocabulary_;
  xgrammar::GrammarCompiler compiler_;
};

}  // namespace

std::unique_ptr<GrammarCompiler> make_grammar_compiler(const std::vector<std::string>& vocabulary) {
  return translated([&] { return std::make_unique<Compiler>(vocabulary); });
}

}  // namespace wherry::app
