#include "app/text/json/json.h"

#include <clocale>
#include <cstdlib>
#include <utility>

#include "app/value/code_points.h"
#include "app/value/json_scan.h"
#include "support/error.h"

namespace wherry::text {

using namespace unicode;
using json::read_string;
using json::skip_blank;
using json::skip_value;

namespace {

// Returns the path, such as ".model.merges[3]", of the value that begins at `target`.
std::string path_to(std::string_view text, size_t target) {
  std::string path, buffer;
  for (size_t at = skip_blank(text, 0); at != target;) {
    bool object = text[at] == '{';
    at = skip_blank(text, at + 1);
    for (size_t index = 0;; ++index) {
      std::string step = concat("[", index, "]");
      if (object) {
        step = concat(".", read_string(text, at, buffer));
        at = skip_blank(text, skip_blank(text, at) + 1);
      }
      size_t end = skip_value(text, at);
      if (target < end) {
        path += step;
        break;
      }
      at = skip_blank(text, skip_blank(text, end) + 1);
    }
  }
  return path;
}

}  // namespace

Json Json::parse(std::string_view text) {
  if (!is_well_formed(text)) {
    throw Error(WHERRY_INVALID_ARGUMENT, "tokenizer.json is not UTF-8");
  }
  json::JsonRules rules;
  rules.constants = false;
  if (const auto error = json::json_error(text, rules)) {
    throw Error(WHERRY_INVALID_ARGUMENT, concat("tokenizer.json is not JSON: ", *error));
  }
  return Json(text, skip_blank(text, 0), text.find_last_not_of(" \t\n\r") + 1);
}

void Json::fail(const std::string& problem) const {
  constexpr size_t kShown = 80;
  std::string value(text_.substr(begin_, end_ - begin_));
  if (value.size() > kShown) {
    size_t cut = kShown;
    while (is_continuation(value[cut])) --cut;
    value = value.substr(0, cut) + "...";
  }
  throw Error(WHERRY_INVALID_ARGUMENT,
              concat("tokenizer.json", path_to(text_, begin_), " is ", value, ": ", problem));
}

void Json::expect(bool right, const char* what) const {
  if (!right) fail(concat("it must be ", what));
}

void Json::members(const std::function<void(std::string_view, const Json&)>& each) const {
  expect(is_object(), "an object");
  std::string buffer;
  for (size_t at = skip_blank(text_, begin_ + 1); text_[at] != '}';) {
    std::string_view key = read_string(text_, at, buffer);
    at = skip_blank(text_, skip_blank(text_, at) + 1);
    size_t end = skip_value(text_, at);
    each(key, Json(text_, at, end));
    at = skip_blank(text_, end);
    if (text_[at] == ',') at = skip_blank(text_, at + 1);
  }
}

void Json::elements(const std::function<void(const Json&)>& each) const {
  expect(is_array(), "a list");
  for (size_t at = skip_blank(text_, begin_ + 1); text_[at] != ']';) {
    size_t end = skip_value(text_, at);
    each(Json(text_, at, end));
    at = skip_blank(text_, end);
    if (text_[at] == ',') at = skip_blank(text_, at + 1);
  }
}

std::vector<Json> Json::elements() const {
  std::vector<Json> all;
  elements([&](const Json& value) { all.push_back(value); });
  return all;
}

struct Json::Fields {
  std::vector<std::pair<std::string, Json>> all;
};

// Finds a field. Caches the positions of all fields: a search for the last field would scan the
// vocabulary each time.
std::optional<Json> Json::field(std::string_view key) const {
  if (!fields_) {
    auto match = std::make_shared<Fields>();
    members(
        [&](std::string_view name, const Json& value) { match->all.emplace_back(name, value); });
    fields_ = std::move(match);
  }
  for (auto each = fields_->all.rbegin(); each != fields_->all.rend(); ++each) {
    if (each->first == key) return each->second;
  }
  return std::nullopt;
}

std::optional<Json> Json::find(std::string_view key) const {
  auto match = field(key);
  return match && match->is_null() ? std::nullopt : match;
}

Json Json::at(std::string_view key) const {
  auto match = field(key);
  if (!match) fail(concat("it lacks \"", key, "\""));
  return *match;
}

std::string Json::string() const {
  expect(is_string(), "a string");
  std::string buffer;
  size_t at = begin_;
  return std::string(read_string(text_, at, buffer));
}

int64_t Json::integer() const {
  int64_t value = 0;
  size_t at = begin_ + (first() == '-');
  for (; at < end_ && end_ - begin_ < 18; ++at) {
    if (text_[at] < '0' || text_[at] > '9') break;
    value = value * 10 + (text_[at] - '0');
  }
  expect(at == end_, "an integer");
  return first() == '-' ? -value : value;
}

double Json::number() const {
  expect(first() == '-' || (first() >= '0' && first() <= '9'), "a number");
  std::string digits(text_.substr(begin_, end_ - begin_));
  // Inserts the locale's decimal point, which strtod expects; some standard libraries lack
  // from_chars for doubles.
  if (size_t point = digits.find('.'); point != std::string::npos) {
    digits.replace(point, 1, std::localeconv()->decimal_point);
  }
  return std::strtod(digits.c_str(), nullptr);
}

bool Json::boolean() const {
  expect(first() == 't' || first() == 'f', "true or false");
  return first() == 't';
}

char32_t Json::character() const {
  std::string text = string();
  expect(count_code_points(text) == 1, "a string of one character");
  size_t at = 0;
  return next_code_point(text, at);
}

int32_t Json::id() const {
  int64_t value = integer();
  if (value < 0 || value >= kMostIds) fail(concat("ids go from 0 to ", kMostIds - 1));
  return static_cast<int32_t>(value);
}

bool Json::boolean_or(std::string_view key, bool otherwise) const {
  auto value = find(key);
  return value ? value->boolean() : otherwise;
}

std::string Json::string_or(std::string_view key, std::string otherwise) const {
  auto value = find(key);
  return value ? value->string() : std::move(otherwise);
}

}  // namespace wherry::text
