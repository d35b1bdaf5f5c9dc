// The error of one request, with what OpenAI's error object carries.
#ifndef WHERRY_ENGINE_APP_CHAT_REQUEST_ERROR_H_
#define WHERRY_ENGINE_APP_CHAT_REQUEST_ERROR_H_

#include <stdexcept>
#include <string>

namespace wherry::app {

// A request cannot be served as it stands; the engine goes on.
class RequestError : public std::runtime_error {
 public:
  // param: the field at fault, "messages[0].content"; code: a name for programs. "" is none.
  explicit RequestError(const std::string& message, std::string param = "", std::string code = "")
      : std::runtime_error(message), param_(std::move(param)), code_(std::move(code)) {}
  const std::string& param() const { return param_; }
  const std::string& code() const { return code_; }

 private:
  std::string param_, code_;
};

// What ends a request that was right: {"error": {...}} with a type of its own.
std::string error_json(const std::string& message, const char* type, const std::string& param,
                       const std::string& code);
std::string error_json(const RequestError& error);

}  // namespace wherry::app

#endif  // WHERRY_ENGINE_APP_CHAT_REQUEST_ERROR_H_
