// What is put around a text's ids: BOS and the like.
#ifndef WHERRY_ENGINE_APP_TEXT_STEPS_POST_PROCESSOR_H_
#define WHERRY_ENGINE_APP_TEXT_STEPS_POST_PROCESSOR_H_

#include <cstdint>
#include <vector>

namespace wherry::text {

class Json;

// For single texts; language models have no pairs.
class PostProcessor {
 public:
  PostProcessor() = default;  // adds nothing
  explicit PostProcessor(const Json& json) { read(json); }

  std::vector<int32_t> apply(std::vector<int32_t> ids, bool add_special_tokens) const;

 private:
  struct Item {
    bool text;  // the ids of what was before, else its own
    std::vector<int32_t> ids;
  };
  void read(const Json& json);
  std::vector<Item> read_template(const Json& json) const;

  std::vector<std::vector<Item>> steps_;
};

}  // namespace wherry::text

#endif  // WHERRY_ENGINE_APP_TEXT_STEPS_POST_PROCESSOR_H_
