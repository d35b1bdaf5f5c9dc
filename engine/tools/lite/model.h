// The model of a folder.
#ifndef WHERRY_ENGINE_TOOLS_LITE_MODEL_H_
#define WHERRY_ENGINE_TOOLS_LITE_MODEL_H_

#include <memory>
#include <string>

#include "tools/lite/answer.h"
#include "tools/lite/arguments.h"

namespace wherry::lite {

class Model {
 public:
  // Loads it. Throws std::runtime_error.
  explicit Model(const Arguments& typed);
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  std::shared_ptr<Answer> start(const std::string& request_json) const {
    return Answer::start(app_, request_json);
  }
  Value stats() const;
  const std::string& name() const { return name_; }
  int64_t context() const { return context_; }  // tokens
  // Tokens of the prompt that a chat request would have. Throws std::runtime_error.
  int64_t prompt_tokens(const Value& request) const;

 private:
  wherry_app* app_ = nullptr;
  std::string name_;
  int64_t context_ = 0;
};

// What lies at "choices/0/text" of JSON; null: nothing.
const Value* find(const Value& value, std::string_view path);
std::string text_at(const Value& value, std::string_view path);  // "" where there is none

}  // namespace wherry::lite

#endif  // WHERRY_ENGINE_TOOLS_LITE_MODEL_H_
