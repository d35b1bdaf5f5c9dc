// Filters and tests by name.
#ifndef WHERRY_APP_TEMPLATE_FUNCTIONS_H_
#define WHERRY_APP_TEMPLATE_FUNCTIONS_H_

#include <string_view>

#include "app/template/objects.h"

namespace wherry::jinja {

class Runtime;

struct Filter {
  const char* name;
  Value (*run)(Runtime&, const Value&, const Arguments&);
  bool outside = false;        // does not iterate over its value
  bool of_characters = false;  // treats a text as a list of its characters
  bool wide = false;           // its arguments are widths, to check against the budget
};

struct Test {
  const char* name;
  bool (*run)(Runtime&, const Value&, const Arguments&);
};

const Filter* find_filter(std::string_view name);  // null: unknown
const Test* find_test(std::string_view name);

// The tables of filters: for texts, for lists, and others. A null name ends each.
extern const Filter kTextFilters[];
extern const Filter kListFilters[];
extern const Filter kPickFilters[];

// Gets an attribute ("a.b.0") of an item, or the item itself if no attribute is given.
class Getter {
 public:
  Getter(Runtime& runtime, const Value* attribute, const Value* otherwise = nullptr,
         bool ignore_case = false);
  Value operator()(const Value& item) const;

 private:
  Runtime& runtime_;
  Values path_;
  const Value* otherwise_;  // null: none; else held_
  Value held_;
  bool ignore_case_;
};

}  // namespace wherry::jinja

#endif  // WHERRY_APP_TEMPLATE_FUNCTIONS_H_
