// What a compiled folder says of its model: manifest, tokenizer, template, ids that end a text.
#ifndef WHERRY_ENGINE_APP_CHAT_FOLDER_H_
#define WHERRY_ENGINE_APP_CHAT_FOLDER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/chat/fields.h"
#include "app/text/tokenizer.h"
#include "app/tools/dialect.h"

namespace wherry::app {

// The manifest, wherry.json; its files are there with the sizes that it says. Throws Error.
struct Manifest {
  std::string name;
  std::string library;
  std::string linked;  // prefix of the library, where it is linked into the program and no file
  int64_t context = 0, max_batch = 0, prefill_chunk = 0;  // 0: it does not say
  int64_t bytes = 0;                                      // of all files
};
Manifest read_manifest(const std::string& folder);

struct Speech {
  std::unique_ptr<const Tokenizer> tokenizer;
  std::unique_ptr<const Dialect> dialect;  // of its chat template; null: it only completes text
  std::vector<int32_t> eos_ids;
  Value defaults;  // generation_config.json
};
// tool_format: how it calls tools, the name of a family; "": its template tells.
Speech read_speech(const std::string& folder, const std::string& tool_format);

}  // namespace wherry::app

#endif  // WHERRY_ENGINE_APP_CHAT_FOLDER_H_
