// The tokenizer and the chat template of a host, which has libraries for both.
#ifndef WHERRY_APP_HOST_HOST_TEXT_H_
#define WHERRY_APP_HOST_HOST_TEXT_H_

#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "app/host/services.h"
#include "app/template/chat_template.h"
#include "app/text/tokenizer.h"

namespace wherry::app {

class HostTokenizer : public Tokenizer {
 public:
  // vocab_size, largest_id: as in Tokenizer.
  HostTokenizer(const Services& services, size_t vocab_size, int32_t largest_id,
                std::optional<text::ByteRules> rules)
      : services_(services), vocab_size_(vocab_size), largest_id_(largest_id), rules_(rules) {}

  std::vector<int32_t> encode(std::string_view text, bool add_special_tokens) const override {
    return services_.encode(text, add_special_tokens, -1);
  }
  std::vector<int32_t> encode_at_most(std::string_view text, bool add_special_tokens,
                                      int64_t limit) const override {
    return services_.encode(text, add_special_tokens, limit);
  }
  text::Pair encode_pair(std::string_view first, std::string_view second) const override;
  std::string decode(const std::vector<int32_t>& ids, bool skip_special_tokens) const override {
    return services_.decode(ids, skip_special_tokens);
  }
  std::optional<int32_t> id_of(std::string_view token) const override;
  std::optional<std::string> token_of(int32_t id) const override;
  size_t vocab_size() const override { return vocab_size_; }
  int32_t largest_id() const override { return largest_id_; }
  bool is_special(int32_t id) const override { return token(id).kind == WHERRY_HOST_SPECIAL; }
  std::string piece(int32_t id) const override { return token(id).piece; }
  std::optional<text::ByteRules> byte_rules() const override { return rules_; }

 private:
  struct Token {
    int kind;
    std::string piece, name;
  };
  // The host is asked once for each token; references stay valid.
  const Token& token(int32_t id) const;

  const Services& services_;
  const size_t vocab_size_;
  const int32_t largest_id_;
  const std::optional<text::ByteRules> rules_;
  mutable std::mutex mutex_;
  mutable std::unordered_map<int32_t, Token> tokens_;
};

class HostTemplate : public jinja::ChatTemplate {
 public:
  // which: the template's number for the host.
  HostTemplate(const Services& services, int which, std::string source,
               std::set<std::string> variables)
      : services_(services),
        which_(which),
        source_(std::move(source)),
        variables_(std::move(variables)) {}

  std::string render(const json::Value& messages, bool add_generation_prompt,
                     const json::Value& variables,
                     const std::function<bool()>& gone) const override;
  const std::string& source() const override { return source_; }
  const std::set<std::string>& variables() const override { return variables_; }

 private:
  const Services& services_;
  const int which_;
  const std::string source_;
  const std::set<std::string> variables_;
};

}  // namespace wherry::app

#endif  // WHERRY_APP_HOST_HOST_TEXT_H_
