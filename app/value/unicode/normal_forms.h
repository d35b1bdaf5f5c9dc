// Normalizes text to NFC, NFD, NFKC or NFKD (Unicode Standard Annex 15), in the Unicode version of
// `tokenizers`.
#ifndef WHERRY_APP_VALUE_UNICODE_NORMAL_FORMS_H_
#define WHERRY_APP_VALUE_UNICODE_NORMAL_FORMS_H_

#include <string>
#include <string_view>

namespace wherry::unicode {

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };

std::string normal_form(std::string_view text, NormalForm form);

}  // namespace wherry::unicode

#endif  // WHERRY_APP_VALUE_UNICODE_NORMAL_FORMS_H_
