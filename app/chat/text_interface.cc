#include "app/chat/text_interface.h"

#include <algorithm>

#include "app/text/json_tokenizer.h"
#include "app/value/json_text.h"
#include "support/error.h"

namespace wherry::app {

namespace {

constexpr int64_t kMostIds = 1 << 24;
constexpr const char *kUsual = "default", *kToolUse = "tool_use";  // names of templates

[[noreturn]] void reject(const std::string& what) { throw Error(WHERRY_INCOMPATIBLE, what); }

Value special_tokens(const Files& files) {
  std::vector<std::pair<Value, Value>> pairs;
  for (const char* file : {"special_tokens_map.json", "tokenizer_config.json"}) {
    const Value config = read_object(files, file);
    for (const char* name :
         {"bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token"}) {
      const Value* token = config.dict().find(std::string_view(name));
      if (token == nullptr) continue;
      const Value* content = token->is_dict() ? token->dict().find("content") : token;
      // The later file overrides the earlier one, also where it sets a token to null.
      pairs.emplace_back(name, content != nullptr && content->is_string() ? *content : Value());
    }
  }
  const Value all = json::make_dict(std::move(pairs));
  std::vector<std::pair<Value, Value>> texts;
  for (const auto& item : all.dict().items) {
    if (item.second.is_string()) texts.push_back(item);
  }
  return json::make_dict(std::move(texts));
}

// Returns the sources of the model's templates by name: of chat_template.jinja, which is "default",
// of chat_template.tool_use.jinja, of tokenizer_config.json, and of chat_template.json.
std::vector<std::pair<std::string, std::string>> template_sources(const Files& files) {
  std::vector<std::pair<std::string, std::string>> pairs;
  const auto add = [&](const std::string& name, const std::string& source) {
    const bool is_new = std::none_of(pairs.begin(), pairs.end(),
                                     [&](const auto& known) { return known.first == name; });
    if (is_new) pairs.emplace_back(name, source);
  };
  if (auto text = files.read("chat_template.jinja")) add(kUsual, *text);
  if (auto text = files.read("chat_template.tool_use.jinja")) add(kToolUse, *text);
  for (const char* file : {"tokenizer_config.json", "chat_template.json"}) {
    const Value config = read_object(files, file);
    const Value* match = config.dict().find("chat_template");
    if (match == nullptr || match->is_none()) continue;
    if (match->is_string()) {
      add(kUsual, match->text());
      continue;
    }
    if (!match->is_sequence()) {
      if (!pairs.empty()) continue;
      reject(files.path(file) + ": chat_template is a " + json::type_name(*match) + ", not a text");
    }
    for (const Value& one : match->items()) {
      if (!one.is_dict()) continue;
      const Value* name = one.dict().find("name");
      const Value* source = one.dict().find("template");
      if (source == nullptr || !source->is_string()) continue;
      add(name != nullptr && name->is_string() ? name->text() : "", source->text());
    }
  }
  const auto usual =
      std::find_if(pairs.begin(), pairs.end(), [](const auto& one) { return one.first == kUsual; });
  if (usual != pairs.end()) std::iter_swap(pairs.begin(), usual);
  return pairs;
}

void add_ids(const Value& config, const std::string& path, std::vector<int32_t>& ids) {
  const Value* value = config.dict().find("eos_token_id");
  if (value == nullptr) {  // multimodal models have the field in a nested object
    const Value* nested = config.dict().find("text_config");
    if (nested != nullptr && nested->is_dict()) value = nested->dict().find("eos_token_id");
  }
  if (value == nullptr || value->is_none()) return;
  const Values matches = value->is_sequence() ? value->items() : Values{*value};
  for (const Value& id : matches) {
    if (!id.is(json::Kind::kInt) || id.integer() < 0 || id.integer() >= kMostIds) {
      reject(path + ": eos_token_id is " + json::repr(*value) +
             "; it takes an id or a list of ids");
    }
    ids.push_back(static_cast<int32_t>(id.integer()));
  }
}

std::vector<int32_t> eos_ids(const Files& files, const Tokenizer& tokenizer, const Value& special) {
  std::vector<int32_t> ids, unique;
  for (const char* name : {"generation_config.json", "config.json"}) {
    add_ids(read_object(files, name), files.path(name), ids);
  }
  if (const Value* token = special.dict().find("eos_token")) {
    if (const auto id = tokenizer.id_of(token->text())) ids.push_back(*id);
  }
  for (int32_t id : ids) {
    if (std::find(unique.begin(), unique.end(), id) == unique.end()) unique.push_back(id);
  }
  return unique;
}

// Returns the tokens that the decoder of an encoder-decoder begins with: decoder_start_token_id, or
// the padding token, as T5's authors have it, and what forced_bos_token_id makes of the first token
// of an output.
std::vector<int32_t> decoder_start(const Files& files, const Value& defaults) {
  const Fields config(read_object(files, "config.json")), first(defaults);
  if (!config.truth("is_encoder_decoder")) return {};
  const auto id_of = [&](const char* name) {
    const Value* own = first.find(name);
    const Value* id = own != nullptr ? own : config.find(name);
    return id != nullptr && id->is(json::Kind::kInt) ? id->integer() : -1;
  };
  const int64_t start = id_of("decoder_start_token_id");
  std::vector<int32_t> result;
  for (const int64_t id :
       {start >= 0 ? start : id_of("pad_token_id"), id_of("forced_bos_token_id")}) {
    if (id >= 0 && id < kMostIds) result.push_back(static_cast<int32_t>(id));
  }
  if (!result.empty()) return result;
  reject(files.folder +
         " reads sources, and its files do not tell with which token its decoder begins: "
         "config.json has neither decoder_start_token_id nor pad_token_id");
}

// Reads the supported fields of generation_config.json and checks their ranges.
Value generation_defaults(const Files& files) {
  const Value config = read_object(files, "generation_config.json");
  struct Row {
    const char* name;
    double low, high;
    bool low_is_out, high_is_out;
    const char* expected;
  };
  static constexpr Row kRows[] = {
      {"temperature", 0, 100, false, false, "a number from 0 to 100"},
      {"top_p", 0, 1, true, false, "a number above 0, up to 1"},
      {"top_k", -1, 2147483648.0, false, true, "a whole number from -1"},
      {"min_p", 0, 1, false, true, "a number from 0, below 1"},
      {"typical_p", 0, 1, true, false, "a number above 0, up to 1"},
      {"repetition_penalty", 0, 100, true, false, "a number above 0, up to 100"},
  };
  Problems problems;
  for (const Row& row : kRows) {
    const Value* value = config.dict().find(std::string_view(row.name));
    if (value == nullptr || value->is_none()) continue;
    const bool number = value->is_number() && !value->is(json::Kind::kBool);
    const double match = number ? value->number() : 0;
    const bool fits = number && (row.low_is_out ? match > row.low : match >= row.low) &&
                      (row.high_is_out ? match < row.high : match <= row.high);
    if (!fits) {
      problems.add(row.name, ": found ", json::repr(*value), ", expected ", row.expected);
    }
  }
  problems.raise(WHERRY_INCOMPATIBLE, files.path("generation_config.json") + " cannot be used");
  return config;
}

}  // namespace

Value read_object(const Files& files, const std::string& name) {
  const std::optional<std::string> text = files.read(name);
  if (!text) return json::make_dict({});
  try {
    Value value = json::from_json(*text);
    if (!value.is_dict()) reject(files.path(name) + " holds no JSON object");
    return value;
  } catch (const json::Failure& failure) {
    reject(files.path(name) + " is not JSON: " + failure.what());
  }
}

TextInterface read_text_interface(const Files& files, const std::string& tool_format) {
  const std::optional<std::string> tokens = files.read("tokenizer.json");
  if (!tokens) throw Error(WHERRY_NOT_FOUND, files.folder + " has no tokenizer.json");
  TextInterface result;
  result.tokenizer = JsonTokenizer::read(*tokens);
  const Value special = special_tokens(files);
  result.eos_ids = eos_ids(files, *result.tokenizer, special);
  result.defaults = generation_defaults(files);
  result.decoder_start = decoder_start(files, result.defaults);
  result.head = read_head(read_object(files, "wherry-head.json"), files.path("wherry-head.json"));
  if (files.read("wherry-vision.json")) result.vision = std::make_unique<Vision>();
  try {
    const auto known = [&](const std::string& name) {
      return result.tokenizer->id_of(name).has_value();
    };
    const auto chat_format = [&](const std::string& source) {
      return std::make_unique<ChatFormat>(
          std::make_unique<jinja::InterpretedTemplate>(source, special), tool_format, known);
    };
    const auto sources = template_sources(files);
    // An empty template would lose every message.
    const bool none = sources.empty() || sources[0].second.empty();
    std::unique_ptr<ChatFormat> usual = none ? nullptr : chat_format(sources[0].second);
    for (size_t i = 1; usual != nullptr && i < sources.size(); ++i) {
      if (sources[i].first == kToolUse) usual->set_for_tools(chat_format(sources[i].second));
    }
    result.chat_format = std::move(usual);
  } catch (const jinja::Invalid& error) {
    reject(files.folder + ": " + error.what());
  }
  return result;
}

}  // namespace wherry::app
