// Implements `wherry-lite chat`: a conversation in the terminal, or with the lines of a file as
// messages.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <stdexcept>

#include "app/lite/commands.h"
#include "app/lite/conversation.h"
#include "app/lite/interrupts.h"
#include "app/lite/printed_reply.h"

namespace wherry::lite {

namespace {

constexpr std::string_view kFence = "\"\"\"";
constexpr char kHelp[] =
    "/reset    forget the conversation\n"
    "/system X start again with the system message X\n"
    "/regen    answer the last message once more\n"
    "/undo     take the last message and its answer back\n"
    "/stats    tokens and memory of the cache so far\n"
    "/exit     leave (also Ctrl-D); Ctrl-C ends an answer, a second one the program\n"
    "//X       the message /X\n"
    "\"\"\"       before and after a message of several lines\n";

void say(const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); }

std::string trimmed(const std::string& text) {
  constexpr char kSpace[] = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpace);
  return begin == text.npos ? "" : text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

bool read_line(std::string& line) {
  if (isatty(STDIN_FILENO) != 0) {
    // If standard output is a file, the prompt sign goes to standard error.
    std::FILE* shown = isatty(STDOUT_FILENO) != 0 ? stdout : stderr;
    std::fputs("> ", shown);
    std::fflush(shown);
  }
  return static_cast<bool>(std::getline(std::cin, line));
}

bool ends_with_fence(const std::string& text) {
  return text.size() >= kFence.size() &&
         text.compare(text.size() - kFence.size(), kFence.size(), kFence) == 0;
}

// Reads one message and trims white space; returns false at the end of the input.
bool read_message(std::string& message) {
  std::string line;
  if (!read_line(line)) return false;
  message = trimmed(line);
  if (message.compare(0, kFence.size(), kFence) != 0) return true;
  message.erase(0, kFence.size());
  while (!ends_with_fence(trimmed(message)) && read_line(line)) message += "\n" + line;
  message = trimmed(message);
  if (ends_with_fence(message)) message.erase(message.size() - kFence.size());
  message = trimmed(message);
  return true;
}

class ChatLoop {
 public:
  ChatLoop(const Model& model, const Arguments& typed)
      : model_(model), fields_(typed.request), system_(typed.text("system")) {
    for (const auto& [name, value] : fields_) {
      if (name.text() == "max_tokens") max_tokens_ = value.integer();
    }
    restart(system_);
  }

  void turn(const std::string& message) {
    conversation_->ask(message);
    answer();
  }

  // Runs a command that begins with a slash; returns false if the user quits.
  bool command(const std::string& line) {
    const size_t space = line.find(' ');
    const std::string name = line.substr(0, space);
    const std::string rest = space == line.npos ? "" : trimmed(line.substr(space));
    if (name == "/exit") return false;
    if (name == "/help") {
      std::fputs(kHelp, stderr);
    } else if (name == "/reset" || name == "/system") {
      restart(name == "/system" ? rest : system_);
      say("The conversation is new.");
    } else if (name == "/regen" || name == "/undo") {
      take_back(name == "/regen");
    } else if (name == "/stats") {
      stats();
    } else {
      say("There is no " + name + "; //" + line.substr(1) + " sends it as a message.");
      std::fputs(kHelp, stderr);
    }
    return true;
  }

 private:
  void restart(const std::string& system) {
    conversation_ = std::make_unique<Conversation>(system);
    dropped_ = 0;
  }

  void answer() {
    Items fields = fields_;
    fields.emplace_back("messages", conversation_->messages());
    fields.emplace_back("truncation", "auto");
    const Answering answering;
    const PrintedReply reply = ask(
        model_, std::move(fields), [&] { return answering.interrupted(); },
        [this](int64_t dropped) { tell_dropped(dropped); });
    if (reply.code == "aborted") {
      say("[stopped]");
    } else if (!reply.error.empty()) {
      conversation_->withdraw();
      return say("Not sent: " + reply.error);
    } else if (reply.finish == "length" && max_tokens_ == 0) {
      say("[the context is full; /reset starts again]");
    }
    conversation_->answered(reply.text);
  }

  // Tells once which messages the context has no room for.
  void tell_dropped(int64_t dropped) {
    if (dropped == dropped_) return;
    dropped_ = dropped;
    say("[the context of " + std::to_string(model_.context()) + " tokens is full: the oldest " +
        std::to_string(dropped) + " messages are forgotten]");
  }

  void take_back(bool again) {
    const std::optional<std::string> question = conversation_->withdraw();
    if (!question) return say("There is no message yet.");
    if (!again) {
      return say("Taken back; the conversation has " + std::to_string(conversation_->size()) +
                 " messages.");
    }
    // A given seed is changed, because an equal seed would repeat the text.
    for (auto& [name, value] : fields_) {
      if (name.text() == "seed") value = Value(value.integer() + 1);
    }
    turn(*question);
  }

  void stats() const {
    const Value match = model_.stats();
    const auto count = [&](const char* name) { return find(match, name)->integer(); };
    say(std::to_string(count("prompt_tokens")) + " tokens read, " +
        std::to_string(count("decode_tokens")) + " written; " +
        std::to_string(count("pages_total") - count("pages_free")) + " of " +
        std::to_string(count("pages_total")) + " pages of " + std::to_string(count("page_size")) +
        " tokens in use");
  }

  const Model& model_;
  Items fields_;
  const std::string system_;  // the command /reset restores it
  int64_t max_tokens_ = 0;
  int64_t dropped_ = 0;  // messages that the last response left out
  std::unique_ptr<Conversation> conversation_;
};

}  // namespace

int chat(const Arguments& typed) {
  const Model model(typed);
  if (!find(model.stats(), "chat")->integer()) {
    throw std::runtime_error(model.name() +
                             " has no chat template, so it cannot chat. Type: wherry-lite run " +
                             typed.folder + " PROMPT");
  }
  ChatLoop loop(model, typed);
  if (isatty(STDIN_FILENO) != 0) say("Type a message; /help for commands, Ctrl-D to leave.");
  for (std::string message; read_message(message);) {
    if (message.empty()) continue;
    if (message[0] != '/') {
      loop.turn(message);
    } else if (message.compare(0, 2, "//") == 0) {
      // A doubled slash escapes a message that begins with a slash.
      loop.turn(message.substr(1));
    } else if (!loop.command(message)) {
      return EXIT_SUCCESS;
    }
  }
  if (isatty(STDIN_FILENO) != 0) say("");  // ends the line of the prompt sign
  return EXIT_SUCCESS;
}

}  // namespace wherry::lite
