// Implements host_abi.h.
#include <deque>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <unordered_map>

#include "app/chat/fill_in.h"
#include "app/chat/requests.h"
#include "app/grammar/endless.h"
#include "app/grammar/schema/repair.h"
#include "app/host/calls_grammar.h"
#include "app/host/host_grammars.h"
#include "app/host/host_text.h"
#include "app/request/request_error.h"
#include "app/value/json_text.h"
#include "sampling/params.h"
#include "support/error.h"

namespace wherry::app {
namespace {

const Value& field(const Value& object, const char* name) {
  const Value* match = object.dict().find(name);
  if (match == nullptr) {
    throw Error(WHERRY_INVALID_ARGUMENT, std::string("the model's JSON has no ") + name);
  }
  return *match;
}

std::vector<int32_t> ids_of(const Value& list) {
  std::vector<int32_t> result;
  for (const Value& id : list.items()) result.push_back(static_cast<int32_t>(id.integer()));
  return result;
}

// Returns null for a model that reads text alone.
std::unique_ptr<const Vision> vision_of(const Value& settings, const Services& services) {
  if (settings.is_none()) return nullptr;
  auto result =
      read_vision(settings, [&](const std::string& token) { return services.id_of(token); });
  result->decode = [&services](std::string_view file) { return services.decode_image(file); };
  return result;
}

TextInterface text_interface_of(const Value& model, const Services& services) {
  TextInterface result;
  std::optional<text::ByteRules> rules;
  if (const Value& given = field(model, "byte_rules"); !given.is_none()) {
    rules =
        text::ByteRules{json::truth(field(given, "each_byte")), field(given, "strip").integer()};
  }
  result.tokenizer = std::make_unique<HostTokenizer>(
      services, static_cast<size_t>(field(model, "tokens").integer()),
      static_cast<int32_t>(field(model, "largest_id").integer()), rules);
  result.eos_ids = ids_of(field(model, "eos_ids"));
  result.defaults = field(model, "defaults");
  result.decoder_start = ids_of(field(model, "decoder_start"));
  result.head = read_head(field(model, "head"), "wherry-head.json");
  result.head.size = field(model, "embedding_size").integer();
  if (!json::truth(field(model, "writes_text"))) result.head.writes_text = false;
  result.head.embeds = json::truth(field(model, "embeds"));
  result.head.reads_source = !result.decoder_start.empty();
  const auto known = [&](const std::string& name) { return services.id_of(name) >= 0; };
  const Values& templates = field(model, "templates").items();
  std::unique_ptr<ChatFormat> usual;
  for (size_t i = 0; i < templates.size(); ++i) {
    std::set<std::string> variables;
    for (const Value& name : field(templates[i], "variables").items()) {
      variables.insert(name.text());
    }
    auto chat_format = std::make_unique<ChatFormat>(
        std::make_unique<HostTemplate>(services, static_cast<int>(i),
                                       field(templates[i], "source").text(), std::move(variables)),
        field(model, "tool_format").text(), known);
    if (i == 0) {
      usual = std::move(chat_format);
    } else {
      usual->set_for_tools(std::move(chat_format));
    }
  }
  if (usual && !json::truth(field(model, "adapts"))) usual->adapt_nothing();
  result.chat_format = std::move(usual);
  result.vision = vision_of(field(model, "vision"), services);
  return result;
}

// Returns the JSON of an error, with the tokens of a request that exceeds the context.
std::string error_with_tokens(const RequestError& error) {
  std::string json = error_json(error);
  if (!error.overflow) return json;
  const auto& [context, prompt, output] = *error.overflow;
  json.pop_back();
  return json +
         ",\"overflow\":" + json::to_compact_json(json::make_list({context, prompt, output})) + "}";
}

thread_local std::string last_error;

// Runs the body of an API call. Returns its status; wherry_host_last_error then has the error.
template <typename Work>
int guarded(const Work& work) noexcept {
  try {
    work();
    return WHERRY_OK;
  } catch (const jinja::Abandoned&) {
    last_error = error_json("The request was aborted", "server_error", "", "aborted");
    return WHERRY_NOT_FOUND;
  } catch (const RequestError& error) {
    last_error = error_with_tokens(error);
    return WHERRY_INVALID_ARGUMENT;
  } catch (const jinja::Refused& error) {
    last_error = error_json(RequestError(error.what(), "messages", "chat_template"));
    return WHERRY_INVALID_ARGUMENT;
  } catch (const Error& error) {
    const bool own = error.status() == WHERRY_INVALID_ARGUMENT;
    last_error = own ? error_json(RequestError(error.what()))
                     : error_json(error.what(), "server_error", "", "engine_error");
    return error.status();
  } catch (const std::exception& error) {
    last_error = error_json(error.what(), "server_error", "", "internal_error");
    return WHERRY_INTERNAL;
  }
}

// Returns the text that `work` returns, valid until the thread's next call; null if it throws.
template <typename Work>
const char* answer(const Work& work) noexcept {
  thread_local std::string text;
  return guarded([&] { text = work(); }) == WHERRY_OK ? text.c_str() : nullptr;
}

RequestOptions options_of(const char* json) {
  RequestOptions options;
  if (json == nullptr) return options;
  const Fields fields(json::from_json(json));
  const auto text = [&](const char* name) {
    return fields.has(name) ? std::optional(fields.text(name)) : std::nullopt;
  };
  options.task = fields.text("task");
  options.model = fields.text("model");
  options.key = text("key");
  options.peer = text("peer");
  options.context = fields.integer("context").value_or(0);
  options.context_field = fields.text("context_field");
  options.max_tokens = fields.integer("max_tokens").value_or(0);
  options.prompt_only = fields.truth("prompt_only");
  options.in_parts = fields.truth("in_parts");
  options.window = static_cast<size_t>(fields.integer("window").value_or(0));
  return options;
}

int32_t finish_of(const std::string& finish) {
  if (finish == "stop") return WHERRY_HOST_STOP;
  if (finish == "length") return WHERRY_HOST_LENGTH;
  return finish.empty() ? WHERRY_HOST_RUNS : WHERRY_HOST_TOOL_CALLS;
}

wherry_host_totals totals_of(const Response& response) {
  const Totals totals = response.totals();
  return {totals.prompt,           totals.sampled,   totals.cached,      totals.drafted,
          totals.accepted,         totals.reasoning, totals.queue,       totals.prefill,
          totals.decode,           totals.longest,   totals.since_first, totals.since_last,
          finish_of(totals.finish)};
}

}  // namespace
}  // namespace wherry::app

