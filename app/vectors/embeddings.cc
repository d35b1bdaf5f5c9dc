// Requests for embeddings, with the fields and the response of POST /v1/embeddings.
#include <algorithm>
#include <memory>
#include <utility>

#include "app/request/request_error.h"
#include "app/value/json_text.h"
#include "app/vectors/numbers.h"
#include "app/vectors/texts.h"

namespace wherry::app {

namespace {

const std::string& prompt_of(const Fields& fields, const Head& head) {
  static const std::string kNone;
  if (!fields.has("prompt_name") && !head.default_prompt) return kNone;
  const std::string name =
      fields.has("prompt_name") ? fields.text("prompt_name") : *head.default_prompt;
  if (const std::string* match = head.prompt(name)) return *match;
  std::string known;
  for (const auto& one : head.prompts) known += (known.empty() ? "'" : ", '") + one.first + "'";
  throw RequestError(
      "prompt_name is '" + name + "'; this model's prompts are " + (known.empty() ? "none" : known),
      "prompt_name");
}

void require_embeddings(const Head& head) {
  if (head.kind == HeadKind::kClass) {
    throw RequestError("This model has classes and no embeddings: POST /classify" +
                           std::string(head.labels.size() == 1 ? " or /v1/rerank" : ""),
                       "", "no_embeddings");
  }
  if (head.embeds) return;
  const char* why =
      head.kind == HeadKind::kScore
          ? "This model scores pairs of texts and has no embeddings: POST /v1/rerank"
      : head.reads_source
          ? "This model reads a source and writes a text, and has no embeddings: POST "
            "/v1/completions"
          : "This model was compiled by a version without embeddings. Compile it again: wherry "
            "compile MODEL -o DIR";
  throw RequestError(why, "", "no_embeddings");
}

// Returns the inputs: texts, or lists of token ids.
Values inputs_of(const Value& given) {
  if (given.is_string()) return {given};
  const Values& items = given.items();
  return items.empty() || items[0].is(json::Kind::kInt) ? Values{given} : items;
}

Value value_of(const Floats& vector, bool base64) {
  if (base64) return in_base64(vector);
  Values numbers;
  numbers.reserve(vector.size());
  for (const float number : vector) numbers.emplace_back(static_cast<double>(number));
  return json::make_list(std::move(numbers));
}

void check_fields(const Fields& fields, const Head& head, const Values& inputs) {
  if (inputs.size() > kMostInputs) {
    throw RequestError("input has " + std::to_string(inputs.size()) + " texts; at most " +
                           std::to_string(kMostInputs) + " are accepted",
                       "input");
  }
  const int64_t dimensions = fields.integer("dimensions").value_or(0);
  if (head.size > 0 && dimensions > head.size) {
    throw RequestError("dimensions is " + std::to_string(dimensions) +
                           "; this model's embeddings have " + std::to_string(head.size),
                       "dimensions");
  }
}

}  // namespace

VectorPlan embedding_plan(const Value& request, const VectorModel& model, const Gone& gone) {
  const auto fields = std::make_shared<Fields>(checked_embedding(request));
  require_embeddings(model.head);
  const Values inputs = inputs_of(*fields->find("input"));
  check_fields(*fields, model.head, inputs);
  const std::string& before = prompt_of(*fields, model.head);
  const bool are_texts = std::all_of(inputs.begin(), inputs.end(),
                                     [](const Value& input) { return input.is_string(); });
  if (!fields->text("prompt_name").empty() && !are_texts) {
    throw RequestError("prompt_name is for texts; input has token ids", "prompt_name");
  }
  const Texts texts(model, *fields, gone);
  VectorPlan plan;
  plan.ignored = fields->unknown();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string where = inputs.size() > 1 ? item("input", i) : "input";
    plan.embed(inputs[i].is_string() ? texts.of_text(before + inputs[i].text(), where)
                                     : texts.of_ids(inputs[i], where));
  }
  const Value usage = plan.usage();
  plan.complete = [fields, usage, &model](const std::vector<VectorResult>& results) {
    const bool base64 = fields->text("encoding_format") == "base64";
    const auto dimensions = static_cast<size_t>(fields->integer("dimensions").value_or(0));
    Values data;
    for (size_t i = 0; i < results.size(); ++i) {
      const Floats vector = embedding_of(results[i].values, model.head, dimensions);
      data.push_back(json::make_dict({{"index", Value::size(i)},
                                      {"embedding", value_of(vector, base64)},
                                      {"object", "embedding"}}));
    }
    return json::to_compact_json(json::make_dict({{"data", json::make_list(std::move(data))},
                                                  {"model", name_of(*fields, model)},
                                                  {"usage", usage},
                                                  {"object", "list"}}));
  };
  return plan;
}

}  // namespace wherry::app
