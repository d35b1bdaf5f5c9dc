#include "app/chat/vision.h"

#include <stdexcept>

#include "support/error.h"

namespace wherry::app {

std::unique_ptr<Vision> read_vision(const json::Value& settings,
                                    const std::function<int64_t(const std::string& token)>& id_of) {
  auto result = std::make_unique<Vision>();
  try {
    result->processor = ImageProcessor::create(settings);
  } catch (const std::invalid_argument& error) {
    throw Error(WHERRY_INCOMPATIBLE, std::string("wherry-vision.json: ") + error.what());
  }
  const std::string& soft_token = result->processor->soft_token();
  result->token = static_cast<int32_t>(id_of(soft_token));
  if (result->token < 0) {
    throw Error(WHERRY_INCOMPATIBLE,
                "the tokenizer has no token " + soft_token + ", which stands for images");
  }
  return result;
}

}  // namespace wherry::app
