// Values with behaviour: callable, iterable or mutable objects.
#ifndef WHERRY_APP_TEMPLATE_OBJECTS_H_
#define WHERRY_APP_TEMPLATE_OBJECTS_H_

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/value/code_points.h"
#include "app/value/value.h"

namespace wherry::jinja {

using namespace json;
using namespace unicode;

class Budget;

// The arguments of a call, a filter or a test.
struct Arguments {
  Values positional;
  std::vector<std::pair<std::string, Value>> named;

  const Value* by_name(std::string_view name) const;
};

// Assigns arguments to a function's parameters, as Python does; missing arguments are null
// pointers. A parameter whose name ends with "=" is optional.
class Bound {
 public:
  Bound(const Arguments& given, std::initializer_list<const char*> parameters);
  const Value* operator[](size_t i) const { return values_[i]; }
  Value or_else(size_t i, Value otherwise) const { return values_[i] ? *values_[i] : otherwise; }

 private:
  std::vector<const Value*> values_;
};

struct Function : Object {
  const char* type = "function";
  std::string name;
  std::function<Value(Budget&, const Arguments&)> call;
  std::vector<std::pair<std::string, Value>> attributes;

  const char* type_name() const override { return type; }
  std::string repr() const override;
};

Value make_function(std::string name, std::function<Value(Budget&, const Arguments&)> call,
                    const char* type = "function");

using Next = std::function<bool(Value&)>;  // sets the next item; returns false at the end

struct Iterator : Object {
  const char* type = "generator";
  Next next;

  const char* type_name() const override { return type; }
  std::string repr() const override { return std::string("<") + type + " object>"; }
};

Value make_iterator(Next next, const char* type = "generator");
// Returns an iterator that starts when its first item is requested, so that errors appear at the
// same point as with Python's generators.
Value make_generator(std::function<Next()> begin);

// The variable `loop` of a for loop.
struct Loop : Object {
  mutable Next source;
  mutable std::optional<Value> after;  // the item that `peek` has read ahead
  mutable std::optional<Value> before, current, changed;
  mutable int64_t index0 = -1;
  mutable std::optional<int64_t> length;
  int64_t depth0 = 0;
  // Renders the loop over other items, for recursive loops.
  std::function<Value(const Value& items, int64_t depth0)> recurse;

  bool take(Value& item) const;
  bool peek() const;  // whether another item follows, which `after` then contains
  int64_t count() const;

  const char* type_name() const override { return "LoopContext"; }
  std::string repr() const override;
};

// Returns an iterator over a list, a text, the keys of a dictionary, ...; fails for other values.
Next iterate(const Value& value);
// Returns the length; fails for values without a length, as len() does.
int64_t length_of(const Value& value);
bool has_length(const Value& value);

}  // namespace wherry::jinja

#endif  // WHERRY_APP_TEMPLATE_OBJECTS_H_
