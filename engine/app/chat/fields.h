// The fields of a request, checked as runtime_py/request checks them: all that is wrong is one
// error, in the same words.
#ifndef WHERRY_ENGINE_APP_CHAT_FIELDS_H_
#define WHERRY_ENGINE_APP_CHAT_FIELDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/template/value.h"

namespace wherry::app {

using jinja::Value;
using jinja::Values;

// Bounds of a number; what is missing does not bound it.
struct Bounds {
  std::optional<double> at_least, above, at_most, below;
};

// Gathers what is wrong, a line for each place.
class Checker {
 public:
  void add(const std::string& where, const std::string& problem);
  void add_all(const Checker& other);
  size_t problems() const { return problems_.size(); }
  void raise() const;  // RequestError unless there is nothing

  // The value in the form that is asked for, as lenient as pydantic ("5" is 5); nothing, with a
  // problem added, where it is no such thing.
  std::optional<Value> integer(const std::string& where, const Value& value, const Bounds& bounds);
  std::optional<Value> number(const std::string& where, const Value& value, const Bounds& bounds);
  std::optional<Value> boolean(const std::string& where, const Value& value);
  std::optional<Value> text(const std::string& where, const Value& value, size_t longest = 0,
                            size_t shortest = 0);
  bool list(const std::string& where, const Value& value);
  bool object(const std::string& where, const Value& value, const char* model = nullptr);
  // More than `limit` of `what` ("messages").
  bool few(const std::string& where, const Value& value, size_t limit, const char* what);

 private:
  bool within(const std::string& where, double value, const Bounds& bounds);

  std::vector<std::pair<std::string, std::string>> problems_;
};

// A request whose fields are checked; null is as good as missing.
class Fields {
 public:
  explicit Fields(Value object) : object_(std::move(object)) {}

  bool has(std::string_view name) const { return find(name) != nullptr; }
  const Value* find(std::string_view name) const;  // null where it is missing or null
  std::optional<double> number(std::string_view name) const;
  std::optional<int64_t> integer(std::string_view name) const;
  bool truth(std::string_view name) const;
  std::string text(std::string_view name) const;  // "" where it is missing
  const Value& object() const { return object_; }

 private:
  Value object_;
};

// The fields of a chat ("messages") or of a completion ("prompt"). Throws RequestError.
Fields checked_chat(const Value& request);
Fields checked_completion(const Value& request);

}  // namespace wherry::app

#endif  // WHERRY_ENGINE_APP_CHAT_FIELDS_H_
