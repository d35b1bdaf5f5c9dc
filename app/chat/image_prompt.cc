#include "app/chat/image_prompt.h"

#include <algorithm>
#include <stdexcept>

#include "app/chat/limits.h"
#include "app/request/request_error.h"
#include "app/value/base64.h"

namespace wherry::app {

namespace {

constexpr size_t kMaxBytes = size_t{20} << 20;  // of an image file, as OpenAI has it
constexpr char kForm[] = "an image is sent as a data: URL, \"data:image/png;base64,...\"";

bool starts_with(std::string_view text, std::string_view with) {
  if (text.size() < with.size()) return false;
  return std::equal(with.begin(), with.end(), text.begin(), [](char a, char b) {
    return a == (b >= 'A' && b <= 'Z' ? static_cast<char>(b + ('a' - 'A')) : b);
  });
}

// Returns the file in a data: URL.
std::string file_of(const std::string& url, const std::string& param) {
  const std::string shown = json::repr_text(std::string_view(url).substr(0, 40));
  if (!starts_with(url, "data:")) {
    const bool address = url.find("://") != url.npos;
    const std::string reason = address ? ": images are not fetched from addresses (" + shown + "); "
                                       : " is " + shown + "; ";
    throw RequestError(param + reason + kForm, param,
                       address ? "unsupported_content" : "invalid_image");
  }
  const size_t comma = url.find(',');
  const std::string_view head = std::string_view(url).substr(0, std::min(comma, url.size()));
  constexpr std::string_view kBase64 = ";base64";
  if (comma == url.npos || head.size() < kBase64.size() ||
      !starts_with(head.substr(head.size() - kBase64.size()), kBase64)) {
    throw RequestError(param + " is " + shown + "; " + kForm, param, "invalid_image");
  }
  const std::string_view text = std::string_view(url).substr(comma + 1);
  std::string file;
  if (text.size() / 4 * 3 > kMaxBytes + kMaxBytes / 16) {  // with room for the ends of lines
    throw RequestError(param + " has an image of more than 20 MiB", param, "invalid_image");
  }
  if (const size_t wrong = decode_base64(text, file); wrong != text.npos) {
    throw RequestError(
        param + " is not base64: " +
            (wrong == text.size() ? "it ends too early"
                                  : "character " + std::to_string(wrong) + " of it is wrong"),
        param, "invalid_image");
  }
  if (file.size() > kMaxBytes) {
    throw RequestError(
        param + " has an image of " + std::to_string(file.size()) + " bytes; it takes up to 20 MiB",
        param, "invalid_image");
  }
  if (file.empty()) throw RequestError(param + " has an empty image", param, "invalid_image");
  return file;
}

// The text of a prompt in which images have taken the places of their placeholders.
struct Expanded {
  std::string text;
  std::vector<size_t> begins;  // for each span of a tile, where its soft tokens begin
  std::vector<std::shared_ptr<const PreparedImage>> images;
};

Expanded expanded(const std::string& rendered, const ImageParts& parts, RequestImages& images,
                  const Model& model, const std::function<bool()>& gone) {
  const std::string& placeholder = images.vision()->processor->placeholder();
  const std::string& soft_token = images.vision()->processor->soft_token();
  const std::vector<size_t> places = places_of(placeholder, rendered);
  const size_t n = parts.images().size();
  if (places.size() != n) {
    throw RequestError("The model's chat template writes " + std::to_string(places.size()) +
                           " places for the " + std::to_string(n) + " images of the messages",
                       "messages", "chat_template");
  }
  Expanded result;
  size_t from = 0;
  int64_t rows = 0;
  for (size_t i = 0; i < n; ++i) {
    if (gone && gone()) throw jinja::Abandoned();
    const auto& image = result.images.emplace_back(images.prepared(parts.images()[i]));
    for (const PromptPart& part : image->prompt) rows += part.rows;
    require_room(model, rows);  // before further images are decoded
    result.text += parts.unmarked(rendered.substr(from, places[i] - from));
    for (const PromptPart& part : image->prompt) {
      if (part.tile < 0) {
        result.text += part.text;
        continue;
      }
      result.begins.push_back(result.text.size());
      for (int64_t k = 0; k < part.rows; ++k) result.text += soft_token;
    }
    from = places[i] + placeholder.size();
  }
  result.text += parts.unmarked(rendered.substr(from));
  return result;
}

// Returns the indices of the soft tokens at which spans of tiles begin. The k-th soft token of the
// text, of an image or typed, is the k-th of its ids.
std::vector<size_t> firsts_of(const Expanded& expanded, const std::vector<int32_t>& ids,
                              const Vision& vision) {
  std::vector<size_t> at;  // of the soft token's ids
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] == vision.token) at.push_back(i);
  }
  const std::string& soft_token = vision.processor->soft_token();
  const std::vector<size_t> places = places_of(soft_token, expanded.text);
  if (at.size() != places.size()) {
    throw RequestError("The prompt has " + soft_token + " " + std::to_string(places.size()) +
                           " times, and the model's tokenizer makes " + std::to_string(at.size()) +
                           " tokens of them",
                       "messages", "chat_template");
  }
  std::vector<size_t> firsts;
  for (const size_t begin : expanded.begins) {
    const auto place = std::lower_bound(places.begin(), places.end(), begin);
    if (place == places.end() || *place != begin) {
      throw RequestError("The text before an image ends in a part of " + soft_token, "messages",
                         "chat_template");
    }
    firsts.push_back(at[static_cast<size_t>(place - places.begin())]);
  }
  return firsts;
}

