#include "app/lite/http.h"

#include <httplib.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <iterator>
#include <optional>
#include <stdexcept>

#include "app/lite/body.h"
#include "app/lite/idle_server.h"
#include "app/lite/in_flight.h"
#include "app/value/json_text.h"

namespace wherry::lite {

namespace {

using httplib::Request;
using httplib::Response;

// Time between two checks whether the client is still connected.
constexpr std::chrono::milliseconds kLook{50};
constexpr size_t kRequests = 256;  // upper bound on requests that are answered at once
constexpr time_t kReadSeconds = 10, kWriteSeconds = 30;
constexpr size_t kShownPath = 200;
constexpr char kJson[] = "application/json";
// Prefixes of OpenAI's paths; the empty one serves clients whose base URL lacks the version.
constexpr const char* kVersions[] = {"/v1", ""};
constexpr char kDone[] = "data: [DONE]\n\n";

struct Route {
  const char* method;
  const char* path;
  std::optional<Endpoint> endpoint = std::nullopt;  // of paths that the model answers
};
constexpr Route kRoutes[] = {
    {"GET", "/"},
    {"GET", "/health"},
    {"GET", "/ready"},
    {"GET", "/stats"},
    {"GET", "/v1/models"},
    {"POST", "/v1/chat/completions", Endpoint::kChat},
    {"POST", "/v1/completions", Endpoint::kCompletion},
    {"POST", "/v1/embeddings", Endpoint::kEmbed},
    {"POST", "/v1/classify", Endpoint::kClassify},
    {"POST", "/v1/score", Endpoint::kScore},
    {"POST", "/v1/rerank", Endpoint::kRankCut},
    {"POST", "/v2/rerank", Endpoint::kRankCut},
    {"GET", "/models"},
    {"POST", "/chat/completions", Endpoint::kChat},
    {"POST", "/completions", Endpoint::kCompletion},
    {"POST", "/embeddings", Endpoint::kEmbed},
    {"POST", "/classify", Endpoint::kClassify},
    {"POST", "/score", Endpoint::kScore},
    {"POST", "/rerank", Endpoint::kRank},
};

bool is_of_model(const std::string& path) {
  return std::any_of(std::begin(kVersions), std::end(kVersions), [&](const char* version) {
    return path.rfind(std::string(version) + "/models/", 0) == 0;
  });
}

bool is_quiet(const std::string& path) { return path == "/health" || path == "/ready"; }

void send(Response& response, const Refusal& refused) {
  response.status = refused.status;
  for (const auto& [name, value] : refused.headers) response.set_header(name, value);
  response.set_content(refused.json, kJson);
}

void send(Response& response, const Value& value, int status = 200) {
  response.status = status;
  response.set_content(json::to_compact_json(value), kJson);
}

std::string event(const std::string& json) { return "data: " + json + "\n\n"; }

std::string one_line(std::string text) {
  text.resize(std::min(text.size(), kShownPath));
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c > 0x7E; }, '?');
  return text;
}

RequestHead head_of(const Request& request) {
  RequestHead head{request.method,
                   request.path,
                   request.get_header_value("Host"),
                   request.get_header_value("Origin"),
                   request.get_header_value("Authorization"),
                   request.get_header_value("X-Api-Key"),
                   request.get_header_value("Content-Type")};
  head.body = request.get_header_value_u64("Content-Length");
  if (head.body == 0 && request.has_header("Transfer-Encoding")) head.body = 1;
  return head;
}

// Returns the error for an unknown path or a method that the path does not support.
std::optional<Refusal> check_route(const Request& request) {
  std::string allowed = is_of_model(request.path) ? "GET" : "";
  for (const Route& route : kRoutes) {
    if (request.path == route.path) allowed = route.method;
  }
  if (request.method == allowed) return std::nullopt;
  const std::string where = request.method + " " + one_line(request.path);
  if (allowed.empty()) {
    return refusal(404, "There is no " + where + "; GET / lists what there is", "not_found");
  }
  Refusal refused =
      refusal(405, where + ": the method is not allowed; use " + allowed, "method_not_allowed");
  refused.headers = {{"Allow", allowed}};
  return refused;
}

}  // namespace

