// A loaded model with the app (wherry_app) that runs it.
#ifndef WHERRY_APP_LITE_MODEL_H_
#define WHERRY_APP_LITE_MODEL_H_

#include <memory>
#include <string>

#include "app/lite/answer.h"
#include "app/lite/arguments.h"

namespace wherry::lite {

class Model {
 public:
  // Loads the model that the command line names. Throws std::runtime_error.
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
  bool reads_images() const { return reads_images_; }

 private:
  wherry_app* app_ = nullptr;
  std::string name_;
  int64_t context_ = 0;
  bool reads_images_ = false;
};

// Returns the value at a path like "choices/0/text" of JSON; null if there is none.
const Value* find(const Value& value, std::string_view path);
// Returns "" if there is no text at the path.
std::string text_at(const Value& value, std::string_view path);

}  // namespace wherry::lite

#endif  // WHERRY_APP_LITE_MODEL_H_
