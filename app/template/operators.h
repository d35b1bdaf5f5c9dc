// Operators, items and attributes of values, with Python's errors.
#ifndef WHERRY_APP_TEMPLATE_OPERATORS_H_
#define WHERRY_APP_TEMPLATE_OPERATORS_H_

#include <string>

#include "app/template/budget.h"
#include "app/template/objects.h"

namespace wherry::jinja {

Value binary(Budget& budget, const std::string& sign, const Value& a, const Value& b);
Value negative(const Value& value);
Value positive(const Value& value);
bool compared(Budget& budget, const std::string& sign, const Value& a, const Value& b);
bool contains(const Value& all, const Value& one);
Value slice(const Value& value, const Value& start, const Value& stop, const Value& step);
// Evaluate value.name and value[key] by the rules of Jinja's sandbox; undefined if the value has
// none.
Value attribute(const Value& value, const Value& name);
Value item(const Value& value, const Value& key);

// Returns what Python's getattr finds; nothing if there is no such method. methods.cc implements
// it.
std::optional<Value> method_of(const Value& owner, const std::string& name);
// Whether a list of a namespace has a method of this name that changes the list.
bool changes_lists(const std::string& name);
// Returns such a method. Values do not change, so the namespace gets a new list, as with
// `set ns.list = ns.list + [x]`. Kimi K2's templates in GGUF files need it.
Value changing_method(const Value& owner, const std::string& list, const std::string& name);

// Implement pattern % values, and pattern.format(...). escapes: values are
// HTML-escaped.
std::string percent(Budget& budget, const std::string& pattern, const Value& values,
                    bool escapes = false);
std::string braces(Budget& budget, const std::string& pattern, const Arguments& given);
std::string fixed(double value, int precision);  // formats as "%.*f"

int64_t to_integer(const Value& value);  // reads an index or width; fails if it is not an integer

}  // namespace wherry::jinja

#endif  // WHERRY_APP_TEMPLATE_OPERATORS_H_
