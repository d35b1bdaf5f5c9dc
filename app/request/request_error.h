// The error of one request, with the members of OpenAI's error object.
#ifndef WHERRY_APP_REQUEST_REQUEST_ERROR_H_
#define WHERRY_APP_REQUEST_REQUEST_ERROR_H_

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

namespace wherry::app {

// The tokens of a request that exceeds the context.
struct Overflow {
  int64_t context, prompt, output;
};

// The error for an invalid request; the engine keeps running.
class RequestError : public std::runtime_error {
 public:
  // param: path of the invalid field, e.g. "messages[0].content". code: a machine-readable name.
  // Both may be "".
  explicit RequestError(const std::string& message, std::string param = "", std::string code = "")
      : std::runtime_error(message), param_(std::move(param)), code_(std::move(code)) {}
  const std::string& param() const { return param_; }
  const std::string& code() const { return code_; }
  std::optional<Overflow> overflow;

 private:
  std::string param_, code_;
};

// Returns the JSON of an error that is not the request's fault: {"error": {...}} with its own type.
std::string error_json(const std::string& message, const char* type, const std::string& param,
                       const std::string& code);
std::string error_json(const RequestError& error);

}  // namespace wherry::app

#endif  // WHERRY_APP_REQUEST_REQUEST_ERROR_H_
