// Mappings of characters to texts, such as lower case and decompositions.
#ifndef WHERRY_APP_VALUE_UNICODE_MAPPINGS_H_
#define WHERRY_APP_VALUE_UNICODE_MAPPINGS_H_

#include <string>
#include <unordered_map>

namespace wherry::unicode {

class Mappings {
 public:
  explicit Mappings(const char* table);
  // Returns nullptr if the character is unchanged.
  const std::u32string* find(char32_t code) const {
    auto it = map_.find(code);
    return it == map_.end() ? nullptr : &it->second;
  }
  const std::unordered_map<char32_t, std::u32string>& all() const { return map_; }

 private:
  std::unordered_map<char32_t, std::u32string> map_;
};

// Returns the lower cases of characters, each on its own.
const Mappings& lower_cases();

}  // namespace wherry::unicode

#endif  // WHERRY_APP_VALUE_UNICODE_MAPPINGS_H_
