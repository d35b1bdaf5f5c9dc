// A field of a format: what `%5.2f` and `{:>5.2f}` have in common.
#ifndef WHERRY_ENGINE_APP_TEMPLATE_FORMAT_FIELD_H_
#define WHERRY_ENGINE_APP_TEMPLATE_FORMAT_FIELD_H_

#include <cstdint>
#include <string>

#include "app/template/objects.h"

namespace wherry::jinja {

constexpr size_t kFormatFields = 10'000;  // of one format, at most

// What a field asks for, in both languages of formats.
struct FormatField {
  std::string fill = " ";
  char align = 0;  // < > ^ =
  char sign = '-';
  bool alternate = false, comma = false, underscore = false;
  int64_t width = 0;
  int precision = -1;
  char type = 0;
};

std::string formatted_number(const FormatField& field, const Value& value);
// `usual`: where a text stands that is told nothing: < or >.
std::string formatted_text(const FormatField& field, const std::string& text, char usual);
// Digits at `at`, at most four of them.
int64_t format_digits(const std::string& text, size_t& at);

}  // namespace wherry::jinja

#endif  // WHERRY_ENGINE_APP_TEMPLATE_FORMAT_FIELD_H_
