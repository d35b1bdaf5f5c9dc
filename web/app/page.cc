// The app module for web pages. It converts requests in JSON to calls of the core, and the core's
// events to responses in JSON. The core is another module; the script connects the two, see
// script.h.
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "app/chat/chat_tools.h"
#include "app/chat/requests.h"
#include "app/grammar/refusals.h"
#include "app/grammar/vocabulary.h"
#include "app/request/request_error.h"
#include "app/value/code_points.h"
#include "app/value/json_text.h"
#include "exports.h"
#include "packed.h"
#include "sampling/params.h"
#include "script.h"

namespace {

using namespace wherry;
using namespace wherry::app;

// The core, as the script provides it.
class ScriptCore : public Core {
 public:
  void add(uint64_t id, const std::vector<int32_t>& prompt, const wherry_params& params) override {
    const int status = script_add(id, prompt.data(), prompt.size(), &params);
    if (status == WHERRY_OK) return;
    std::string reason(1024, '\0');
    reason.resize(script_error(reason.data(), reason.size()));
    throw Error(static_cast<wherry_status>(status), reason);
  }
  void abort(uint64_t id) override { script_abort(id); }
  void wake() override {}  // the script polls the core's events
};

// A grammar that the grammar module has compiled, which a number identifies.
class Numbered : public CompiledGrammar {
 public:
  explicit Numbered(uint32_t number) : number_(number) {}
  wherry_mask mask(const std::vector<int32_t>&) const override {
    wherry_mask spec{};
    spec.size = sizeof spec;
    spec.context = reinterpret_cast<void*>(static_cast<uintptr_t>(number_));
    return spec;
  }
  size_t bytes() const override { return 0; }

 private:
  uint32_t number_;
};

// Compiles grammars through the script, which loads the grammar module.
class ScriptGrammars : public GrammarSource {
 public:
  explicit ScriptGrammars(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  void compile(int64_t id, const Constraint& constraint, Done done) override {
    require_token_bytes(tokenizer_);
    waiting_[id] = {constraint.param, std::move(done)};
    const std::string text = packed(constraint);
    script_compile(id, text.data(), text.size());
  }
  bool abandon(int64_t id) override { return waiting_.erase(id) > 0; }

  // Completes a compilation. number: the grammar's; 0: it failed because of `reason`; -1: the
  // grammar module has no compiler.
  void compiled(int64_t id, uint32_t number, const std::string& reason) {
    const auto match = waiting_.find(id);
    if (match == waiting_.end()) return;
    const auto [param, done] = std::move(match->second);
    waiting_.erase(match);
    if (number == static_cast<uint32_t>(-1))
      return done(nullptr, std::make_exception_ptr(without_grammars(param)));
    if (number != 0) return done(std::make_shared<Numbered>(number), nullptr);
    done(nullptr, std::make_exception_ptr(cannot_enforce(param, reason)));
  }

 private:
  const Tokenizer& tokenizer_;
  std::map<int64_t, std::pair<std::string, Done>> waiting_;
};

// The state of the module, which serves one model.
struct Page {
  Page(std::string name, TextInterface given, int64_t context, int64_t vocab_size)
      : text_interface(std::move(given)),
        model(model_of(std::move(name), text_interface, context, vocab_size)),
        grammars(*text_interface.tokenizer),
        requests(model, core, grammars) {}

