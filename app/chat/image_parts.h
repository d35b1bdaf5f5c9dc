// The images among the contents of a chat's messages, and their places in the text of the prompt.
//
// A template writes a placeholder, such as "<image>", for each image, and a user may type the same.
// So images pass through the conversation as a random mark, and in all texts of the request a typed
// placeholder gets a mark inside: what the template's output then has of placeholders are those of
// images, in their order.
#ifndef WHERRY_APP_CHAT_IMAGE_PARTS_H_
#define WHERRY_APP_CHAT_IMAGE_PARTS_H_

#include <string>
#include <vector>

#include "app/chat/vision.h"
#include "app/request/fields.h"

namespace wherry::app {

// An image as the request has it.
struct ImagePart {
  Value url;
  std::string param;  // its path in the request
  Detail detail;
};

// Returns a text of 32 random characters that no request contains.
std::string new_mark();

// Returns the places of a text in another, from the left and without overlaps.
std::vector<size_t> places_of(const std::string& text, const std::string& within);

class ImageParts {
 public:
  // vision: null if the model reads text alone; must outlive the object.
  explicit ImageParts(const Vision* vision);

  // Returns the text that stands for a part of a content that is no text. param: its path, such as
  // "messages[0].content[1]"; an image of a translated request says its path there in
  // `image_url.origin`. Throws RequestError if the model does not read it here.
  std::string placed(const Fields& part, const std::string& role, const std::string& param);
  const std::vector<ImagePart>& images() const { return images_; }

  // Return values for the template: contents with images as lists of parts, {"type": "text",
  // "text": ...} and {"type": "image"}, and typed placeholders with a mark.
  Value for_template(const Value& messages) const;
  Value marked(const Value& value) const;
  // Whether a template's output has a place for each image.
  bool fit(const std::string& rendered) const;
  // Returns messages in which a message of the user after the results of tools has their images,
  // for templates that write results as text; none if no result has an image.
  Values after_results(const Values& messages) const;
  // Returns a part of the template's output without marks.
  std::string unmarked(std::string text) const;

 private:
  Value content_of(const std::string& text) const;

  const Vision* const vision_;
  std::string place_, typed_;  // marks
  std::vector<ImagePart> images_;
};

}  // namespace wherry::app

#endif  // WHERRY_APP_CHAT_IMAGE_PARTS_H_
