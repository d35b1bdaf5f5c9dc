// Requests for the classes of texts, with the fields and the response of POST /classify.
#include <algorithm>
#include <memory>
#include <utility>

#include "app/request/request_error.h"
#include "app/vectors/numbers.h"
#include "app/vectors/texts.h"

namespace wherry::app {

namespace {

Value classified(size_t index, const Floats& logits, const Head& head) {
  const std::vector<double> matches = probabilities(logits, head.activation);
  const auto best = std::max_element(matches.begin(), matches.end()) - matches.begin();
  Values probs(matches.begin(), matches.end());
  return json::make_dict({{"index", Value::size(index)},
                          {"label", head.labels.at(static_cast<size_t>(best))},
                          {"probs", json::make_list(std::move(probs))},
                          {"num_classes", Value::size(matches.size())}});
}

}  // namespace

VectorPlan class_plan(const Value& request, const VectorModel& model, const Gone& gone) {
  const auto fields = std::make_shared<Fields>(checked_classify(request));
  if (model.head.kind != HeadKind::kClass) {
    throw RequestError(
        "This model has no classes. Take a model for sequence classification, whose config.json "
        "names ...ForSequenceClassification",
        "", "no_classes");
  }
  const std::vector<std::string> inputs = texts_of(*fields->find("input"));
  const Texts texts(model, *fields, gone);
  VectorPlan plan;
  plan.ignored = fields->unknown();
  for (size_t i = 0; i < inputs.size(); ++i) {
    plan.embed(texts.of_text(inputs[i], inputs.size() > 1 ? item("input", i) : "input"));
  }
  const Value usage = plan.usage();
  plan.complete = [fields, usage, &model](const std::vector<VectorResult>& results) {
    Values data;
    for (size_t i = 0; i < results.size(); ++i) {
      data.push_back(classified(i, results[i].values, model.head));
    }
    return list_response("classify", name_of(*fields, model), std::move(data), usage);
  };
  return plan;
}

}  // namespace wherry::app
