// Packed Unicode tables; tests/app/unicode_tables.py generates tables.cc.
#ifndef WHERRY_APP_VALUE_UNICODE_TABLES_H_
#define WHERRY_APP_VALUE_UNICODE_TABLES_H_

namespace wherry::unicode::tables {

extern const char kCategories[], kWords[], kPatternWords[], kSpaces[], kPunctuation[], kNumeric[],
    kMarks[], kNonspacing[], kControl[], kLower[], kUpper[], kTitle[], kFold[], kIsAlpha[],
    kIsDecimal[], kIsDigit[], kIsNumeric[], kIsUpper[], kIsLower[], kIsTitle[], kIsHidden[],
    kCanonical[], kCompatible[], kComposed[], kCombining[], kBreaks[];

}  // namespace wherry::unicode::tables

#endif  // WHERRY_APP_VALUE_UNICODE_TABLES_H_
