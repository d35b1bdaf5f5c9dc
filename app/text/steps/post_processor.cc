#include "app/text/steps/post_processor.h"

#include <string_view>
#include <utility>

#include "app/text/json/json.h"
#include "support/error.h"

namespace wherry::text {

namespace {

// ["[SEP]", 102]
int32_t id_of_pair(const Json& json) {
  auto pair = json.elements();
  if (pair.size() != 2) json.fail("it must be a token and its id");
  return pair[1].id();
}

}  // namespace

std::vector<int32_t> PostProcessor::apply(std::vector<int32_t> ids, bool add_special_tokens) const {
  for (const Step& step : steps_) {
    std::vector<int32_t> result;
    result.reserve(ids.size() + step.single.size());
    for (const Item& item : step.single) {
      if (item.text < 0 && !add_special_tokens) continue;
      const auto& added = item.text < 0 ? item.ids : ids;
      result.insert(result.end(), added.begin(), added.end());
    }
    ids = std::move(result);
  }
  return ids;
}

Pair PostProcessor::apply(const std::vector<int32_t>& first,
                          const std::vector<int32_t>& second) const {
  if (steps_.size() > 1) {
    throw Error(WHERRY_INVALID_ARGUMENT,
                "this tokenizer adds special tokens to a pair of texts in several steps");
  }
  static const std::vector<Item> kBare = {{0, {}, 0}, {1, {}, 1}};
  Pair result;
  for (const Item& item : steps_.empty() ? kBare : steps_[0].pair) {
    const auto& added = item.text < 0 ? item.ids : item.text == 0 ? first : second;
    result.ids.insert(result.ids.end(), added.begin(), added.end());
    result.segments.resize(result.ids.size(), item.segment);
    result.texts.resize(result.ids.size(), item.text);
  }
  return result;
}

std::vector<PostProcessor::Item> PostProcessor::read_template(const Json& json,
                                                              const char* name) const {
  std::vector<Item> items;
  Json tokens = json.at("special_tokens");
  const bool pair = std::string_view(name) == "pair";
  json.at(name).elements([&](const Json& piece) {
    if (auto sequence = piece.find("Sequence")) {
      Json id = sequence->at("id");
      const bool second = pair && id.string() == "B";
      if (!second && id.string() != "A") id.fail("the template of one text has \"A\" alone");
      items.push_back({second ? 1 : 0, {}, sequence->at("type_id").id()});
      return;
    }
    Json special = piece.at("SpecialToken");
    Json token_name = special.at("id");
    auto token = tokens.find(token_name.string());
    if (!token) token_name.fail("special_tokens of the template lack it");
    Item item{-1, {}, special.at("type_id").id()};
    token->at("ids").elements([&](const Json& id) { item.ids.push_back(id.id()); });
    items.push_back(std::move(item));
  });
  return items;
}

void PostProcessor::read(const Json& json) {
  std::string type = json.at("type").string();
  // ByteLevel only moves offsets, which this tokenizer does not return.
  if (type == "ByteLevel") return;
  if (type == "TemplateProcessing") {
    steps_.push_back({read_template(json, "single"), read_template(json, "pair")});
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    const int32_t begin = id_of_pair(json.at("cls")), end = id_of_pair(json.at("sep"));
    const Item cls{-1, {begin}, 0}, text{0, {}, 0}, sep{-1, {end}, 0};
    // RoBERTa has two separators between the texts, and no segments.
    const bool bert = type == "BertProcessing";
    Step step{{cls, text, sep}, {cls, text, sep}};
    if (!bert) step.pair.push_back(sep);
    step.pair.push_back({1, {}, bert ? 1 : 0});
    step.pair.push_back({-1, {end}, bert ? 1 : 0});
    steps_.push_back(std::move(step));
  } else if (type == "Sequence") {
    json.at("processors").elements([&](const Json& each) { read(each); });
  } else {
    json.at("type").fail(
        "known post-processors are BertProcessing, ByteLevel, RobertaProcessing, Sequence and "
        "TemplateProcessing");
  }
}

}  // namespace wherry::text
