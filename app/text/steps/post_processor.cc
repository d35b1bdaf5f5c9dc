#include "app/text/steps/post_processor.h"

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
  for (const auto& step : steps_) {
    std::vector<int32_t> made;
    made.reserve(ids.size() + step.size());
    for (const Item& item : step) {
      if (!item.text && !add_special_tokens) continue;
      const auto& added = item.text ? ids : item.ids;
      made.insert(made.end(), added.begin(), added.end());
    }
    ids = std::move(made);
  }
  return ids;
}

std::vector<PostProcessor::Item> PostProcessor::read_template(const Json& json) const {
  std::vector<Item> items;
  Json tokens = json.at("special_tokens");
  json.at("single").elements([&](const Json& piece) {
    if (auto sequence = piece.find("Sequence")) {
      Json id = sequence->at("id");
      if (id.string() != "A") id.fail("the template of one text has \"A\" alone");
      items.push_back({true, {}});
      return;
    }
    Json name = piece.at("SpecialToken").at("id");
    auto token = tokens.find(name.string());
    if (!token) name.fail("special_tokens of the template lack it");
    Item item{false, {}};
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
    steps_.push_back(read_template(json));
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    int32_t begin = id_of_pair(json.at("cls")), end = id_of_pair(json.at("sep"));
    steps_.push_back({{false, {begin}}, {true, {}}, {false, {end}}});
  } else if (type == "Sequence") {
    json.at("processors").elements([&](const Json& each) { read(each); });
  } else {
    json.at("type").fail(
        "known post-processors are BertProcessing, ByteLevel, RobertaProcessing, Sequence and "
        "TemplateProcessing");
  }
}

}  // namespace wherry::text