struct HttpServer::Impl {
  Impl(const Model& model, const Guard& guard, uint64_t max_body, bool log)
      : model(model), guard(guard), max_body(max_body), log(log) {
    http.set_payload_max_length(max_body);
    http.set_read_timeout(kReadSeconds);
    http.set_write_timeout(kWriteSeconds);
    http.set_tcp_nodelay(true);
    http.set_socket_options([](socket_t socket) {  // the options prevent two servers on one port
      httplib::set_socket_opt(socket, SOL_SOCKET, SO_REUSEADDR, 1);
    });
    http.set_pre_routing_handler(
        [this](const Request& request, Response& response) { return admit(request, response); });
    http.set_error_handler([this](const Request& request, Response& response) {
      if (response.body.empty()) explain(request, response);
    });
    http.set_exception_handler([](const Request&, Response& response, std::exception_ptr) {
      send(response, refusal(500, "The server has failed", "internal_error"));
    });
    http.set_logger(
        [this](const Request& request, const Response& response) { note(request, response); });
    add_routes();
  }

  void add_routes() {
    http.Get("/", [this](const Request&, Response& response) { index(response); });
    http.Get("/health", [](const Request&, Response& response) {
      send(response, json::make_dict({{"status", "ok"}}));
    });
    http.Get("/ready", [this](const Request&, Response& response) { ready(response); });
    http.Get("/stats",
             [this](const Request&, Response& response) { send(response, model.stats()); });
    for (const std::string version : kVersions) add_models(version);
    for (const Route& route : kRoutes) {
      if (route.endpoint) add_answer(route.path, *route.endpoint);
    }
  }

  void add_models(const std::string& version) {
    http.Get(version + "/models", [this](const Request&, Response& response) {
      send(response,
           json::make_dict({{"object", "list"}, {"data", json::make_list({described()})}}));
    });
    http.Get(version + "/models/(.+)", [this](const Request& request, Response& response) {
      const std::string name = request.matches[1];
      if (name == model.name()) return send(response, described());
      send(response, unknown_model(name, model.name()));
    });
  }

  void add_answer(const char* path, Endpoint endpoint) {
    http.Post(path, [this, endpoint](const Request& request, Response& response,
                                     const httplib::ContentReader& content) {
      std::string body;
      const bool read = content([&](const char* data, size_t size) {
        body.append(data, size);
        return true;
      });
      if (read) answer(endpoint, body, request, response);
    });
  }

  // Checks access to the server; runs before every route.
  httplib::Server::HandlerResponse admit(const Request& request, Response& response) {
    std::optional<Refusal> refused;
    if (in_flight.ending && !is_quiet(request.path)) {
      refused = refusal(503, "The server is shutting down", "shutting_down");
    }
    if (!refused) refused = guard.check(head_of(request));
    if (!refused) refused = check_route(request);
    if (!refused) return httplib::Server::HandlerResponse::Unhandled;
    send(response, *refused);
    return httplib::Server::HandlerResponse::Handled;
  }

  // Sets the body of errors that cpp-httplib itself raises.
  void explain(const Request& request, Response& response) const {
    if (response.status == 413) {
      const std::string most = std::to_string(max_body);
      return send(response, refusal(413,
                                    "The body has more than " + most + " bytes; at most " + most +
                                        " are accepted",
                                    "request_too_large"));
    }
    if (const auto refused = check_route(request)) return send(response, *refused);
    send(response, refusal(response.status, "The request cannot be read as HTTP", "bad_request"));
  }

  void note(const Request& request, const Response& response) const {
    if (!log || (is_quiet(request.path) && response.status < 400)) return;
    std::fprintf(stderr, "%s %s %s %d\n", request.remote_addr.c_str(),
                 one_line(request.method).c_str(), one_line(request.path).c_str(), response.status);
  }

