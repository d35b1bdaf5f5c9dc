// Implements `wherry-lite run`, which prints one response.
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>

#include "app/lite/commands.h"
#include "app/lite/printed_reply.h"
#include "app/lite/usage.h"
#include "app/value/base64.h"

namespace wherry::lite {

namespace {

Items with_field(Items fields, const char* name, Value value) {
  fields.emplace_back(name, std::move(value));
  return fields;
}

// Returns an image file as a part of a message's content.
Value image_part(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw UsageError("--image is \"" + path + "\"; there is no such file");
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const Value url = json::make_dict({{"url", "data:;base64," + encode_base64(bytes)}});
  return json::make_dict({{"type", "image_url"}, {"image_url", url}});
}

Value content_of(const Arguments& typed, const std::string& prompt) {
  if (typed.images.empty()) return prompt;
  json::Values parts;
  for (const std::string& path : typed.images) parts.push_back(image_part(path));
  parts.push_back(json::make_dict({{"type", "text"}, {"text", prompt}}));
  return json::make_list(std::move(parts));
}

Items chat_fields(const Arguments& typed, const std::string& prompt) {
  json::Values messages;
  if (const std::string system = typed.text("system"); !system.empty()) {
    messages.push_back(json::make_dict({{"role", "system"}, {"content", system}}));
  }
  messages.push_back(json::make_dict({{"role", "user"}, {"content", content_of(typed, prompt)}}));
  return with_field(typed.request, "messages", json::make_list(std::move(messages)));
}

}  // namespace

int run(const Arguments& typed) {
  std::string prompt = typed.prompt.value_or("");
  if (!typed.prompt) prompt.assign(std::istreambuf_iterator<char>(std::cin), {});
  if (prompt.empty()) throw UsageError("which PROMPT? Type it in quotes, or send it in by a pipe");
  const Model model(typed);
  const auto never = [] { return false; };  // never interrupts: Ctrl-C ends the program itself
  PrintedReply reply;
  const bool completes = typed.flag("completion");
  if (completes && !typed.images.empty()) throw UsageError("--completion takes no --image");
  if (!completes) reply = ask(model, chat_fields(typed, prompt), never);
  if (completes || (reply.code == "no_chat_template" && typed.images.empty())) {
    reply = ask(model, with_field(typed.request, "prompt", prompt), never);
  }
  if (reply.error.empty()) return EXIT_SUCCESS;
  throw std::runtime_error(reply.error);
}

}  // namespace wherry::lite
