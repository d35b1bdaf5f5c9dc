// Post-processors: add special tokens, such as BOS, around a text's ids.
#ifndef WHERRY_APP_TEXT_STEPS_POST_PROCESSOR_H_
#define WHERRY_APP_TEXT_STEPS_POST_PROCESSOR_H_

#include <cstdint>
#include <vector>

namespace wherry::text {

class Json;

// Adds special tokens. Supports single texts only, because language models do not use pairs.
class PostProcessor {
 public:
  PostProcessor() = default;  // a default post-processor adds no tokens
  explicit PostProcessor(const Json& json) { read(json); }

  std::vector<int32_t> apply(std::vector<int32_t> ids, bool add_special_tokens) const;

 private:
  struct Item {
    bool text;  // true if the item inserts the text's ids, false for its own ids
    std::vector<int32_t> ids;
  };
  void read(const Json& json);
  std::vector<Item> read_template(const Json& json) const;

  std::vector<std::vector<Item>> steps_;
};

}  // namespace wherry::text

#endif  // WHERRY_APP_TEXT_STEPS_POST_PROCESSOR_H_
