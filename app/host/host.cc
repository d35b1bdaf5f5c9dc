// Implements host_abi.h.
#include <deque>
#include <memory>
#include <unordered_map>

#include "app/chat/requests.h"
#include "app/host/host_grammars.h"
#include "app/host/host_text.h"
#include "app/request/request_error.h"
#include "app/value/json_text.h"
#include "sampling/params.h"
#include "support/error.h"

namespace wherry::app {
namespace {

const Value& field(const Value& object, const char* name) {
  const Value* found = object.dict().find(name);
  if (found == nullptr) {
    throw Error(WHERRY_INVALID_ARGUMENT, std::string("the model's JSON has no ") + name);
  }
  return *found;
}

std::vector<int32_t> ids_of(const Value& list) {
  std::vector<int32_t> made;
  for (const Value& id : list.items()) made.push_back(static_cast<int32_t>(id.integer()));
  return made;
}

Speech speech_of(const Value& model, const Services& services) {
  Speech made;
  std::optional<text::ByteRules> rules;
  if (const Value& given = field(model, "byte_rules"); !given.is_none()) {
    rules =
        text::ByteRules{json::truth(field(given, "each_byte")), field(given, "strip").integer()};
  }
  made.tokenizer = std::make_unique<HostTokenizer>(
      services, static_cast<size_t>(field(model, "tokens").integer()),
      static_cast<int32_t>(field(model, "largest_id").integer()), rules);
  made.eos_ids = ids_of(field(model, "eos_ids"));
  made.defaults = field(model, "defaults");
  made.decoder_start = ids_of(field(model, "decoder_start"));
  made.head = read_head(field(model, "head"), "wherry-head.json");
  made.head.size = field(model, "embedding_size").integer();
  if (!json::truth(field(model, "writes_text"))) made.head.writes_text = false;
  const auto known = [&](const std::string& name) { return services.id_of(name) >= 0; };
  const Values& templates = field(model, "templates").items();
  std::unique_ptr<Dialect> usual;
  for (size_t i = 0; i < templates.size(); ++i) {
    std::set<std::string> variables;
    for (const Value& name : field(templates[i], "variables").items()) {
      variables.insert(name.text());
    }
    auto dialect = std::make_unique<Dialect>(
        std::make_unique<HostTemplate>(services, static_cast<int>(i),
                                       field(templates[i], "source").text(), std::move(variables)),
        field(model, "tool_format").text(), known);
    if (i == 0) {
      usual = std::move(dialect);
    } else {
      usual->set_for_tools(std::move(dialect));
    }
  }
  if (usual && !json::truth(field(model, "adapts"))) usual->adapt_nothing();
  made.dialect = std::move(usual);
  return made;
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
    last_error = error_json(error);
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

RequestOptions options_of(const char* json) {
  RequestOptions made;
  if (json == nullptr) return made;
  const Value given = json::from_json(json);
  // Numbers of 64 bits come as texts, because JSON's are doubles.
  const auto number = [&](const char* name) -> std::optional<uint64_t> {
    const Value* value = given.dict().find(name);
    if (value == nullptr || value->is_none()) return std::nullopt;
    return std::stoull(value->text());
  };
  const Fields fields(given);
  made.user = number("user");
  made.salt = number("salt");
  made.context = fields.integer("context").value_or(0);
  made.max_tokens = fields.integer("at_most").value_or(0);
  return made;
}

}  // namespace
}  // namespace wherry::app

using namespace wherry;
using namespace wherry::app;

struct wherry_host {
  wherry_host(const Value& given, const wherry_host_services& brought)
      : services(brought),
        speech(speech_of(given, services)),
        model(model_of(field(given, "name").text(), speech, field(given, "context").integer(),
                       field(given, "vocab_size").integer())),
        core(services),
        grammars(services),
        requests(model, core, grammars) {
    model.host_makes_grammars = true;
  }

  // Adds a message about a request; called within hear.
  void tell(int64_t id, int32_t kind, std::string json) {
    const auto known = responses.find(id);
    wherry_host_message message{id, kind, nullptr, json.size(), {}};
    if (known != responses.end()) {
      const Totals totals = known->second->totals();
      message.totals = {totals.prompt,  totals.sampled,  totals.cached,
                        totals.drafted, totals.accepted, totals.reasoning,
                        totals.queue,   totals.prefill,  totals.decode};
    }
    texts.push_back(std::move(json));
    message.json = texts.back().c_str();
    messages.push_back(message);
    if (kind == WHERRY_HOST_LAST) responses.erase(id);
  }

  const Services services;
  Speech speech;
  Model model;
  ServiceCore core;
  HostGrammars grammars;
  Requests requests;
  // Of the thread that calls wherry_host_hear.
  std::unordered_map<int64_t, std::shared_ptr<const Response>> responses;
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
          host->responses[id] = response;
          host->tell(id, WHERRY_HOST_OPENED, response->about());
        },
        [host, id](const std::string& json, bool last) {
          host->tell(id, last ? WHERRY_HOST_LAST : WHERRY_HOST_CHUNK, json);
        });
  });
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

}  // extern "C"
