// What a host brings (host_abi.h), as C++ calls that throw.
#ifndef WHERRY_APP_HOST_SERVICES_H_
#define WHERRY_APP_HOST_SERVICES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "app/chat/core.h"
#include "app/host/host_abi.h"
#include "app/image/image.h"
#include "app/value/value.h"

struct wherry_host_bytes {
  std::string data;
};

namespace wherry::app {

class Services {
 public:
  explicit Services(const wherry_host_services& given) : given_(given) {}

  // Throw Error with the host's reason for a fault.
  // limit: see host_abi.h; throws text::TooManyTokens.
  std::vector<int32_t> encode(std::string_view text, bool add_special_tokens, int64_t limit) const;
  std::vector<int32_t> encode_pair(std::string_view first, std::string_view second) const;
  std::string decode(const std::vector<int32_t>& ids, bool skip_special_tokens) const;
  int64_t id_of(std::string_view name) const {
    return given_.id_of(given_.context, name.data(), name.size());
  }
  int token(int32_t id, std::string& piece, std::string& name) const;
  // Throws std::invalid_argument for an image that the host refuses.
  RgbImage decode_image(std::string_view file) const;
  // Also throws jinja::Refused and jinja::Abandoned.
  std::string render(int which, const std::string& json) const;
  void constrain(int64_t id, const std::string& json) const {
    given_.constrain(given_.context, id, json.data(), json.size());
  }
  void add(uint64_t id, const std::vector<int32_t>& prompt, const wherry_params& params) const;
  void abort(uint64_t id) const { given_.abort(given_.context, id); }
  void wake() const { given_.wake(given_.context); }

 private:
  const wherry_host_services given_;
};

// The engine of the host.
class ServiceCore : public Core {
 public:
  explicit ServiceCore(const Services& services) : services_(services) {}
  void add(uint64_t id, const std::vector<int32_t>& prompt, const wherry_params& params) override {
    services_.add(id, prompt, params);
  }
  void abort(uint64_t id) override { services_.abort(id); }
  void wake() override { services_.wake(); }

 private:
  const Services& services_;
};

}  // namespace wherry::app

#endif  // WHERRY_APP_HOST_SERVICES_H_