  TextInterface text_interface;
  Model model;
  ScriptCore core;
  ScriptGrammars grammars;
  Requests requests;
};

std::unordered_map<std::string, std::string>
    files;  // contents of the model folder's files by name, until wherry_page_open
std::unique_ptr<Page> page;
std::string given;  // result of the last call, which the script copies

// Parses a request in JSON.
Value request_of(const char* json, size_t n) {
  return json::from_json(unicode::well_formed(std::string_view(json, n)), json::Halves::kKept);
}

// Returns the prompt of a chat request.
std::string rendered(const char* json, size_t n) {
  const Value request = request_of(json, n);
  const Fields fields = checked_chat(request);
  return ChatTools(fields, page->model.chat_format, page->model.vision).rendered(nullptr);
}

// Stores the result of `work` in `given`; returns its address, and its length in *n. Null if `work`
// throws; wherry_last_error then has the reason.
template <typename Work>
const char* gives(size_t* n, const Work& work) {
  if (guarded([&] { given = work(); }) != WHERRY_OK) return nullptr;
  *n = given.size();
  return given.c_str();
}

// Returns ids as bytes, little-endian int32.
std::string bytes_of(const std::vector<int32_t>& ids) {
  return {reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(int32_t)};
}

}  // namespace

void wherry_params_init(wherry_params* params) { *params = default_params(); }

extern "C" {

// Adds a file of the model folder, for wherry_page_open. Returns a wherry_status.
WHERRY_API int wherry_page_file(const char* name, const char* text, size_t n) {
  return guarded([&] { files[name] = std::string(text, n); });
}

// Opens the model. folder: its place, for error messages. tool_format: "" detects it from the chat
// template. context: maximum number of tokens of prompt and output. embedding_size: dimensions of
// an embedding; 0: unknown. Returns a wherry_status.
WHERRY_API int wherry_page_open(const char* folder, const char* name, const char* tool_format,
                                int64_t context, int64_t vocab_size, int64_t embedding_size) {
  return guarded([&] {
    const Files in_memory{folder, [](const std::string& file) -> std::optional<std::string> {
                            const auto at = files.find(file);
                            return at == files.end() ? std::nullopt : std::optional(at->second);
                          }};
    TextInterface text_interface = read_text_interface(in_memory, tool_format);
    text_interface.head.size = embedding_size;
    page = std::make_unique<Page>(name, std::move(text_interface), context, vocab_size);
    files.clear();
  });
}

// Returns whether the model has a chat template.
WHERRY_API int wherry_page_chats(void) { return page->model.chat_format != nullptr; }

// Returns the size in bytes of a struct that the script reads or writes: 0 is wherry_params, 1 is
// wherry_event.
WHERRY_API size_t wherry_page_size(int record) {
  return record == 0 ? sizeof(wherry_params) : sizeof(wherry_event);
}

// Starts a request; returns its id, for wherry_page_end. number: the script's number of the
// request, which script_chunk receives with each chunk of the response.
WHERRY_API int64_t wherry_page_ask(uint32_t number, const char* json, size_t n) {
  const int64_t id =
      page->requests.start(std::string(json, n), [number](const std::string& chunk, bool last) {
        script_chunk(number, chunk.data(), chunk.size(), last);
      });
  page->requests.plan_next();
  page->requests.hear(nullptr, 0, "");
  return id;
}

// Aborts a request.
WHERRY_API void wherry_page_end(int64_t id) {
  page->requests.abort(id);
  page->requests.hear(nullptr, 0, "");
}

// Processes events of the core. error: the message of events with WHERRY_ERROR.
WHERRY_API void wherry_page_hear(const wherry_event* events, size_t n, const char* error) {
  page->requests.hear(events, n, error);
}

// Reports that a compilation that script_compile started is complete; arguments: as
// ScriptGrammars::compiled.
WHERRY_API void wherry_page_compiled(int64_t waiter, uint32_t number, const char* reason) {
  page->grammars.compiled(waiter, number, reason);
  page->requests.hear(nullptr, 0, "");
}

// Returns the bytes of each token, packed (packed.h), for wherry_grammars_open; null if the
// tokenizer does not provide them, see wherry_last_error.
WHERRY_API const char* wherry_page_vocabulary(size_t* n) {
  return gives(n, [] {
    std::string packed;
    const Abilities& abilities = page->model.abilities;
    for (const std::string& token : grammar_vocabulary(*abilities.tokenizer, abilities.vocab_size))
      pack(packed, token);
    return packed;
  });
}

// Returns the prompt of a chat request, without starting it; null: see wherry_last_error.
WHERRY_API const char* wherry_page_rendered(const char* json, size_t length, size_t* n) {
  return gives(n, [&] { return rendered(json, length); });
}

// Returns the token ids of a text as little-endian int32. special: whether to add special tokens.
WHERRY_API const char* wherry_page_encoded(const char* text, size_t length, int special,
                                           size_t* n) {
  return gives(n, [&] {
    return bytes_of(
        page->model.abilities.tokenizer->encode(std::string_view(text, length), special != 0));
  });
}

// Returns the text of token ids. skip: whether to leave out special tokens.
WHERRY_API const char* wherry_page_decoded(const int32_t* ids, size_t count, int skip, size_t* n) {
  return gives(
      n, [&] { return page->model.abilities.tokenizer->decode({ids, ids + count}, skip != 0); });
}

}  // extern "C"
