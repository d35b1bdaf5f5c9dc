// Finds the methods of Python's str by name.
#ifndef WHERRY_APP_TEMPLATE_TEXT_METHODS_H_
#define WHERRY_APP_TEMPLATE_TEXT_METHODS_H_

#include <string_view>

#include "app/template/budget.h"
#include "app/template/objects.h"

namespace wherry::jinja {

using TextMethod = Value (*)(Budget&, const Value& owner, const Arguments& given);

TextMethod find_text_method(std::string_view name);  // returns null if the method is unknown

}  // namespace wherry::jinja

#endif  // WHERRY_APP_TEMPLATE_TEXT_METHODS_H_
