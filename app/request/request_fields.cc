// Validates fields in the order of app/data/request_fields.json, with a reader for each kind.
#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "app/data/data.h"
#include "app/request/complete_characters.h"
#include "app/request/fields.h"
#include "app/request/input_fields.h"
#include "app/request/request_error.h"
#include "app/request/tool_fields.h"
#include "app/value/json_text.h"
#include "wherry.h"

namespace wherry::app {

namespace {

constexpr double kInt31 = 2147483648.0;  // 2^31, the end of the range of 32-bit integers
constexpr size_t kLongText = 1024, kStops = 1024, kBiases = 4096, kAllowed = size_t{1} << 18;
constexpr size_t kMostFields = 256;

const Value& data() {
  static const Value kData = json::from_json(data::kRequestFields);
  return kData;
}

std::optional<double> bound(const Value& row, const char* name) {
  const Value* match = row.dict().find(name);
  return match ? std::optional<double>(match->number()) : std::nullopt;
}

Bounds bounds_of(const Value& row) {
  return {bound(row, "least"), bound(row, "above"), bound(row, "most"), bound(row, "below")};
}

size_t size_of(const Value& row, const char* name) {
  return static_cast<size_t>(bound(row, name).value_or(0));
}

bool has(const Value& row, const char* name) { return row.dict().find(name) != nullptr; }

// Whether a list of the row has the value.
bool lists(const Value& row, const char* name, const Value& value) {
  const Value* list = row.dict().find(name);
  return list != nullptr && std::any_of(list->items().begin(), list->items().end(),
                                        [&](const Value& v) { return equal(v, value); });
}

// Returns the path of an item of an object. Keys that are no names in programs, such as numbers,
// are left out, as the server does.
std::string place_of(const std::string& field, const std::string& key) {
  const auto is_part = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return c == '_' || byte >= 0x80 || std::isalnum(byte) != 0;
  };
  const bool named = !key.empty() && std::all_of(key.begin(), key.end(), is_part) &&
                     std::isdigit(static_cast<unsigned char>(key[0])) == 0;
  return named && key != "str" && key != "int" ? field + "." + key : field;
}

// Reads and validates the fields of one request.
class Reader {
 public:
  explicit Reader(const Value& request) : given_(request) {}

  // Reads a group of fields. later: a group whose rows override rows of the same name.
  void group(const char* name, const char* later = nullptr) {
    const std::string_view group = name;
    names_agree_ = group == "sampling" || group == "shared" || group == "completion";
    for (const Value& row : data().dict().find(std::string_view(name))->items()) {
      if (later == nullptr || row_of(later, field(row)) == nullptr) {
        read(row);
      } else {
        read(*row_of(later, field(row)));
      }
    }
  }

  // Whether the field is one of the groups that were read.
  bool reads(const std::string& name) const { return seen_.count(name) > 0; }

  Fields done() {
    check_.raise();
    std::vector<std::pair<Value, Value>> items = given_.dict().items;
    for (auto& item : replaced_) items.push_back(std::move(item));  // replaces the original fields
    return Fields(json::make_dict(std::move(items)), unknown());
  }

 private:
  // Returns the names of fields that no group has, and of unknown fields of content parts, and of
  // image_url's `detail` where it asks for more than "auto" does: an image is read in full anyway.
  std::vector<std::string> unknown() const {
    std::set<std::string> names;
    for (const auto& [name, value] : given_.dict().items) {
      if (!value.is_none() && !reads(name.text())) names.insert(name.text());
    }
    const Value* messages = reads("messages") ? given_.dict().find("messages") : nullptr;
    for (const Value& message : messages != nullptr ? messages->items() : Values()) {
      const Value* content = message.dict().find("content");
      if (content == nullptr || !content->is(json::Kind::kList)) continue;
      for (const Value& part : content->items()) {
        for (const auto& [name, value] : part.dict().items) {
          if (value.is_none() || name.text() == "type" || name.text() == "text") continue;
          if (name.text() != "image_url") {
            names.insert("messages.content." + name.text());
            continue;
          }
          const Value* detail = value.is_dict() ? value.dict().find("detail") : nullptr;
          if (detail != nullptr && !detail->is_none() && !json::equal(*detail, "auto") &&
              !json::equal(*detail, "low")) {
            names.insert("messages.content.image_url.detail");
          }
        }
      }
    }
    return {names.begin(), names.end()};
  }