using namespace wherry;
using namespace wherry::app;

struct wherry_host {
  wherry_host(const Value& given, const wherry_host_services& brought)
      : services(brought),
        text_interface(text_interface_of(given, services)),
        model(model_of(field(given, "name").text(), text_interface,
                       field(given, "context").integer(), field(given, "vocab_size").integer())),
        core(services),
        grammars(services),
        requests(model, core, grammars) {
    model.host_makes_grammars = true;
  }

  // Adds a message about a request; called within hear.
  void tell(int64_t id, int32_t kind, std::string json) {
    wherry_host_message message{id, kind, nullptr, json.size(), {}};
    if (const auto response = response_of(id)) message.totals = totals_of(*response);
    texts.push_back(std::move(json));
    message.json = texts.back().c_str();
    messages.push_back(message);
    if (kind != WHERRY_HOST_LAST && kind != WHERRY_HOST_ERROR) return;
    const std::lock_guard lock(mutex);
    responses.erase(id);
  }

  // Returns null if the request is not open.
  std::shared_ptr<const Response> response_of(int64_t id) {
    const std::lock_guard lock(mutex);
    const auto known = responses.find(id);
    return known == responses.end() ? nullptr : known->second;
  }

  const Services services;
  TextInterface text_interface;
  Model model;
  ServiceCore core;
  HostGrammars grammars;
  Requests requests;
  std::mutex mutex;  // guards `responses`
  std::unordered_map<int64_t, std::shared_ptr<const Response>> responses;
  // Of the thread that calls wherry_host_hear.
  std::deque<std::string> texts;
  std::vector<wherry_host_message> messages;
};

void wherry_params_init(wherry_params* params) { *params = default_params(); }

