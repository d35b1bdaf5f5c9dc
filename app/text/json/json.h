// Parses tokenizer.json lazily: a value is a position in the text, and only requested values become
// objects.
//
// Other code uses tvm-ffi's parser, but that parser makes a million short-lived objects of a
// vocabulary. A file of 20 MB (256k tokens, as many merges) takes 97 MB with it, while a phone has
// some 30 MB in addition to the weights.
#ifndef WHERRY_APP_TEXT_JSON_JSON_H_
#define WHERRY_APP_TEXT_JSON_JSON_H_

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
  // Parses `text`, which must be valid JSON, at most 64 levels deep, and must outlive the result.
  // All functions throw Error(WHERRY_INVALID_ARGUMENT) with the path of the value and the value.
  static Json parse(std::string_view text);

  bool is_null() const { return first() == 'n'; }
  bool is_object() const { return first() == '{'; }
  bool is_array() const { return first() == '['; }
  bool is_string() const { return first() == '"'; }

  void members(const std::function<void(std::string_view key, const Json& value)>& each) const;
  void elements(const std::function<void(const Json& value)>& each) const;
  std::vector<Json> elements() const;

  // Returns nothing if the field is missing or null.
  std::optional<Json> find(std::string_view key) const;
  Json at(std::string_view key) const;  // throws if the field is missing

  std::string string() const;
  int64_t integer() const;
  double number() const;
  bool boolean() const;
  char32_t character() const;  // reads a string of one character
  int32_t id() const;          // reads a token id, which is 0 to 2^24 - 1

  bool boolean_or(std::string_view key, bool otherwise) const;
  std::string string_or(std::string_view key, std::string otherwise) const;

  // Throws an error with the path of this value and the problem.
  [[noreturn]] void fail(const std::string& problem) const;

 private:
  Json(std::string_view text, size_t begin, size_t end) : text_(text), begin_(begin), end_(end) {}
  char first() const { return text_[begin_]; }
  void expect(bool right, const char* what) const;
  std::optional<Json> field(std::string_view key) const;  // the value may be null

  struct Fields;
  std::string_view text_;  // text of the whole file
  size_t begin_, end_;
  // Positions of the fields; created on the first access.
  mutable std::shared_ptr<const Fields> fields_;
};

// Upper bound on ids: a hundred times the number of tokens of the largest vocabulary.
inline constexpr int32_t kMostIds = 1 << 24;

}  // namespace wherry::text

#endif  // WHERRY_APP_TEXT_JSON_JSON_H_
