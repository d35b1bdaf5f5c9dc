// The values that have a behaviour: what is called, gone through, or changes.
#ifndef WHERRY_ENGINE_APP_TEMPLATE_OBJECTS_H_
#define WHERRY_ENGINE_APP_TEMPLATE_OBJECTS_H_

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/template/value.h"

namespace wherry::jinja {

class Budget;

// What a call, a filter or a test is given.
struct Arguments {
  Values positional;
  std::vector<std::pair<std::string, Value>> named;

  const Value* by_name(std::string_view name) const;
};

// Puts arguments into the order of a function's parameters, as Python does; what is not given is a
// null pointer. A name that ends with "=" is optional.
class Bound {
 public:
  Bound(const char* function, const Arguments& given,
        std::initializer_list<const char*> parameters);
  const Value* operator[](size_t i) const { return found_[i]; }
  Value or_else(size_t i, Value otherwise) const { return found_[i] ? *found_[i] : otherwise; }

 private:
  std::vector<const Value*> found_;
};

struct Function : Object {
  const char* type = "function";
  std::string name;
  std::function<Value(Budget&, const Arguments&)> call;
  std::vector<std::pair<std::string, Value>> attributes;
};

Value make_function(std::string name, std::function<Value(Budget&, const Arguments&)> call,
                    const char* type = "function");

using Next = std::function<bool(Value&)>;  // false at the end

struct Iterator : Object {
  const char* type = "generator";
  Next next;
};

Value make_iterator(Next next, const char* type = "generator");
// One that is begun when its first item is asked for: what is wrong shows then, as with Python's
// generators.
Value make_generator(std::function<Next()> begin);

struct Namespace : Object {
  mutable std::vector<std::pair<std::string, Value>> attributes;
  const Value* find(std::string_view name) const;
  void set(std::string_view name, const Value& value) const;
};

// The `loop` of a loop.
struct Loop : Object {
  mutable Next source;
  mutable std::optional<Value> after;  // looked at, not taken yet
  mutable std::optional<Value> before, current, changed;
  mutable int64_t index0 = -1;
  mutable std::optional<int64_t> length;
  int64_t depth0 = 0;
  std::function<Value(const Value& items, int64_t depth0)> recurse;  // of recursive loops

  bool take(Value& item) const;
  bool peek() const;  // whether there is another item, in `after`
  int64_t count() const;
};

// Fails if the value is undefined, saying what is missing.
void use(const Value& value);
// Whatever can be gone through: lists, texts, dictionaries (their keys), ...; fails otherwise.
Next iterate(const Value& value);
// Its length if it has one; fails otherwise as len() does.
int64_t length_of(const Value& value);
bool has_length(const Value& value);

}  // namespace wherry::jinja

#endif  // WHERRY_ENGINE_APP_TEMPLATE_OBJECTS_H_
