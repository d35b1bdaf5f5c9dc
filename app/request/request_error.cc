#include "app/request/request_error.h"

#include "app/value/json_text.h"

namespace wherry::app {

namespace {

json::Value or_null(const std::string& text) {
  return text.empty() ? json::Value() : json::Value(text);
}

}  // namespace

std::string error_json(const std::string& message, const char* type, const std::string& param,
                       const std::string& code) {
  const json::Value inner = json::make_dict(
      {{"message", message}, {"type", type}, {"param", or_null(param)}, {"code", or_null(code)}});
  return json::to_compact_json(json::make_dict({{"error", inner}}));
}

std::string error_json(const RequestError& error) {
  return error_json(error.what(), "invalid_request_error", error.param(), error.code());
}

}  // namespace wherry::app
