// The text side of a model: its tokenizer, chat template and stop token ids.
#ifndef WHERRY_APP_CHAT_TEXT_INTERFACE_H_
#define WHERRY_APP_CHAT_TEXT_INTERFACE_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/chat/vision.h"
#include "app/request/fields.h"
#include "app/text/tokenizer.h"
#include "app/tools/chat_format.h"
#include "app/vectors/head.h"

namespace wherry::app {

// Reads the small files of a compiled folder, wherever the folder is stored.
struct Files {
  std::string folder;  // name of the folder in error messages
  // Returns the content of a file; nothing if the file does not exist.
  std::function<std::optional<std::string>(const std::string& name)> read;

  std::string path(const std::string& name) const { return folder + "/" + name; }
};

struct TextInterface {
  std::unique_ptr<const Tokenizer> tokenizer;
  std::unique_ptr<const ChatFormat> chat_format;  // null if the model only completes text
  std::vector<int32_t> eos_ids;
  Value defaults;  // content of generation_config.json
  // Tokens that the decoder of an encoder-decoder begins with; empty for other models.
  std::vector<int32_t> decoder_start;
  std::unique_ptr<const Vision> vision;  // null if the model reads text alone
  Head head;                             // what a model answers that generates no text
};
// Reads the text side of a model. tool_format: the family name of the tool-call format; "" detects
// it from the template. Throws Error.
TextInterface read_text_interface(const Files& files, const std::string& tool_format);

// Reads a JSON object from a file; returns an empty one if the file does not exist. Throws Error.
Value read_object(const Files& files, const std::string& name);

}  // namespace wherry::app

#endif  // WHERRY_APP_CHAT_TEXT_INTERFACE_H_
