// Validates the fields of a request (app/data/request_fields.json). One error reports all problems.
#ifndef WHERRY_APP_REQUEST_FIELDS_H_
#define WHERRY_APP_REQUEST_FIELDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/value/value.h"

namespace wherry::app {

using json::Value;
using json::Values;

// Returns the path of a list item, such as "messages[0]".
std::string item(const std::string& list, size_t i);

// The bounds of a number; an unset bound does not apply.
struct Bounds {
  std::optional<double> at_least, above, at_most, below;
};

// Collects the problems of a request, one line for each field.
class Checker {
 public:
  void add(const std::string& where, const std::string& problem);
  void add_all(const Checker& other);
  size_t problems() const { return problems_.size(); }
  void raise() const;  // throws RequestError if there are problems

  // Convert a value, as leniently as pydantic ("5" becomes 5); add a problem and return nothing if
  // they cannot.
  std::optional<Value> integer(const std::string& where, const Value& value, const Bounds& bounds);
  std::optional<Value> number(const std::string& where, const Value& value, const Bounds& bounds);
  std::optional<Value> boolean(const std::string& where, const Value& value);
  std::optional<Value> text(const std::string& where, const Value& value, size_t longest = 0,
                            size_t shortest = 0);
  bool list(const std::string& where, const Value& value);
  bool object(const std::string& where, const Value& value);
  void missing(const std::string& where) { add(where, "is missing"); }
  // Returns whether the list has at most `limit` items; adds a problem if not.
  bool few(const std::string& where, const Value& value, size_t limit);

 private:
  bool within(const std::string& where, double value, const Bounds& bounds);

  std::vector<std::pair<std::string, std::string>> problems_;
};

// The validated fields of a request; a null field counts as missing.
class Fields {
 public:
  explicit Fields(Value object, std::vector<std::string> unknown = {})
      : object_(std::move(object)), unknown_(std::move(unknown)) {}

  bool has(std::string_view name) const { return find(name) != nullptr; }
  const Value* find(std::string_view name) const;  // returns null if the field is missing or null
  std::optional<double> number(std::string_view name) const;
  std::optional<int64_t> integer(std::string_view name) const;
  bool truth(std::string_view name) const;
  std::string text(std::string_view name) const;  // returns "" if the field is missing
  const Value& object() const { return object_; }
  // Returns the names of fields that were sent but that requests of this kind do not have.
  const std::vector<std::string>& unknown() const { return unknown_; }

 private:
  Value object_;
  std::vector<std::string> unknown_;
};

// Validates a chat request (with "messages") or a completion request (with "prompt"). Throws
// RequestError.
Fields checked_chat(const Value& request);
Fields checked_completion(const Value& request);
// Validate requests for embeddings, classes (both with "input"), rankings and scores. Throw
// RequestError.
Fields checked_embedding(const Value& request);
Fields checked_classify(const Value& request);
Fields checked_rerank(const Value& request);
Fields checked_score(const Value& request);

}  // namespace wherry::app

#endif  // WHERRY_APP_REQUEST_FIELDS_H_
