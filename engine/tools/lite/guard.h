// Who may ask the server, as runtime_py/server/guard has it. Without a key pages of other sites are
// kept away: a browser lets any page send requests to http://127.0.0.1:8000.
#ifndef WHERRY_ENGINE_TOOLS_LITE_GUARD_H_
#define WHERRY_ENGINE_TOOLS_LITE_GUARD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace wherry::lite {

// An answer that is an error, in OpenAI's shape.
struct Refusal {
  int status;
  std::string json;
  std::vector<std::pair<std::string, std::string>> headers = {};
};
Refusal refusal(int status, const std::string& message, const std::string& code,
                const std::string& param = "");

// What the guard looks at; "" is a header that was not sent.
struct Asked {
  std::string method, path;
  std::string host, origin, authorization, x_api_key, content_type;
  uint64_t body = 0;  // bytes that are announced; 1 where it is not known how many
};

class Guard {
 public:
  // key: "": none is asked for, and requests are refused by Host and Origin. hosts: names of this
  // machine beside localhost and any IP address. max_body: bytes.
  Guard(std::string key, std::vector<std::string> hosts, uint64_t max_body);
  std::optional<Refusal> check(const Asked& asked) const;

 private:
  std::optional<Refusal> check_key(const Asked& asked) const;
  std::optional<Refusal> check_page(const Asked& asked) const;
  bool is_ours(const std::string& host) const;

  const std::string key_;
  std::vector<std::string> hosts_;
  const uint64_t max_body_;
};

// Whether an address to listen on is this machine's alone.
bool is_loopback(const std::string& host);

}  // namespace wherry::lite

#endif  // WHERRY_ENGINE_TOOLS_LITE_GUARD_H_
