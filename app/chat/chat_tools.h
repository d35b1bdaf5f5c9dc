// The tools and the reasoning of one chat, which decide the template's variables and how the output
// is parsed.
#ifndef WHERRY_APP_CHAT_CHAT_TOOLS_H_
#define WHERRY_APP_CHAT_CHAT_TOOLS_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/chat/image_parts.h"
#include "app/chat/requested_tools.h"
#include "app/grammar/constraint.h"
#include "app/request/fields.h"
#include "app/text/tokenizer.h"
#include "app/tools/chat_format.h"
#include "app/tools/output_parser.h"

namespace wherry::app {

class ChatTools {
 public:
  // chat_format: null if the model has no template; vision: null if it reads text alone; both must
  // outlive this object, as must the fields. Throws RequestError for tools that contradict each
  // other, or content that the model does not read.
  ChatTools(const Fields& fields, const ChatFormat* chat_format, const Vision* vision);

  // Renders the prompt, in which each image has a placeholder, and typed placeholders have marks;
  // `changes` gets the names of the steps that adapted the messages to the
  // template. Throws RequestError, or jinja::Abandoned if `gone` says that the client has
  // left.
  std::string rendered(const std::function<bool()>& gone, Texts* changes = nullptr) const;
  const ImageParts& images() const { return images_; }
  // Returns what the parser has to find in the output that follows this prompt.
  Reading reading(const std::string& prompt) const;
  // Returns the constraint of the output that follows a prompt, if there is one. base: the
  // constraint from the request's other fields. Throws RequestError if a strict tool's parameters
  // cannot be enforced.
  std::optional<Constraint> constraint(const std::string& prompt,
                                       const std::optional<Constraint>& base,
                                       const Tokenizer& tokenizer) const;
  // Returns what the output that follows a prompt has to follow, for a host that makes grammars by
  // itself; nothing if it is free.
  std::optional<Value> requirements(const std::string& prompt, bool constrained,
                                    const Tokenizer& tokenizer) const;
  const Texts& custom() const { return requested_.custom; }  // names of custom tools
  bool named() const { return requested_.named; }  // whether the request names the tool to call
  // Returns the special tokens whose names the parser needs.
  std::vector<int32_t> visible(const Tokenizer& tokenizer) const;
  // Returns the fields of the request that have no effect with this template.
  Texts unused() const;
  // Returns the tokens that end a response, in addition to `known`.
  std::vector<int32_t> stop_ids(const Tokenizer& tokenizer, std::vector<int32_t> known) const;

 private:
  Value variables() const;
  std::string adapted_text(Values messages, bool opens, const std::function<bool()>& gone,
                           Texts* changes) const;
  // How an output begins that has to follow something.
  struct Beginning {
    std::optional<Thoughts> thoughts;  // marks of reasoning that may come first
    bool opened;                       // whether the prompt has opened the reasoning
    const Family* family;              // format of calls; null: none can come
  };
  Beginning beginning(const std::string& prompt) const;
  bool is_free(bool constrained) const;
  bool separate() const;
  bool in_format() const;
  bool goes_on_thinking(const Thoughts& thoughts) const;
  bool goes_on_in_words(const Thoughts& thoughts) const;

  const Fields& fields_;
  const RequestedTools requested_;
  const ChatFormat& chat_format_;
  ImageParts images_;  // images of the messages
  Values messages_;    // messages for the template
};

}  // namespace wherry::app

#endif  // WHERRY_APP_CHAT_CHAT_TOOLS_H_