  using Kind = void (Reader::*)(const std::string& name, const Value& value, const Value& row);

  static const std::string& field(const Value& row) { return row.dict().find("name")->text(); }

  static const Value* row_of(const char* group, const std::string& name) {
    for (const Value& row : data().dict().find(std::string_view(group))->items()) {
      if (field(row) == name) return &row;
    }
    return nullptr;
  }

  void read(const Value& row) {
    static const std::map<std::string, Kind> kKinds = {
        {"biases", &Reader::biases},
        {"documents", &Reader::documents},
        {"flag", &Reader::flag},
        {"form", &Reader::object},
        {"integer", &Reader::integer},
        {"messages", &Reader::messages},
        {"number", &Reader::number},
        {"object", &Reader::object},
        {"objects", &Reader::objects},
        {"one_of", &Reader::one_of},
        {"prediction", &Reader::prediction},
        {"prompt", &Reader::prompt},
        {"prompt_logprobs", &Reader::prompt_logprobs},
        {"schema", &Reader::schema},
        {"stops", &Reader::stops},
        {"stream_options", &Reader::stream_options},
        {"text", &Reader::text},
        {"texts", &Reader::texts},
        {"token_ids", &Reader::token_ids},
        {"tool_choice", &Reader::tool_choice},
        {"tools", &Reader::tools},
        {"words", &Reader::words},
    };
    const std::string& name = field(row);
    if (!seen_.insert(name).second) return;
    const std::string given = given_name(row);
    for (const std::string& other : other_names(row)) seen_.insert(other);
    const Value* value = given_.dict().find(std::string_view(given));
    if (value == nullptr && has(row, "required")) return check_.missing(name);
    if (value == nullptr || (value->is_none() && !has(row, "required"))) return;
    if (given != name) keep(name, *value);
    (this->*kKinds.at(row.dict().find("kind")->text()))(given, *value, row);
  }

  static std::vector<std::string> other_names(const Value& row) {
    std::vector<std::string> texts;
    const Value* also = row.dict().find("also");
    for (const Value& other : also != nullptr ? also->items() : Values()) {
      texts.push_back(other.text());
    }
    return texts;
  }

  // Returns the name of a row's field in the request: the first one that has a value. Throws
  // RequestError if two names of a field of chats or completions have different values.
  std::string given_name(const Value& row) const {
    const std::string& name = field(row);
    const Value* first = given_.dict().find(std::string_view(name));
    if (first != nullptr && first->is_none()) first = nullptr;
    std::string match = name;
    for (const std::string& other : other_names(row)) {
      const Value* value = given_.dict().find(std::string_view(other));
      if (value == nullptr || value->is_none() || lists(row, "none", *value)) continue;
      if (names_agree_ && first != nullptr && !json::equal(*first, *value)) {
        throw RequestError(
            name + " and " + other + " are two names of one field, and have different values",
            other);
      }
      if (first == nullptr) match = other;
      first = value;
    }
    return match;
  }

  void keep(const std::string& name, std::optional<Value> value) {
    if (value) replaced_.emplace_back(name, std::move(*value));
  }

  void integer(const std::string& name, const Value& value, const Value& row) {
    keep(name, check_.integer(name, value, bounds_of(row)));
  }

  void number(const std::string& name, const Value& value, const Value& row) {
    keep(name, check_.number(name, value, bounds_of(row)));
  }

  void flag(const std::string& name, const Value& value, const Value&) {
    keep(name, check_.boolean(name, value));
  }

  void text(const std::string& name, const Value& value, const Value& row) {
    check_.text(name, value, size_of(row, "longest"));
  }

