// A field of a format string, shared by `%5.2f` and `{:>5.2f}`.
#ifndef WHERRY_APP_TEMPLATE_FORMAT_FIELD_H_
#define WHERRY_APP_TEMPLATE_FORMAT_FIELD_H_

#include <cstdint>
#include <string>

#include "app/template/objects.h"

namespace wherry::jinja {

constexpr size_t kFormatFields = 10'000;  // maximum number of fields in one format

// The parsed options of a field.
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
// usual: the default alignment of a text, < or >.
std::string formatted_text(const FormatField& field, const std::string& text, char usual);
// Parses at most four digits at `at`.
int64_t format_digits(const std::string& text, size_t& at);

}  // namespace wherry::jinja

#endif  // WHERRY_APP_TEMPLATE_FORMAT_FIELD_H_