// Returns null for no elements.
template <typename Element>
const Element* data_of(const std::vector<Element>& elements) {
  return elements.empty() ? nullptr : elements.data();
}

std::shared_ptr<const PromptImages> spans_of(Expanded expanded, const std::vector<int32_t>& ids,
                                             const Vision& vision) {
  const std::vector<size_t> firsts = firsts_of(expanded, ids, vision);
  auto result = std::make_shared<PromptImages>();
  result->images = std::move(expanded.images);
  for (const auto& image : result->images) {
    for (const PromptPart& part : image->prompt) {
      if (part.tile < 0) continue;
      const Tile& tile = image->tiles[static_cast<size_t>(part.tile)];
      wherry_image span{};
      span.first = firsts[result->spans.size()];
      span.rows = static_cast<size_t>(part.rows);
      std::copy(tile.digest.begin(), tile.digest.end(), span.digest);
      span.patches = tile.patches.data();
      span.n_patches = static_cast<size_t>(tile.patch_count);
      span.patch_bytes = tile.patches.size() / span.n_patches;
      span.levels = image->levels.data();
      span.positions = data_of(tile.positions);
      span.taps = static_cast<size_t>(tile.taps);
      span.position_weights = data_of(tile.position_weights);
      span.coordinates = data_of(tile.coordinates);
      span.first_feature = static_cast<size_t>(part.first_row);
      span.features = static_cast<size_t>(tile.rows);
      span.grid_rows = static_cast<size_t>(tile.grid_rows);
      span.grid_columns = static_cast<size_t>(tile.grid_columns);
      result->spans.push_back(span);
    }
  }
  return result;
}

}  // namespace

std::shared_ptr<const PreparedImage> RequestImages::prepared(const ImagePart& part) {
  auto& known = prepared_[part.url.object().get()];
  if (known) return known;
  const std::string file = file_of(part.url.text(), part.param);
  try {
    known = std::make_shared<const PreparedImage>(
        vision_->processor->prepare(vision_->decode(file), part.detail));
  } catch (const std::invalid_argument& error) {
    throw RequestError(part.param + ": the image cannot be read: " + error.what(), part.param,
                       "invalid_image");
  }
  return known;
}

ChatPrompt prompt_of(const ChatTools& tools, const Model& model, RequestImages& images,
                     const std::function<bool()>& gone, bool add_special_tokens, Texts* changes) {
  ChatPrompt result{tools.rendered(gone, changes), {}, nullptr};
  const ImageParts& parts = tools.images();
  if (parts.images().empty()) {
    result.ids = encoded(model, result.text, "messages", add_special_tokens);
    return result;
  }
  Expanded full = expanded(result.text, parts, images, model, gone);
  result.text = full.text;
  result.ids = encoded(model, result.text, "messages", add_special_tokens);
  result.images = spans_of(std::move(full), result.ids, *images.vision());
  return result;
}

}  // namespace wherry::app