  void object(const std::string& name, const Value& value, const Value&) {
    check_.object(name, value);
  }

  void objects(const std::string& name, const Value& value, const Value&) {
    if (!check_.list(name, value)) return;
    for (size_t i = 0; i < value.items().size(); ++i) {
      check_.object(item(name, i), value.items()[i]);
    }
  }

  // Accepts a number of alternatives, or false for none.
  void prompt_logprobs(const std::string& name, const Value& value, const Value&) {
    const bool none = value.is(json::Kind::kBool) && value.integer() == 0;
    keep(name, none ? Value() : check_.integer(name, value, {0, {}, WHERRY_MAX_TOP_LOGPROBS, {}}));
  }

  void prediction(const std::string& name, const Value& value, const Value&) {
    check_prediction(check_, name, value);
  }

  void one_of(const std::string& name, const Value& value, const Value& row) {
    const Value& values = *row.dict().find("values");
    for (const Value& one : values.items()) {
      if (json::equal(one, value)) return;
    }
    check_.add(name, "takes one of " + json::to_json(values));
  }

  void texts(const std::string& name, const Value& value, const Value&) {
    if (!check_.list(name, value)) return;
    for (size_t i = 0; i < value.items().size(); ++i) check_.text(item(name, i), value.items()[i]);
  }

  // Accepts a text, an object with a text, or a list of these.
  void documents(const std::string& name, const Value& value, const Value& row) {
    const Values items = value.is(json::Kind::kList) ? value.items() : Values{value};
    if (items.empty()) check_.add(name, "takes at least 1 text");
    if (!check_.few(name, value, size_of(row, "most"))) return;
    for (size_t i = 0; i < items.size(); ++i) {
      const Value* text = items[i].is_dict() ? items[i].dict().find("text") : &items[i];
      if (text == nullptr || !text->is_string()) {
        check_.add(name, "item " + std::to_string(i) + " is neither a text nor an object with one");
      }
    }
  }

  void words(const std::string& name, const Value& value, const Value& row) {
    if (!check_.few(name, value, size_of(row, "most")) || !check_.list(name, value)) return;
    for (size_t i = 0; i < value.items().size(); ++i) {
      check_.text(item(name, i), value.items()[i], kLongText, 1);
    }
  }

  void biases(const std::string& name, const Value& value, const Value&) {
    if (!check_.few(name, value, kBiases) || !check_.object(name, value)) return;
    std::vector<std::pair<Value, Value>> pairs;
    for (const auto& [key, bias] : value.dict().items) {
      const auto token = check_.integer(place_of(name, key.text()), key, {0, {}, {}, kInt31});
      const auto amount = check_.number(place_of(name, key.text()), bias, {-100, {}, 100, {}});
      if (!token || !amount) continue;
      const auto same = [&](const auto& one) { return one.first.integer() == token->integer(); };
      const auto earlier = std::find_if(pairs.begin(), pairs.end(), same);
      if (earlier == pairs.end()) {
        pairs.emplace_back(*token, *amount);
      } else {
        earlier->second = *amount;  // "1" and "01" are one token
      }
    }
    keep(name, json::make_dict(std::move(pairs)));
  }

  void token_ids(const std::string& name, const Value& value, const Value&) {
    if (!check_.few(name, value, kAllowed) || !check_.list(name, value)) return;
    if (value.items().empty()) check_.add(name, "takes at least 1 item");
    for (size_t i = 0; i < value.items().size(); ++i) {
      check_.integer(item(name, i), value.items()[i], {0, {}, {}, kInt31});
    }
  }

  void stops(const std::string& name, const Value& value, const Value&) {
    Values values;
    if (!value.is(json::Kind::kList)) {
      check_.text(name, value, kLongText);
      values.push_back(value);
    } else if (check_.few(name, value, kStops)) {
      const bool texts = std::all_of(value.items().begin(), value.items().end(),
                                     [](const Value& stop) { return stop.is_string(); });
      if (!texts) check_.add(name, "takes a text or a list of texts");
      for (size_t i = 0; i < value.items().size(); ++i) {
        check_.text(item(name, i), value.items()[i], kLongText);
        values.push_back(value.items()[i]);
      }
    }
    keep(name, json::make_list(std::move(values)));
  }

