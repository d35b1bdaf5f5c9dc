// The filters and tests of templates, found by name.
#ifndef WHERRY_APP_TEMPLATE_FUNCTIONS_H_
#define WHERRY_APP_TEMPLATE_FUNCTIONS_H_

#include <string_view>

#include "app/template/objects.h"

namespace wherry::jinja {

class Runtime;

struct Filter {
  const char* name;
  Value (*run)(Runtime&, const Value&, const Arguments&);
  bool outside = false;        // true if the filter does not iterate over its value
  bool of_characters = false;  // true if the filter treats a text as a list of its characters
  bool wide = false;           // true if arguments are widths, to check against the budget
};

struct Test {
  const char* name;
  bool (*run)(Runtime&, const Value&, const Arguments&);
};

const Filter* find_filter(std::string_view name);  // returns null if the filter is unknown
const Test* find_test(std::string_view name);

// Tables of filters: for texts, for lists, and others. An entry with a null name ends each table.
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
  const Value* otherwise_;  // default value: null for none, else points to held_
  Value otherwise_value_;
  bool ignore_case_;
};

}  // namespace wherry::jinja

#endif  // WHERRY_APP_TEMPLATE_FUNCTIONS_H_
