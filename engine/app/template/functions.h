// Filters and tests by their names.
#ifndef WHERRY_ENGINE_APP_TEMPLATE_FUNCTIONS_H_
#define WHERRY_ENGINE_APP_TEMPLATE_FUNCTIONS_H_

#include <string_view>

#include "app/template/objects.h"

namespace wherry::jinja {

class Runtime;

struct Filter {
  const char* name;
  Value (*run)(Runtime&, const Value&, const Arguments&);
  bool outside = false;        // does not go through its value
  bool of_characters = false;  // takes a text for a list of its characters
  bool wide = false;           // its arguments are widths
};

struct Test {
  const char* name;
  bool (*run)(Runtime&, const Value&, const Arguments&);
};

const Filter* find_filter(std::string_view name);  // null: there is none
const Test* find_test(std::string_view name);

// The tables: of texts, of lists, and of the rest. Each ends with a name that is null.
extern const Filter kTextFilters[];
extern const Filter kListFilters[];
extern const Filter kPickFilters[];

// What goes through a list by an attribute ("a.b.0"), or by the items themselves.
class Getter {
 public:
  Getter(Runtime& runtime, const Value* attribute, const Value* otherwise = nullptr,
         bool ignore_case = false);
  Value operator()(const Value& item) const;

 private:
  Runtime& runtime_;
  bool whole_;  // the item itself
  Values path_;
  const Value* otherwise_;  // null: none; else held_
  Value held_;
  bool ignore_case_;
};

}  // namespace wherry::jinja

#endif  // WHERRY_ENGINE_APP_TEMPLATE_FUNCTIONS_H_