  void stream_options(const std::string& name, const Value& value, const Value&) {
    if (!check_.object(name, value)) return;
    const Value* usage = value.dict().find("include_usage");
    if (usage != nullptr) check_.boolean(name + ".include_usage", *usage);
  }

  // Accepts an object or a boolean, or a text where one is allowed; app/grammar/fields.cc validates
  // the schema itself.
  void schema(const std::string& name, const Value& value, const Value& row) {
    if (value.is_dict() || (has(row, "text") && value.is_string())) return;
    Checker other;
    if (std::optional<Value> result = other.boolean(name, value))
      return keep(name, std::move(result));
    check_.add(name, "takes an object or a boolean");
  }

  void messages(const std::string&, const Value& value, const Value&) {
    check_messages(check_, value);
  }
  void prompt(const std::string& name, const Value& value, const Value&) {
    check_prompt(check_, name, value);
  }
  void tools(const std::string&, const Value& value, const Value&) { check_tools(check_, value); }
  void tool_choice(const std::string& name, const Value& value, const Value&) {
    Value choice = with_functions(value);
    check_tool_choice(check_, choice);
    keep(name, std::move(choice));
  }

  const Value& given_;
  Checker check_;
  std::set<std::string> seen_;
  bool names_agree_ = false;
  std::vector<std::pair<Value, Value>> replaced_;
};

// Rejects unsupported fields that would change the result if ignored. A name may be another kind of
// request's field, which `reader` has read.
void refuse_unknown(const Value& request, const Reader& reader) {
  std::string names, first;
  for (const Value& row : data().dict().find(std::string_view("refused"))->items()) {
    const std::string& name = row.dict().find("name")->text();
    const Value* value = request.dict().find(std::string_view(name));
    if (value == nullptr || value->is_none() || reader.reads(name)) continue;
    if (lists(row, "nothing", *value)) continue;
    if (first.empty()) first = name;
    names += (names.empty() ? "'" : ", '") + name + "'";
    const Value* instead = row.dict().find("instead");
    if (instead != nullptr) names += " (send '" + instead->text() + "')";
  }
  if (first.empty()) return;
  throw RequestError("Not supported, and leaving it out would change the answer: " + names, first,
                     "unsupported_parameter");
}

Fields checked(const Value& request, void (*read)(Reader&)) {
  if (!request.is_dict()) throw RequestError("The request is not a JSON object");
  const size_t count = request.dict().items.size();
  if (count > kMostFields) {
    throw RequestError("The request has " + std::to_string(count) + " fields; at most " +
                       std::to_string(kMostFields) + " are read");
  }
  require_complete_characters(request);
  Reader reader(request);
  read(reader);
  Fields fields = reader.done();
  refuse_unknown(request, reader);
  if (const Value* tools = reader.reads("tools") ? fields.find("tools") : nullptr) {
    refuse_tools(*tools);
  }
  return fields;
}

}  // namespace

Fields checked_chat(const Value& request) {
  return checked(request, [](Reader& reader) {
    for (const char* group : {"sampling", "shared", "chat"}) reader.group(group);
  });
}

Fields checked_completion(const Value& request) {
  return checked(request, [](Reader& reader) {
    reader.group("sampling");
    reader.group("shared", "completion");
    reader.group("completion");
  });
}

Fields checked_embedding(const Value& request) {
  return checked(request, [](Reader& reader) { reader.group("embedding"); });
}

Fields checked_classify(const Value& request) {
  return checked(request, [](Reader& reader) { reader.group("classify"); });
}

Fields checked_rerank(const Value& request) {
  return checked(request, [](Reader& reader) { reader.group("rerank"); });
}

Fields checked_score(const Value& request) {
  return checked(request, [](Reader& reader) { reader.group("score"); });
}

}  // namespace wherry::app
