// The values of requests, responses and templates: JSON's types, and types that templates create.
//
// They behave as Python's do: True == 1, dictionaries keep their order, texts are counted in code
// points. Lists and dictionaries are immutable once created (the sandbox of templates forbids
// changes, and a namespace gets a new list where its own changes), so their size, which the budget
// of a template needs, is known at creation. Only a namespace can form a reference cycle; the
// renderer that created the namespace clears it.
#ifndef WHERRY_APP_VALUE_VALUE_H_
#define WHERRY_APP_VALUE_VALUE_H_

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace wherry::json {

// The exception for text that is not JSON, and for an operation that a value does not have.
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

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
  kView,      // the keys, values or items of a dictionary
  kIterator,  // an iterator, which can be used once
  kNamespace,
  kFunction,
  kLoop,
};

struct Object {
  virtual ~Object() = default;
  // Python's name of the type, and repr(); of the kinds that templates define (iterators,
  // functions, loops), which are unknown here.
  virtual const char* type_name() const { return "object"; }
  virtual std::string repr() const { return ""; }
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

  // Access to the content; the caller must have checked the kind.
  int64_t integer() const { return int_; }  // also reads a bool
  double number() const { return kind_ == Kind::kFloat ? float_ : static_cast<double>(int_); }
  const std::string& text() const;
  size_t chars() const;                     // number of characters of a text
  bool is_markup() const;                   // whether the value is a text that is marked as HTML
  const std::vector<Value>& items() const;  // items of a list or tuple
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
  bool markup = false;  // marked as HTML: texts that are added to it are escaped
};

constexpr int kDeepestValue = 500;  // upper bound on nested containers

struct Container : Object {
  size_t size = 2;  // approximate characters; a value that is referred to twice counts twice
  int depth = 1;
  bool open = false;  // contains namespaces, which change, so `size` is not valid
  // Updates depth and size for an added value; fails beyond the maximum depth.
  void holds(const Value& value);
};

struct List : Container {
  Values items;
};

struct Dict : Container {
  std::vector<std::pair<Value, Value>> items;     // entries in the order of insertion
  std::unordered_multimap<size_t, size_t> index;  // hash -> position, for large dictionaries

  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
  const Value* find(const char* key) const { return find(std::string_view(key)); }
  void set(const Value& key, Value value);  // may be called only during construction

 private:
  size_t place(const Value& key, size_t hash) const;
};

// An undefined value, with the error that its use raises.
struct Missing : Object {
  std::string message;  // error message for its use
};

struct Range : Object {
  int64_t start, stop, step;
  int64_t length() const;
};

struct View : Object {
  char part;  // 'k' for keys, 'v' for values, 'i' for items
  Value of;

  Value item(size_t i) const;
};

// The only value that changes.
struct Namespace : Object {
  mutable std::vector<std::pair<std::string, Value>> attributes;
  const Value* find(std::string_view name) const;
  void set(std::string_view name, const Value& value) const;
};

Value make_list(Values items);
Value make_tuple(Values items);
Value make_dict(std::vector<std::pair<Value, Value>> items);  // of equal keys, the last one wins
Value undefined(const std::string& name);  // using the value fails with "'x' is undefined"
Value undefined_because(const std::string& message);
// Fails if the value is undefined; the error has the missing name.
void use(const Value& value);

const char* type_name(const Value& value);  // Python's name of the type
bool truth(const Value& value);
bool equal(const Value& a, const Value& b);
// Compares two values: returns a negative number, 0 or a positive one; fails for values without an
// order. sign: the operator to name in the error, such as "<".
int compare(const Value& a, const Value& b, const char* sign);
size_t hash_of(const Value& value);  // fails for lists and dictionaries
// Returns the size of a value for the budget; fails if namespaces are nested too deeply.
size_t size_of(const Value& value);

std::string to_string(const Value& value);  // equals Python's str(value)
// Escapes HTML as Jinja's filter `escape` does; markup remains unchanged.
std::string escaped(const Value& value);
// Returns the text, as markup if `origin` is markup.
Value like(const Value& origin, std::string text);
std::string repr(const Value& value);
std::string repr_text(std::string_view text);
std::string float_text(double value);

}  // namespace wherry::json

#endif  // WHERRY_APP_VALUE_VALUE_H_
