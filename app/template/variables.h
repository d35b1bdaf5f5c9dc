// Finds the variables that a template reads and does not set itself.
#ifndef WHERRY_APP_TEMPLATE_VARIABLES_H_
#define WHERRY_APP_TEMPLATE_VARIABLES_H_

#include <set>
#include <string>

#include "app/template/syntax.h"

namespace wherry::jinja {

std::set<std::string> find_variables(const Program& program);

}  // namespace wherry::jinja

#endif  // WHERRY_APP_TEMPLATE_VARIABLES_H_
