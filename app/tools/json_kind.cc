// Classifies JSON without building values in memory.
#include "app/tools/json_value.h"
#include "app/value/json_scan.h"

namespace wherry::app {

namespace {

// Python's json module fails near its recursion limit of 1000.
constexpr int kDeepest = 900;

bool is_json_with(std::string_view text, bool constants) {
  return !json::json_error(text, {kDeepest, json::Halves::kKept, constants});
}

}  // namespace

char json_kind(std::string_view text) {
  if (!is_json_with(text, true)) return '\0';
  const size_t at = json::skip_blank(text, 0);
  switch (text[at]) {
    case '{':
      return 'o';
    case '[':
      return 'a';
    case '"':
      return 's';
    case 'n':
      return 'n';
    case 't':
    case 'f':
      return 'b';
    default:
      if (text.find_first_of("NI", at) != text.npos) return 'c';
      return text.find_first_of(".eE", at) != text.npos ? 'f' : 'i';
  }
}

bool is_json(std::string_view text) { return is_json_with(text, false); }

}  // namespace wherry::app
