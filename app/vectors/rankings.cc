// Requests for rankings of documents, with the fields and the response of POST /rerank.
#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "app/request/response_id.h"
#include "app/value/json_text.h"
#include "app/vectors/scores.h"

namespace wherry::app {

namespace {

// Names that sentence-transformers gives to the prompts before queries and documents.
constexpr const char* kQueries[] = {"query"};
constexpr const char* kDocuments[] = {"document", "passage", "corpus"};

template <size_t N>
std::string prompt_of(const Head& head, const char* const (&names)[N]) {
  for (const char* name : names) {
    if (const std::string* match = head.prompt(name)) return *match;
  }
  const std::string* match = head.default_prompt ? head.prompt(*head.default_prompt) : nullptr;
  return match == nullptr ? "" : *match;
}

Pairs pairs_of(const Fields& fields, const Head& head) {
  Pairs pairs;
  pairs.queries = {fields.text("query")};
  pairs.documents = texts_of(*fields.find("documents"));
  pairs.before_query = prompt_of(head, kQueries);
  pairs.before_document = prompt_of(head, kDocuments);
  if (fields.has("instruction")) pairs.instruction = fields.text("instruction");
  return pairs;
}

// Returns the documents, the best first; those of equal score stay in the order of the request.
Value ranked(const std::vector<double>& scores, const Fields& fields) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  const auto top = static_cast<size_t>(fields.integer("top_n").value_or(0));
  if (top > 0 && top < order.size()) order.resize(top);
  const bool shown = !fields.has("return_documents") || fields.truth("return_documents");
  const std::vector<std::string> documents = texts_of(*fields.find("documents"));
  Values values;
  for (const size_t i : order) {
    std::vector<std::pair<Value, Value>> one = {{"index", Value::size(i)},
                                                {"relevance_score", scores[i]}};
    if (shown) one.emplace_back("document", json::make_dict({{"text", documents[i]}}));
    values.push_back(json::make_dict(std::move(one)));
  }
  return json::make_list(std::move(values));
}

}  // namespace

VectorPlan ranking_plan(const Value& request, const VectorModel& model, const Gone& gone) {
  const auto fields = std::make_shared<Fields>(checked_rerank(request));
  VectorPlan plan;
  plan.ignored = fields->unknown();
  const Scores scores = scores_of(pairs_of(*fields, model.head), *fields, model, plan, gone);
  const Value usage = plan.usage();
  plan.complete = [fields, usage, scores, &model](const std::vector<VectorResult>& results) {
    return json::to_compact_json(json::make_dict({{"id", new_id("rerank")},
                                                  {"model", name_of(*fields, model)},
                                                  {"results", ranked(scores(results), *fields)},
                                                  {"usage", usage}}));
  };
  return plan;
}

}  // namespace wherry::app