extern "C" {

void wherry_host_give(wherry_host_bytes* bytes, const void* data, size_t n) {
  bytes->data.append(static_cast<const char*>(data), n);
}

int wherry_host_abi_version(void) { return WHERRY_HOST_ABI_VERSION; }

const char* wherry_host_last_error(void) { return last_error.c_str(); }

int wherry_host_open(const char* model_json, size_t n, const wherry_host_services* services,
                     wherry_host** out) {
  return guarded(
      [&] { *out = new wherry_host(json::from_json(std::string_view(model_json, n)), *services); });
}

int wherry_host_start(wherry_host* host, int64_t id, const char* request_json, size_t n,
                      const char* options_json) {
  return guarded([&] {
    host->requests.begin(
        id, std::string(request_json, n), options_of(options_json),
        [host, id](const std::shared_ptr<const Response>& response) {
          {
            const std::lock_guard lock(host->mutex);
            host->responses[id] = response;
          }
          host->tell(id, WHERRY_HOST_OPENED, response->about());
        },
        [host, id](const std::string& json, bool last) {
          const bool failed = json.rfind(R"({"error":)", 0) == 0;
          host->tell(id,
                     failed ? WHERRY_HOST_ERROR
                     : last ? WHERRY_HOST_LAST
                            : WHERRY_HOST_CHUNK,
                     json);
        });
  });
}

int wherry_host_prompt(wherry_host* host, const char* request_json, size_t n_json,
                       int add_special_tokens, const int32_t** ids, size_t* n) {
  thread_local std::vector<int32_t> prompt;
  return guarded([&] {
    prompt = chat_prompt(request_of({request_json, n_json}), host->model, add_special_tokens != 0,
                         [] { return false; });
    *ids = prompt.data();
    *n = prompt.size();
  });
}

int wherry_host_totals_of(wherry_host* host, int64_t id, wherry_host_totals* out) {
  const auto response = host->response_of(id);
  if (response == nullptr) return WHERRY_NOT_FOUND;
  *out = totals_of(*response);
  return WHERRY_OK;
}

void wherry_host_abort(wherry_host* host, int64_t id) {
  guarded([&] { host->requests.abort(id); });
}

void wherry_host_constrained(wherry_host* host, int64_t id,
                             int (*mask)(void*, const int32_t*, size_t, wherry_mask*),
                             void (*release)(void*), void* context, const char* error_json) {
  guarded([&] {
    host->grammars.constrained(id, {mask, release, context},
                               error_json == nullptr ? "" : error_json);
  });
}

void wherry_host_hear(wherry_host* host, const wherry_event* events, size_t n, const char* error,
                      const wherry_host_message** messages, size_t* count) {
  host->texts.clear();
  host->messages.clear();
  guarded([&] { host->requests.hear(events, n, error == nullptr ? "" : error); });
  *messages = host->messages.data();
  *count = host->messages.size();
}

void wherry_host_close(wherry_host* host) {
  if (host == nullptr) return;
  host->requests.close();
  delete host;
}

const char* wherry_request_check(const char* task, const char* request_json, size_t n) {
  return answer([&] {
    const auto [outputs, stream] = check_request(task, request_of({request_json, n}));
    return json::to_compact_json(json::make_dict({{"outputs", outputs}, {"stream", stream}}));
  });
}

const char* wherry_template_traits(const char* source, size_t n) {
  return answer([&] {
    const ChatFormat chat_format(
        std::make_unique<jinja::InterpretedTemplate>(std::string(source, n), json::make_dict({})),
        "", [](const std::string&) { return false; });
    const Family& family = chat_format.family();
    return json::to_compact_json(
        json::make_dict({{"tool_format", family.name},
                         {"tools", chat_format.native()},
                         {"thinks", chat_format.thoughts() || family.channels}}));
  });
}

const char* wherry_fill_in_marks(void) {
  return answer([] {
    Values lists;
    for (const auto& marks : fill_in_marks()) {
      lists.push_back(json::make_list(Values(marks.begin(), marks.end())));
    }
    return json::to_compact_json(json::make_list(std::move(lists)));
  });
}

const char* wherry_calls_grammar(const char* json, size_t n) {
  return answer([&] { return calls_grammar(json::from_json(std::string_view(json, n))); });
}

const char* wherry_schema_repair(const char* json, size_t n) {
  return answer([&] {
    Repaired result = repaired(json::from_json(std::string_view(json, n)));
    Values problems(result.problems.begin(), result.problems.end());
    return json::to_compact_json(
        json::make_dict({{"schema", std::move(result.schema)},
                         {"problems", json::make_list(std::move(problems))}}));
  });
}

const char* wherry_grammar_endless(const char* text, size_t n) {
  return answer([&] { return endless_rule(std::string_view(text, n)); });
}

}  // extern "C"
