// Controls access to the server. Without an API key it
// rejects requests from other sites' pages, because a browser lets any page send requests to
// http://127.0.0.1:8000.
#ifndef WHERRY_APP_LITE_GUARD_H_
#define WHERRY_APP_LITE_GUARD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace wherry::lite {

// An HTTP error in the shape of OpenAI's errors.
struct Refusal {
  int status;
  std::string json;
  std::vector<std::pair<std::string, std::string>> headers = {};
};
Refusal refusal(int status, const std::string& message, const std::string& code,
                const std::string& param = "");

// The properties of a request that the guard checks; "" if a header is missing.
struct RequestHead {
  std::string method, path;
  std::string host, origin, authorization, x_api_key, content_type;
  uint64_t body = 0;  // announced size of the body in bytes; 1 if unknown
};

class Guard {
 public:
  // key: the API key; "" if requests need none, and are checked by Host and Origin. hosts: names of
  // this machine in addition to localhost and IP addresses. max_body: bytes.
  Guard(std::string key, std::vector<std::string> hosts, uint64_t max_body);
  std::optional<Refusal> check(const RequestHead& head) const;

 private:
  std::optional<Refusal> check_key(const RequestHead& head) const;
  std::optional<Refusal> check_page(const RequestHead& head) const;
  bool is_own_name(const std::string& host) const;

  const std::string key_;
  std::vector<std::string> hosts_;
  const uint64_t max_body_;
};

// Whether a listening address is reachable from this machine only.
bool is_loopback(const std::string& host);

}  // namespace wherry::lite

#endif  // WHERRY_APP_LITE_GUARD_H_
