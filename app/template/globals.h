// Defines the global functions of every template: range, dict, namespace, raise_exception,
// strftime_now, ...
#ifndef WHERRY_APP_TEMPLATE_GLOBALS_H_
#define WHERRY_APP_TEMPLATE_GLOBALS_H_

#include <string_view>

#include "app/template/objects.h"

namespace wherry::jinja {

const Dict& globals();
bool is_global(std::string_view name);

}  // namespace wherry::jinja

#endif  // WHERRY_APP_TEMPLATE_GLOBALS_H_
