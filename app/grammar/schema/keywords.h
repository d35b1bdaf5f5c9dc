// The supported keywords of JSON Schema, as tables.
#ifndef WHERRY_APP_GRAMMAR_SCHEMA_KEYWORDS_H_
#define WHERRY_APP_GRAMMAR_SCHEMA_KEYWORDS_H_

#include <string_view>

namespace wherry::app {

// JSON types as bits. Integers and other numbers are separate types, and so are true and false.
enum Types : unsigned {
  kNull = 1,
  kTrue = 2,
  kFalse = 4,
  kInteger = 8,
  kBroken = 16,
  kText = 32,
  kList = 64,
  kObject = 128,
  kNumber = kInteger | kBroken,
  kAnyType = 255,
};

struct TypeName {
  std::string_view name;
  unsigned types;
};
constexpr TypeName kTypeNames[] = {{"null", kNull},       {"boolean", kTrue | kFalse},
                                   {"integer", kInteger}, {"number", kNumber},
                                   {"string", kText},     {"array", kList},
                                   {"object", kObject}};

// Keywords that are enforced, with the types that they apply to (0 means any type).
constexpr TypeName kKeywords[] = {{"$ref", 0},
                                  {"additionalItems", kList},
                                  {"additionalProperties", kObject},
                                  {"allOf", 0},
                                  {"anyOf", 0},
                                  {"const", 0},
                                  {"dependencies", kObject},
                                  {"dependentRequired", kObject},
                                  {"dependentSchemas", kObject},
                                  {"enum", 0},
                                  {"exclusiveMaximum", kNumber},
                                  {"exclusiveMinimum", kNumber},
                                  {"format", kText},
                                  {"if", 0},
                                  {"items", kList},
                                  {"maxItems", kList},
                                  {"maxLength", kText},
                                  {"maxProperties", kObject},
                                  {"maximum", kNumber},
                                  {"minItems", kList},
                                  {"minLength", kText},
                                  {"minProperties", kObject},
                                  {"minimum", kNumber},
                                  {"multipleOf", kNumber},
                                  {"not", 0},
                                  {"oneOf", 0},
                                  {"pattern", kText},
                                  {"patternProperties", kObject},
                                  {"prefixItems", kList},
                                  {"properties", kObject},
                                  {"propertyNames", kObject},
                                  {"required", kObject},
                                  {"type", 0},
                                  {"uniqueItems", kList}};

// Keywords that are rejected by name. All other names are annotations of JSON Schema or of a
// client, and constrain nothing.
constexpr std::string_view kRefused[] = {
    "$dynamicAnchor", "$dynamicRef", "$recursiveAnchor", "$recursiveRef",
    "contains",       "disallow",    "divisibleBy",      "extends",
    "maxContains",    "minContains", "unevaluatedItems", "unevaluatedProperties"};

struct Format {
  std::string_view name;
  const char* pattern;  // regular expression; null if the format is rejected
};
// The patterns follow RFC 3339 for dates (valid days of the month; no leap seconds, no year 0000),
// RFC 1123 for host names, and RFC 4291 for IPv6. Where parsers disagree, a pattern accepts only a
// part of what the RFC allows.
#define WHERRY_DATE                                                                        \
  "(?:(?:[0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)-"                             \
  "(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)" \
  "|02-(?:0[1-9]|1[0-9]|2[0-8]))"                                                          \
  "|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)-02-29)"
#define WHERRY_CLOCK "(?:[01][0-9]|2[0-3]):[0-5][0-9]"
#define WHERRY_TIME WHERRY_CLOCK ":[0-5][0-9](?:\\.[0-9]{1,9})?(?:Z|[+-]" WHERRY_CLOCK ")"
#define WHERRY_LABEL "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
#define WHERRY_BYTE "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
#define WHERRY_HEX "[0-9A-Fa-f]{1,4}"
constexpr Format kFormats[] = {
    {"date", "^" WHERRY_DATE "$"},
    {"date-time", "^" WHERRY_DATE "T" WHERRY_TIME "$"},
    {"time", "^" WHERRY_TIME "$"},
    {"duration",
     "^P(?:[0-9]{1,9}W|[0-9]{1,9}Y(?:[0-9]{1,9}M(?:[0-9]{1,9}D)?)?(?:T[0-9]{1,9}H)?"
     "|[0-9]{1,9}M(?:[0-9]{1,9}D)?|[0-9]{1,9}D"
     "|(?:[0-9]{1,9}D)?T(?:[0-9]{1,9}H(?:[0-9]{1,9}M(?:[0-9]{1,9}S)?)?"
     "|[0-9]{1,9}M(?:[0-9]{1,9}S)?|[0-9]{1,9}S))$"},
    {"email",
     "^[A-Za-z0-9_+-]+(?:\\.[A-Za-z0-9_+-]+)*@(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?\\.)+"
     "[A-Za-z]{2,24}$"},
    {"hostname", "^" WHERRY_LABEL "(?:\\." WHERRY_LABEL "){0,3}$"},
    {"ipv4", "^(?:" WHERRY_BYTE "\\.){3}" WHERRY_BYTE "$"},
    {"ipv6", "^(?:(?:" WHERRY_HEX ":){7}" WHERRY_HEX "|(?:" WHERRY_HEX ":){1,7}:|(?:" WHERRY_HEX
             ":){1,6}:" WHERRY_HEX "|(?:" WHERRY_HEX ":){1,5}(?::" WHERRY_HEX "){2}|(?:" WHERRY_HEX
             ":){1,4}(?::" WHERRY_HEX "){3}|::(?:" WHERRY_HEX ":){0,6}" WHERRY_HEX "|::)$"},
    {"uri",
     "^[A-Za-z][A-Za-z0-9+.-]*://(?:[A-Za-z0-9._~-]+)(?::[0-9]{1,5})?"
     "(?:/(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})*)*"
     "(?:\\?(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*)?"
     "(?:#(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*)?$"},
    {"uuid", "^[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$"},
    {"idn-email", nullptr},
    {"idn-hostname", nullptr},
    {"iri", nullptr},
    {"iri-reference", nullptr},
    {"json-pointer", nullptr},
    {"regex", nullptr},
    {"relative-json-pointer", nullptr},
    {"uri-reference", nullptr},
    {"uri-template", nullptr}};
#undef WHERRY_DATE
#undef WHERRY_CLOCK
#undef WHERRY_TIME
#undef WHERRY_LABEL
#undef WHERRY_BYTE
#undef WHERRY_HEX

}  // namespace wherry::app

#endif  // WHERRY_APP_GRAMMAR_SCHEMA_KEYWORDS_H_
