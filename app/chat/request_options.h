// What a host says of a request besides its fields.
#ifndef WHERRY_APP_CHAT_REQUEST_OPTIONS_H_
#define WHERRY_APP_CHAT_REQUEST_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace wherry::app {

struct RequestOptions {
  // What the request asks for: "chat", "completion" or a VectorTask; "": its fields tell.
  std::string task;
  std::string model;  // name of the model in the response; "": the request's
  // The client's key, which is a tenant, and its address, which stands for a user without a name.
  std::optional<std::string> key, peer;
  int64_t context = 0;        // maximum tokens of prompt and output together; 0: the model's
  std::string context_field;  // name of the field with `context`, for errors
  int64_t max_tokens = 0;     // maximum tokens of each output; 0: no further limit
  bool prompt_only = false;   // whether the prompt is computed, and nothing written
  bool in_parts = false;      // whether the response has the form of PartsReply
  size_t window = 0;          // jobs of a request for numbers that run at one time; 0: all
};

// Sets the core's numbers of the user and of the salt for a client. The engine takes the upper half
// of `user` for the tenant, so that naming many users gives no larger share; a tenant never hits
// another's cached prefix.
void set_owner(const RequestOptions& options, uint64_t& user, uint64_t& salt);

}  // namespace wherry::app

#endif  // WHERRY_APP_CHAT_REQUEST_OPTIONS_H_
