// Adds special tokens, such as BOS, around a text's ids.
#ifndef WHERRY_APP_TEXT_STEPS_POST_PROCESSOR_H_
#define WHERRY_APP_TEXT_STEPS_POST_PROCESSOR_H_

#include <cstdint>
#include <vector>

namespace wherry::text {

class Json;

// Supports single texts; language models do not use pairs.
class PostProcessor {
 public:
  PostProcessor() = default;  // adds nothing
  explicit PostProcessor(const Json& json) { read(json); }

  std::vector<int32_t> apply(std::vector<int32_t> ids, bool add_special_tokens) const;

 private:
  struct Item {
    bool text;  // inserts the ids so far, else its own ids
    std::vector<int32_t> ids;
  };
  void read(const Json& json);
  std::vector<Item> read_template(const Json& json) const;

  std::vector<std::vector<Item>> steps_;
};

}  // namespace wherry::text

#endif  // WHERRY_APP_TEXT_STEPS_POST_PROCESSOR_H_
