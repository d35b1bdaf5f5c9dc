#include "app/request/request_error.h"

#include "app/template/json_text.h"

namespace wherry::app {

namespace {

jinja::Value or_null(const std::string& text) {
  return text.empty() ? jinja::Value() : jinja::Value(text);
}

}  // namespace

std::string error_json(const std::string& message, const char* type, const std::string& param,
                       const std::string& code) {
  const jinja::Value inner = jinja::make_dict(
      {{"message", message}, {"type", type}, {"param", or_null(param)}, {"code", or_null(code)}});
  return jinja::to_compact_json(jinja::make_dict({{"error", inner}}));
}

std::string error_json(const RequestError& error) {
  return error_json(error.what(), "invalid_request_error", error.param(), error.code());
}

}  // namespace wherry::app
