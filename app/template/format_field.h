// Formats one field of a format string; `%5.2f` and `{:>5.2f}` share it.
#ifndef WHERRY_APP_TEMPLATE_FORMAT_FIELD_H_
#define WHERRY_APP_TEMPLATE_FORMAT_FIELD_H_

#include <cstdint>
#include <string>

#include "app/template/objects.h"

namespace wherry::jinja {

constexpr size_t kFormatFields = 10'000;  // upper bound on the number of fields in one format

// The parsed options of a format field.
struct FormatField {
  std::string fill = " ";
  char align = 0;  // one of < > ^ =; 0 for the default alignment
  char sign = '-';
  bool alternate = false, comma = false, underscore = false;
  int64_t width = 0;
  int precision = -1;
  char type = 0;
};

std::string formatted_number(const FormatField& field, const Value& value);
// Formats a text. usual: the default alignment, < or >.
std::string formatted_text(const FormatField& field, const std::string& text, char usual);
// Parses at most four digits at `at`, and advances `at`.
int64_t format_digits(const std::string& text, size_t& at);

}  // namespace wherry::jinja

#endif  // WHERRY_APP_TEMPLATE_FORMAT_FIELD_H_
