// Apart from rules.cc: what only reads outputs is linked without a tokenizer.
#include <algorithm>
#include <string>

#include "app/grammar/rules.h"

namespace wherry::app {

Rules::Rules(const Tokenizer& tokenizer, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (const auto id = tokenizer.special_id(name)) special_.emplace_back(name, *id);
  }
  std::stable_sort(special_.begin(), special_.end(),
                   [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
  for (int32_t id = 0; id <= tokenizer.largest_id(); ++id) {
    if (tokenizer.is_special(id)) special_ids_ += std::to_string(id) + ",";
  }
}

}  // namespace wherry::app