  void index(Response& response) const {
    json::Values endpoints;
    for (const Route& route : kRoutes) {
      endpoints.emplace_back(std::string(route.method) + " " + route.path);
    }
    send(response, json::make_dict({{"server", "wherry-lite"},
                                    {"model", model.name()},
                                    {"models", json::make_list({model.name()})},
                                    {"endpoints", json::make_list(std::move(endpoints))}}));
  }

  void ready(Response& response) const {
    const bool ending = in_flight.ending;
    send(response, json::make_dict({{"ready", !ending}, {"status", ending ? "draining" : "ok"}}),
         ending ? 503 : 200);
  }

  Value described() const {
    json::Values inputs{"text"};
    if (model.reads_images()) inputs.emplace_back("image");
    return json::make_dict({{"id", model.name()},
                            {"object", "model"},
                            {"created", created},
                            {"owned_by", "wherry"},
                            {"max_model_len", model.context()},
                            {"root", model.name()},
                            {"input_modalities", json::make_list(std::move(inputs))}});
  }

  void answer(Endpoint endpoint, const std::string& text, const Request& request,
              Response& response) {
    try {
      const Body body = read_body(endpoint, text, model.name());
      const auto entry = std::make_shared<InFlight::Entry>(in_flight, model.start(body.json));
      // The first JSON object decides between a response and an HTTP error.
      bool gone = false;
      while (!(*entry)->wait(kLook)) {
        if (gone || !request.is_connection_closed()) continue;
        gone = true;
        (*entry)->abort();
      }
      Answer::Taken first = (*entry)->take();
      if (is_error(first.json.front())) throw failure(first.json.front(), in_flight.ending);
      if (body.stream) return stream(entry, std::move(first), response);
      response.status = 200;
      response.set_content(first.json.front(), kJson);
    } catch (const Refusal& refused) {
      send(response, refused);
    }
  }

  void stream(const std::shared_ptr<InFlight::Entry>& entry, Answer::Taken first,
              Response& response) {
    response.status = 200;
    response.set_header("Cache-Control", "no-cache");
    response.set_header("X-Accel-Buffering", "no");  // prevents proxies from buffering the events
    // Sends all events in one call, because a stopping server lets running calls finish.
    response.set_chunked_content_provider("text/event-stream; charset=utf-8",
                                          [this, entry, first](size_t, httplib::DataSink& sink) {
                                            return send_all(entry, first, sink);
                                          });
  }

  // Sends events; returns false if the client has disconnected.
  bool send_all(const std::shared_ptr<InFlight::Entry>& entry, Answer::Taken taken,
                httplib::DataSink& sink) const {
    while (true) {
      std::string events;
      for (const std::string& json : taken.json) {
        events += event(is_error(json) ? failure(json, in_flight.ending).json : json);
      }
      if (taken.last && !is_error(taken.json.back())) events += kDone;
      if (!events.empty() && !sink.write(events.data(), events.size())) return false;
      if (taken.last) break;
      while (!(*entry)->wait(kLook)) {
        if (!sink.is_writable()) return false;
      }
      taken = (*entry)->take();
    }
    sink.done();
    return true;
  }

  const Model& model;
  const Guard& guard;
  const uint64_t max_body;
  const bool log;
  const int64_t created = std::time(nullptr);
  InFlight in_flight;
  IdleServer http{kRequests};
};

HttpServer::HttpServer(const Model& model, const Guard& guard, uint64_t max_body, bool log)
    : impl_(std::make_unique<Impl>(model, guard, max_body, log)) {}

HttpServer::~HttpServer() = default;

int HttpServer::bind(const std::string& host, int port) {
  const int bound = port == 0                              ? impl_->http.bind_to_any_port(host)
                    : impl_->http.bind_to_port(host, port) ? port
                                                           : -1;
  if (bound > 0) return bound;
  throw std::runtime_error("cannot listen on " + host + ":" + std::to_string(port) +
                           ": it is taken, or no address of this machine. Choose another one: "
                           "--port N");
}

void HttpServer::listen() { impl_->http.listen_after_bind(); }

void HttpServer::stop() {
  impl_->in_flight.ending = true;
  impl_->http.stop();
}

void HttpServer::abort_all() { impl_->in_flight.abort_all(); }

}  // namespace wherry::lite
