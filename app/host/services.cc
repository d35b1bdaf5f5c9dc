#include "app/host/services.h"

#include <cstring>
#include <stdexcept>

#include "app/template/chat_template.h"
#include "app/text/tokenizer.h"
#include "support/error.h"

namespace wherry::app {

namespace {

// Throws the error of a service's status. bytes: what the service returned.
void check_service(int status, const std::string& bytes) {
  if (status == WHERRY_HOST_OK) return;
  if (status == WHERRY_HOST_GONE) throw jinja::Abandoned();
  if (status == WHERRY_HOST_REFUSED) throw jinja::Refused(bytes);
  throw Error(WHERRY_INTERNAL, bytes);
}

std::vector<int32_t> numbers_of(const std::string& bytes) {
  std::vector<int32_t> result(bytes.size() / sizeof(int32_t));
  if (!result.empty()) std::memcpy(result.data(), bytes.data(), result.size() * sizeof(int32_t));
  return result;
}

}  // namespace

std::vector<int32_t> Services::encode(std::string_view text, bool add_special_tokens,
                                      int64_t limit) const {
  wherry_host_bytes ids;
  const int status =
      given_.encode(given_.context, text.data(), text.size(), add_special_tokens, limit, &ids);
  if (status == WHERRY_HOST_TOO_MANY) {
    text::TooManyTokens many{};
    std::memcpy(&many.at_least, ids.data.data(), sizeof many.at_least);
    throw many;
  }
  check_service(status, ids.data);
  return numbers_of(ids.data);
}

std::vector<int32_t> Services::encode_pair(std::string_view first, std::string_view second) const {
  wherry_host_bytes numbers;
  check_service(given_.encode_pair(given_.context, first.data(), first.size(), second.data(),
                                   second.size(), &numbers),
                numbers.data);
  return numbers_of(numbers.data);
}

std::string Services::decode(const std::vector<int32_t>& ids, bool skip_special_tokens) const {
  wherry_host_bytes text;
  check_service(given_.decode(given_.context, ids.data(), ids.size(), skip_special_tokens, &text),
                text.data);
  return std::move(text.data);
}

int Services::token(int32_t id, std::string& piece, std::string& name) const {
  wherry_host_bytes piece_bytes, name_bytes;
  const int kind = given_.token(given_.context, id, &piece_bytes, &name_bytes);
  piece = std::move(piece_bytes.data);
  name = std::move(name_bytes.data);
  return kind;
}

RgbImage Services::decode_image(std::string_view file) const {
  wherry_host_bytes rgb;
  RgbImage image;
  int32_t width = 0, height = 0;
  const int status =
      given_.decode_image(given_.context, file.data(), file.size(), &rgb, &width, &height);
  if (status == WHERRY_HOST_REFUSED) throw std::invalid_argument(rgb.data);
  check_service(status, rgb.data);
  const auto pixels = static_cast<uint64_t>(width) * static_cast<uint64_t>(height);
  if (width < 1 || height < 1 || rgb.data.size() != 3 * pixels) {
    throw Error(WHERRY_INTERNAL, "the host returns an image of another size than it says");
  }
  image.width = width;
  image.height = height;
  image.pixels.assign(rgb.data.begin(), rgb.data.end());
  return image;
}

std::string Services::render(int which, const std::string& json) const {
  wherry_host_bytes text;
  check_service(given_.render(given_.context, which, json.data(), json.size(), &text), text.data);
  return std::move(text.data);
}

void Services::add(uint64_t id, const std::vector<int32_t>& prompt,
                   const wherry_params& params) const {
  wherry_host_bytes error;
  const int status = given_.add(given_.context, id, prompt.data(), prompt.size(), &params, &error);
  if (status != WHERRY_OK) throw Error(static_cast<wherry_status>(status), error.data);
}

}  // namespace wherry::app
