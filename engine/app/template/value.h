// The values of templates and of requests: those of JSON, and what templates make beside them.
//
// They behave as Python's: True == 1, dictionaries keep their order, texts are counted in code
// points. Lists and dictionaries never change once they are made (the sandbox forbids it), so their
// size, which the budget wants, is known with them, and no value can hold itself but through a
// namespace, which the renderer that made it empties.
#ifndef WHERRY_ENGINE_APP_TEMPLATE_VALUE_H_
#define WHERRY_ENGINE_APP_TEMPLATE_VALUE_H_

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace wherry::jinja {

// An error in a template's run. `type` is empty for what Jinja itself says, else a Python class.
class Failure : public std::runtime_error {
 public:
  Failure(std::string type, const std::string& message)
      : std::runtime_error(message), type_(std::move(type)) {}
  const std::string& type() const { return type_; }

 private:
  std::string type_;
};

[[noreturn]] void fail(const char* type, const std::string& message);
// Errors that Jinja would raise, and inputs that take too much.
[[noreturn]] void fail(const std::string& message);

enum class Kind : uint8_t {
  kUndefined,
  kNone,
  kBool,
  kInt,
  kFloat,
  kString,
  kList,
  kTuple,
  kDict,
  kRange,
  kView,      // a dictionary's keys, values or items
  kIterator,  // what is gone through once
  kNamespace,
  kFunction,
  kLoop,
};

struct Object {
  virtual ~Object() = default;
};

class Value {
 public:
  Value() : kind_(Kind::kNone), int_(0) {}
  Value(bool value) : kind_(Kind::kBool), int_(value) {}  // NOLINT: values are written as they are
  Value(int64_t value) : kind_(Kind::kInt), int_(value) {}
  Value(int value) : kind_(Kind::kInt), int_(value) {}
  Value(double value) : kind_(Kind::kFloat), float_(value) {}
  Value(std::string text);
  Value(std::string_view text) : Value(std::string(text)) {}
  Value(const char* text) : Value(std::string(text)) {}
  Value(Kind kind, std::shared_ptr<const Object> object)
      : kind_(kind), int_(0), object_(std::move(object)) {}
  static Value markup(std::string text);
  static Value size(size_t value) { return Value(static_cast<int64_t>(value)); }

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool is_none() const { return kind_ == Kind::kNone; }
  bool is_string() const { return kind_ == Kind::kString; }
  bool is_sequence() const { return kind_ == Kind::kList || kind_ == Kind::kTuple; }
  bool is_dict() const { return kind_ == Kind::kDict; }
  bool is_integer() const { return kind_ == Kind::kInt || kind_ == Kind::kBool; }
  bool is_number() const { return is_integer() || kind_ == Kind::kFloat; }

  // The caller has checked the kind.
  int64_t integer() const { return int_; }  // of bool, too
  double number() const { return kind_ == Kind::kFloat ? float_ : static_cast<double>(int_); }
  const std::string& text() const;
  size_t chars() const;                     // of a text
  bool is_markup() const;                   // a text that is known to be HTML
  const std::vector<Value>& items() const;  // of list and tuple
  const struct Dict& dict() const;
  template <typename T>
  const T& as() const {
    return static_cast<const T&>(*object_);
  }
  const std::shared_ptr<const Object>& object() const { return object_; }

 private:
  Kind kind_;
  union {
    int64_t int_;
    double float_;
  };
  std::shared_ptr<const Object> object_;
};

using Values = std::vector<Value>;

struct Str : Object {
  std::string text;
  size_t chars;
  bool markup = false;  // known to be HTML: what is added to it is escaped
};

constexpr int kDeepestValue = 500;  // containers in each other

struct Container : Object {
  size_t size = 2;  // characters, about; what it refers to twice counts twice
  int depth = 1;
  bool open = false;  // there are namespaces in it: they change, and `size` says nothing
  // Fails where there are too many levels.
  void holds(const Value& value);
};

struct List : Container {
  Values items;
};

struct Dict : Container {
  std::vector<std::pair<Value, Value>> items;     // in the order of their first mention
  std::unordered_multimap<size_t, size_t> index;  // hash -> place, of larger ones

  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
  const Value* find(const char* key) const { return find(std::string_view(key)); }
  void set(const Value& key, Value value);  // while it is made

 private:
  size_t place(const Value& key, size_t hash) const;
};

// A text that is missing: why, if it is used.
struct Missing : Object {
  std::string type;  // of the failure
  std::string message;
};

struct Range : Object {
  int64_t start, stop, step;
  int64_t length() const;
};

struct View : Object {
  char part;  // 'k', 'v' or 'i'
  Value of;
};

Value make_list(Values items);
Value make_tuple(Values items);
Value make_dict(std::vector<std::pair<Value, Value>> items);  // of equal keys the last value
Value undefined(const std::string& name);                     // "'x' is undefined"
Value undefined_because(const char* type, const std::string& message);

const char* type_name(const Value& value);  // Python's
bool truth(const Value& value);
bool equal(const Value& a, const Value& b);
// Negative, 0 or positive; fails for what has no order. `sign` is for the error: "<".
int compare(const Value& a, const Value& b, const char* sign);
size_t hash_of(const Value& value);  // fails for lists and dictionaries
size_t size_of(const Value& value);  // for the budget; fails for namespaces in each other

std::string to_string(const Value& value);  // str
// As Jinja's filter `escape`; of markup the text itself.
std::string escaped(const Value& value);
// A text that was made of another: markup if that was.
Value like(const Value& origin, std::string text);
std::string repr(const Value& value);
std::string repr_text(std::string_view text);
std::string float_text(double value);

}  // namespace wherry::jinja

#endif  // WHERRY_ENGINE_APP_TEMPLATE_VALUE_H_
