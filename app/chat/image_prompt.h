// The prompt of a chat: its text, its tokens, and the images in it.
#ifndef WHERRY_APP_CHAT_IMAGE_PROMPT_H_
#define WHERRY_APP_CHAT_IMAGE_PROMPT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "app/chat/chat_tools.h"
#include "app/chat/plan.h"

namespace wherry::app {

// The images of a request, each decoded and prepared once, when it is first used.
class RequestImages {
 public:
  // vision: null if the model reads text alone; must outlive the object.
  explicit RequestImages(const Vision* vision) : vision_(vision) {}

  // Throws RequestError for an image that cannot be read, or exceeds a limit.
  std::shared_ptr<const PreparedImage> prepared(const ImagePart& part);
  const Vision* vision() const { return vision_; }

 private:
  const Vision* const vision_;
  // By the value of the request that has the text, which lives as long as the request's fields.
  std::map<const json::Object*, std::shared_ptr<const PreparedImage>> prepared_;
};

struct ChatPrompt {
  std::string text;
  std::vector<int32_t> ids;
  std::shared_ptr<const PromptImages> images;  // null if there are none
};

// Returns the prompt of a chat. changes: as in ChatTools::rendered. Throws RequestError, or
// jinja::Abandoned if `gone` says that the client has left.
ChatPrompt prompt_of(const ChatTools& tools, const Model& model, RequestImages& images,
                     const std::function<bool()>& gone, bool add_special_tokens = false,
                     Texts* changes = nullptr);

}  // namespace wherry::app

#endif  // WHERRY_APP_CHAT_IMAGE_PROMPT_H_
