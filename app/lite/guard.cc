#include "app/lite/guard.h"

#include <arpa/inet.h>

#include <algorithm>

#include "app/request/request_error.h"
#include "app/value/code_points.h"
#include "app/value/value.h"

namespace wherry::lite {

namespace {

constexpr size_t kShown = 100;  // upper bound on the characters of a header in an error message

std::string lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  }
  return text;
}

std::string trim(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t");
  return begin == text.npos ? "" : text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

std::string shown(const std::string& text) {
  const std::string characters = unicode::well_formed(text);
  return json::repr_text(characters.substr(0, unicode::byte_of(characters, kShown)));
}

// Compares two texts; takes constant time for texts of one length.
bool same(const std::string& a, const std::string& b) {
  unsigned different = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size(); ++i) {
    different |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i % b.size()]);
  }
  return different == 0;
}

bool is_address(const std::string& name) {
  unsigned char bytes[sizeof(in6_addr)];
  return inet_pton(AF_INET, name.c_str(), bytes) == 1 ||
         inet_pton(AF_INET6, name.c_str(), bytes) == 1;
}

// Returns the host of "name:port" or "[::1]:port" in lower case.
std::string name_of(const std::string& host) {
  std::string name =
      host[0] == '[' ? host.substr(1, host.find(']') - 1) : host.substr(0, host.find(':'));
  while (!name.empty() && name.back() == '.') name.pop_back();
  return lower(name);
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

std::optional<Refusal> check_content(const RequestHead& head) {
  if (head.method != "POST" || head.body == 0) return std::nullopt;
  const std::string kind = lower(trim(head.content_type.substr(0, head.content_type.find(';'))));
  const bool json = kind.rfind("application/", 0) == 0 && ends_with(kind, "+json");
  if (kind == "application/json" || json) return std::nullopt;
  return refusal(
      415, "The body's type is " + shown(kind) + "; send the header Content-Type: application/json",
      "unsupported_media_type");
}

}  // namespace

Refusal refusal(int status, const std::string& message, const std::string& code,
                const std::string& param) {
  const char* type = status == 401   ? "authentication_error"
                     : status == 429 ? "rate_limit_error"
                     : status >= 500 ? "server_error"
                                     : "invalid_request_error";
  return {status, app::error_json(message, type, param, code)};
}

Guard::Guard(std::string key, std::vector<std::string> hosts, uint64_t max_body)
    : key_(std::move(key)), max_body_(max_body) {
  for (const std::string& host : hosts) hosts_.push_back(name_of(host));
}

std::optional<Refusal> Guard::check(const RequestHead& head) const {
  const bool probe = head.path == "/health" || head.path == "/ready";
  if (key_.empty()) {
    if (auto refused = check_page(head)) return refused;
  } else if (!probe) {
    if (auto refused = check_key(head)) return refused;
  }
  if (head.body > max_body_) {
    return refusal(413,
                   "The body has " + std::to_string(head.body) + " bytes or more; at most " +
                       std::to_string(max_body_) + " are accepted",
                   "request_too_large");
  }
  return check_content(head);
}

std::optional<Refusal> Guard::check_key(const RequestHead& head) const {
  const size_t space = head.authorization.find(' ');
  const bool bearer = lower(head.authorization.substr(0, space)) == "bearer";
  const std::string token =
      space == std::string::npos ? "" : trim(head.authorization.substr(space));
  if (same(bearer ? token : head.x_api_key, key_)) return std::nullopt;
  Refusal refused =
      refusal(401, "The API key is missing or wrong; send it as: Authorization: Bearer KEY",
              "invalid_api_key");
  refused.headers = {{"WWW-Authenticate", "Bearer"}};
  return refused;
}

std::optional<Refusal> Guard::check_page(const RequestHead& head) const {
  if (!head.host.empty() && !is_own_name(head.host)) {
    return refusal(403,
                   "This server does not know itself as " + shown(head.host) +
                       ": a page may have given that name to this machine. Start it with "
                       "--allow-host NAME, or with an API key.",
                   "host_not_allowed");
  }
  const std::string origin = lower(head.origin);
  if (origin.empty() || origin == "http://" + lower(head.host)) return std::nullopt;
  return refusal(403, "Pages of " + shown(origin) + " may not use this server.",
                 "origin_not_allowed");
}

bool Guard::is_own_name(const std::string& host) const {
  if (host.find('@') != host.npos) return false;
  const std::string name = name_of(host);
  return name == "localhost" || ends_with(name, ".localhost") || is_address(name) ||
         std::find(hosts_.begin(), hosts_.end(), name) != hosts_.end();
}

bool is_loopback(const std::string& host) {
  if (host == "localhost") return true;
  const std::string name = host.rfind('[', 0) == 0 ? name_of(host) : host;
  unsigned char bytes[sizeof(in6_addr)];
  if (inet_pton(AF_INET, name.c_str(), bytes) == 1) return bytes[0] == 127;
  if (inet_pton(AF_INET6, name.c_str(), bytes) != 1) return false;
  const bool zeros = std::all_of(bytes, bytes + 15, [](unsigned char byte) { return byte == 0; });
  return zeros && bytes[15] == 1;
}

}  // namespace wherry::lite
