#include "app/chat/image_parts.h"

#include <algorithm>
#include <random>
#include <utility>

#include "app/request/request_error.h"

namespace wherry::app {

namespace {

using Items = std::vector<std::pair<Value, Value>>;

constexpr size_t kMaxImages = 32;                             // in a request
constexpr char kMoved[] = "The next message has the image.";  // a result that had nothing else

Detail detail_of(const Fields& image, const std::string& param) {
  const Value* detail = image.find("detail");
  if (detail == nullptr || json::equal(*detail, "auto")) return Detail::kFull;
  if (json::equal(*detail, "low")) return Detail::kLow;
  if (json::equal(*detail, "high") || json::equal(*detail, "original")) return Detail::kFull;
  throw RequestError(
      param + ".detail is " + json::repr(*detail) + "; it takes auto, low, high or original",
      param + ".detail");
}

// Returns the path of an image in the request of the protocol that it was translated from; "" if
// the request has OpenAI's shape.
std::string origin_of(const Fields& part) {
  const Value* image = part.find("image_url");
  const bool named = image != nullptr && image->is_dict();
  return named ? Fields(*image).text("origin") : "";
}

// Replaces each `from` in the text.
std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

Value with_text(const Value& message, std::string content) {
  Items items = message.dict().items;
  items.emplace_back("content", std::move(content));
  return json::make_dict(std::move(items));
}

}  // namespace

std::string new_mark() {
  std::random_device device;
  std::string result;
  for (int i = 0; i < 32; ++i) result += "0123456789abcdef"[device() % 16];
  return result;
}

std::vector<size_t> places_of(const std::string& text, const std::string& within) {
  std::vector<size_t> places;
  for (size_t at = 0; (at = within.find(text, at)) != within.npos; at += text.size()) {
    places.push_back(at);
  }
  return places;
}

ImageParts::ImageParts(const Vision* vision) : vision_(vision) {
  if (vision == nullptr) return;
  const std::string mark = new_mark();
  place_ = mark + "i";
  typed_ = mark + "t";
}

std::string ImageParts::placed(const Fields& part, const std::string& role,
                               const std::string& param) {
  const std::string type = part.text("type");
  const bool is_image = type == "image_url";
  const std::string origin = is_image ? origin_of(part) : "";
  const std::string field = param + ".image_url";
  const std::string& where = origin.empty() ? field : origin;
  const std::string type_field = origin.empty() ? param + ".type" : origin;
  if (!is_image) {
    throw RequestError("Content of type " + json::repr_text(type) +
                           " is not supported; this model reads text" +
                           (vision_ == nullptr ? "" : " and images (\"image_url\")"),
                       type_field, "unsupported_content");
  }
  if (vision_ == nullptr) {
    throw RequestError(where + " is not supported; this model reads text, and no images",
                       type_field, "unsupported_content");
  }
  if (vision_->processor == nullptr) {
    throw RequestError(
        "This model reads images, and this program does not read image files. Use wherry serve, "
        "wherry run or MLCEngine",
        type_field, "unsupported_content");
  }
  if (role != "user" && role != "tool") {
    throw RequestError(where + ": images are read in messages of the user and in results of " +
                           "tools; this one is of role " + json::repr_text(role),
                       origin.empty() ? param : origin, "unsupported_content");
  }
  const Value* image = part.find("image_url");
  const Value* url = image != nullptr && image->is_dict() ? image->dict().find("url") : nullptr;
  if (url == nullptr || !url->is_string()) {
    throw RequestError(field + R"( takes {"url": "data:image/png;base64,..."})", field);
  }
  const Detail detail = detail_of(Fields(*image), field);
  if (images_.size() == kMaxImages) {
    throw RequestError("The request has more than " + std::to_string(kMaxImages) + " images",
                       origin.empty() ? param : origin, "invalid_image");
  }
  images_.push_back({*url, origin.empty() ? field + ".url" : origin, detail});
  return place_;
}

Value ImageParts::content_of(const std::string& text) const {
  Values parts;
  const auto add = [&](const std::string& piece) {
    if (piece.empty()) return;
    parts.push_back(json::make_dict({{"type", "text"}, {"text", marked(piece)}}));
  };
  size_t from = 0;
  for (size_t at = 0; (at = text.find(place_, from)) != text.npos; from = at + place_.size()) {
    add(text.substr(from, at - from));
    parts.push_back(json::make_dict({{"type", "image"}}));
  }
  add(text.substr(from));
  return json::make_list(std::move(parts));
}

Value ImageParts::for_template(const Value& messages) const {
  if (images_.empty()) return messages;
  Values values;
  for (const Value& message : messages.items()) {
    Items items;
    for (const auto& [name, value] : message.dict().items) {
      const bool seen = name.text() == "content" && value.is_string() &&
                        value.text().find(place_) != std::string::npos;
      items.emplace_back(name, seen ? content_of(value.text()) : marked(value));
    }
    values.push_back(json::make_dict(std::move(items)));
  }
  return json::make_list(std::move(values));
}

bool ImageParts::fit(const std::string& rendered) const {
  return images_.empty() ||
         places_of(vision_->processor->placeholder(), rendered).size() == images_.size();
}

Values ImageParts::after_results(const Values& messages) const {
  Values result;
  std::string moved;  // marks of the images of the results before
  bool any = false;
  const auto push_user = [&] {
    result.push_back(json::make_dict({{"role", "user"}, {"content", std::exchange(moved, "")}}));
  };
  for (const Value& message : messages) {
    const Fields fields(message);
    const std::string role = fields.text("role"), content = fields.text("content");
    const size_t n = role == "tool" ? places_of(place_, content).size() : 0;
    any = any || n > 0;
    if (role != "tool" && !moved.empty()) {
      if (role == "user") {
        result.push_back(with_text(message, std::exchange(moved, "") + content));
        continue;
      }
      push_user();
    }
    if (n == 0) {
      result.push_back(message);
      continue;
    }
    const std::string text = replaced(content, place_, "");
    result.push_back(with_text(message, text.empty() ? kMoved : text));
    for (size_t i = 0; i < n; ++i) moved += place_;
  }
  if (!moved.empty()) push_user();
  return any ? result : Values();
}

Value ImageParts::marked(const Value& value) const {
  if (images_.empty()) return value;
  if (value.is_string()) {
    const std::string& placeholder = vision_->processor->placeholder();
    if (value.text().find(placeholder) == std::string::npos) return value;
    return replaced(value.text(), placeholder,
                    placeholder.substr(0, 1) + typed_ + placeholder.substr(1));
  }
  if (value.is_sequence()) {
    Values values;
    for (const Value& one : value.items()) values.push_back(marked(one));
    return json::make_list(std::move(values));
  }
  if (!value.is_dict()) return value;
  Items items;
  for (const auto& [name, one] : value.dict().items) items.emplace_back(marked(name), marked(one));
  return json::make_dict(std::move(items));
}

std::string ImageParts::unmarked(std::string text) const {
  return replaced(std::move(text), typed_, "");
}

}  // namespace wherry::app
