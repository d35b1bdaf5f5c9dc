// tokenizer.json, read where it lies: a value is a place in the text, and only what is asked for
// becomes an object.
//
// Why not tvm-ffi's parser, as elsewhere: of a vocabulary it makes a million objects that are
// thrown away at once. A file of 20 MB (256k tokens, as many merges) takes 97 MB with it, where a
// phone has some 30 MB beside the weights.
#ifndef WHERRY_ENGINE_APP_TEXT_JSON_JSON_H_
#define WHERRY_ENGINE_APP_TEXT_JSON_JSON_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace wherry::text {

class Json {
 public:
  // The whole of `text`, which must be valid JSON, nest at most 64 levels deep, and outlive this.
  // Throws Error(WHERRY_INVALID_ARGUMENT), as all here: with the path of the value and the value.
  static Json parse(std::string_view text);

  bool is_null() const { return first() == 'n'; }
  bool is_object() const { return first() == '{'; }
  bool is_array() const { return first() == '['; }
  bool is_string() const { return first() == '"'; }

  void members(const std::function<void(std::string_view key, const Json& value)>& each) const;
  void elements(const std::function<void(const Json& value)>& each) const;
  std::vector<Json> elements() const;

  std::optional<Json> find(std::string_view key) const;  // nothing where it is null, too
  Json at(std::string_view key) const;                   // there, null or not

  std::string string() const;
  int64_t integer() const;
  double number() const;
  bool boolean() const;
  char32_t character() const;  // a string of one
  int32_t id() const;          // of a token: 0 to 2^24 - 1

  bool boolean_or(std::string_view key, bool otherwise) const;
  std::string string_or(std::string_view key, std::string otherwise) const;

  // Throws: what is at this place, and what is wrong with it.
  [[noreturn]] void fail(const std::string& problem) const;

 private:
  Json(std::string_view text, size_t begin, size_t end) : text_(text), begin_(begin), end_(end) {}
  char first() const { return text_[begin_]; }
  void expect(bool right, const char* what) const;
  std::optional<Json> field(std::string_view key) const;  // null or not

  struct Fields;
  std::string_view text_;  // the whole file
  size_t begin_, end_;
  mutable std::shared_ptr<const Fields> fields_;  // once one was asked for
};

inline constexpr int32_t kMostIds = 1 << 24;  // a hundred times what the largest vocabulary has

}  // namespace wherry::text

#endif  // WHERRY_ENGINE_APP_TEXT_JSON_JSON_H_
