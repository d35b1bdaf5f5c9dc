// Implements `wherry-lite run`, which prints one response.
#include <cstdlib>
#include <iostream>
#include <iterator>

#include "app/lite/commands.h"
#include "app/lite/printed_reply.h"
#include "app/lite/usage.h"

namespace wherry::lite {

namespace {

Items with_field(Items fields, const char* name, Value value) {
  fields.emplace_back(name, std::move(value));
  return fields;
}

Items chat_fields(const Arguments& typed, const std::string& prompt) {
  json::Values messages;
  if (const std::string system = typed.text("system"); !system.empty()) {
    messages.push_back(json::make_dict({{"role", "system"}, {"content", system}}));
  }
  messages.push_back(json::make_dict({{"role", "user"}, {"content", prompt}}));
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
  if (!completes) reply = ask(model, chat_fields(typed, prompt), never);
  if (completes || reply.code == "no_chat_template") {
    reply = ask(model, with_field(typed.request, "prompt", prompt), never);
  }
  if (reply.error.empty()) return EXIT_SUCCESS;
  throw std::runtime_error(reply.error);
}

}  // namespace wherry::lite
