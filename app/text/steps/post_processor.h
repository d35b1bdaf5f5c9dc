// Post-processors: add special tokens, such as BOS, around a text's ids.
#ifndef WHERRY_APP_TEXT_STEPS_POST_PROCESSOR_H_
#define WHERRY_APP_TEXT_STEPS_POST_PROCESSOR_H_

#include <cstdint>
#include <vector>

#include "app/text/tokenizer.h"

namespace wherry::text {

class Json;

class PostProcessor {
 public:
  PostProcessor() = default;  // a default post-processor adds no tokens
  explicit PostProcessor(const Json& json) { read(json); }

  std::vector<int32_t> apply(std::vector<int32_t> ids, bool add_special_tokens) const;
  // Returns two texts with the special tokens of a pair. Throws Error if several steps add some.
  Pair apply(const std::vector<int32_t>& first, const std::vector<int32_t>& second) const;

 private:
  struct Item {
    int32_t text;  // the text whose ids the item inserts, 0 or 1; -1 for its own ids
    std::vector<int32_t> ids;
    int32_t segment = 0;
  };
  struct Step {
    std::vector<Item> single, pair;
  };
  void read(const Json& json);
  std::vector<Item> read_template(const Json& json, const char* name) const;

  std::vector<Step> steps_;
};

}  // namespace wherry::text

#endif  // WHERRY_APP_TEXT_STEPS_POST_PROCESSOR_H_
