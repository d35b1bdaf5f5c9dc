// Apart from ebnf_rules.cc: what only reads outputs is linked without a tokenizer.
#include <string>

#include "app/grammar/ebnf_rules.h"

namespace wherry::app {

namespace {

std::vector<std::pair<std::string, int32_t>> special_of(const Tokenizer& tokenizer,
                                                        const std::vector<std::string>& names) {
  std::vector<std::pair<std::string, int32_t>> special;
  for (const std::string& name : names) {
    if (const auto id = tokenizer.special_id(name)) special.emplace_back(name, *id);
  }
  return special;
}

}  // namespace

EbnfRules::EbnfRules(const Tokenizer& tokenizer, const std::vector<std::string>& names)
    : Rules(special_of(tokenizer, names)) {
  for (int32_t id = 0; id <= tokenizer.largest_id(); ++id) {
    if (tokenizer.is_special(id)) special_ids_ += std::to_string(id) + ",";
  }
}

}  // namespace wherry::app
