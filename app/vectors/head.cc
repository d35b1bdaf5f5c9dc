#include "app/vectors/head.h"

#include <algorithm>

#include "app/value/json_text.h"
#include "support/error.h"

namespace wherry::app {

namespace {

HeadKind kind_of(const Fields& fields, const std::string& path) {
  const std::string kind = fields.text("kind");
  if (kind == "embedding") return HeadKind::kEmbedding;
  if (kind == "score") return HeadKind::kScore;
  if (kind == "class") return HeadKind::kClass;
  throw Error(WHERRY_INCOMPATIBLE, path + ": kind is \"" + kind +
                                       "\"; this runtime reads embedding, score and class. "
                                       "Compile the model again: wherry compile MODEL -o DIR");
}

Activation activation_of(const Fields& fields, const std::string& path) {
  const std::string name = fields.has("activation") ? fields.text("activation") : "softmax";
  if (name == "softmax") return Activation::kSoftmax;
  if (name == "sigmoid") return Activation::kSigmoid;
  if (name == "identity") return Activation::kIdentity;
  throw Error(WHERRY_INCOMPATIBLE, path + ": activation is \"" + name +
                                       "\"; this runtime reads softmax, sigmoid and identity");
}

int32_t token_of(const Fields& fields, const char* name, int32_t otherwise) {
  return static_cast<int32_t>(fields.integer(name).value_or(otherwise));
}

}  // namespace

const std::string* Head::prompt(const std::string& name) const {
  const auto match = std::find_if(prompts.begin(), prompts.end(),
                                  [&](const auto& prompt) { return prompt.first == name; });
  return match == prompts.end() ? nullptr : &match->second;
}

Head read_head(const Value& json, const std::string& path) {
  Head head;
  if (json.dict().items.empty()) return head;
  const Fields fields(json);
  head.kind = kind_of(fields, path);
  head.writes_text = head.kind != HeadKind::kClass;
  head.embeds = head.kind != HeadKind::kScore;
  if (fields.has("normalize")) head.normalize = fields.truth("normalize");
  head.max_tokens = fields.integer("max_tokens").value_or(0);
  if (const Value* prompts = fields.find("prompts")) {
    for (const auto& [name, text] : prompts->dict().items) {
      head.prompts.emplace_back(name.text(), text.text());
    }
  }
  if (const Value* labels = fields.find("labels")) {
    for (const Value& label : labels->items()) head.labels.push_back(label.text());
  }
  head.activation = activation_of(fields, path);
  head.separator = token_of(fields, "separator", -1);
  head.yes = token_of(fields, "yes", 0);
  head.no = token_of(fields, "no", 0);
  if (fields.has("default_prompt")) head.default_prompt = fields.text("default_prompt");
  if (head.default_prompt && head.prompt(*head.default_prompt) == nullptr) {
    throw Error(WHERRY_INCOMPATIBLE,
                path + ": default_prompt is \"" + *head.default_prompt + "\", of no prompt");
  }
  return head;
}

}  // namespace wherry::app
