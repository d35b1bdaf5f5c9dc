// The text side of a model: its tokenizer, chat template and stop token ids.
#ifndef WHERRY_APP_CHAT_SPEECH_H_
#define WHERRY_APP_CHAT_SPEECH_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/request/fields.h"
#include "app/text/tokenizer.h"
#include "app/tools/dialect.h"

namespace wherry::app {

// Access to the small files of a compiled folder, wherever it is stored.
struct Files {
  std::string folder;  // its name in error messages
  std::function<std::optional<std::string>(const std::string& name)>
      read;  // returns nothing if the file does not exist

  std::string path(const std::string& name) const { return folder + "/" + name; }
};

struct Speech {
  std::unique_ptr<const Tokenizer> tokenizer;
  std::unique_ptr<const Dialect> dialect;  // null: the model only completes text
  std::vector<int32_t> eos_ids;
  Value defaults;  // generation_config.json
};
// tool_format: the family name of the tool-call format; "": detected from the template. Throws
// Error.
Speech read_speech(const Files& files, const std::string& tool_format);

// Returns a JSON object; an empty one if the file does not exist. Throws Error.
Value read_object(const Files& files, const std::string& name);

}  // namespace wherry::app

#endif  // WHERRY_APP_CHAT_SPEECH_H_
