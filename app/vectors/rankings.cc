// Requests for rankings of documents, with the fields and the response of POST /rerank.
#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "app/request/request_error.h"
#include "app/request/response_id.h"
#include "app/template/json_text.h"
#include "app/vectors/numbers.h"
#include "app/vectors/texts.h"

namespace wherry::app {

namespace {

using Results = std::vector<VectorResult>;
using Scores = std::function<std::vector<double>(const Results&)>;  // a score for each document

// Names that sentence-transformers gives to the prompts before queries and documents.
constexpr const char* kQueries[] = {"query"};
constexpr const char* kDocuments[] = {"document", "passage", "corpus"};

// What a ranking is made of; its texts are cut to the tokens that the request allows each of them.
struct Ranking {
  std::string query;
  std::vector<std::string> documents;
  std::string instruction;
  bool instructed;
};

Ranking ranking_of(const Fields& fields, const Texts& texts) {
  Ranking made;
  made.query = texts.first_tokens(fields.text("query"), "max_tokens_per_query");
  for (const std::string& document : texts_of(*fields.find("documents"))) {
    made.documents.push_back(texts.first_tokens(document, "max_tokens_per_doc"));
  }
  const char* named = fields.has("instruction") ? "instruction" : "instruct";  // TEI's name
  made.instructed = fields.has(named);
  made.instruction = fields.text(named);
  return made;
}

template <size_t N>
std::string prompt_of(const Head& head, const char* const (&names)[N]) {
  for (const char* name : names) {
    if (const std::string* found = head.prompt(name)) return *found;
  }
  const std::string* found = head.default_prompt ? head.prompt(*head.default_prompt) : nullptr;
  return found == nullptr ? "" : *found;
}

void refuse_instruction(const Ranking& ranking, const char* why) {
  if (!ranking.instructed) return;
  throw RequestError(std::string("instruction is for rerankers that read a prompt; ") + why,
                     "instruction");
}

// A cross-encoder: the logit of each pair.
Scores by_pairs(const Ranking& ranking, const Texts& texts, const Head& head, VectorPlan& plan) {
  refuse_instruction(ranking, "this one reads pairs");
  if (head.labels.size() != 1) {
    throw RequestError("This model has " + std::to_string(head.labels.size()) +
                           " classes, and a ranking needs a single score: ask for "
                           "\"classify\"",
                       "", "no_scores");
  }
  for (size_t i = 0; i < ranking.documents.size(); ++i) {
    plan.embed(texts.of_pair(ranking.query, ranking.documents[i], item("documents", i)));
  }
  return [&head](const Results& results) {
    std::vector<double> made;
    for (const VectorResult& one : results) {
      made.push_back(probabilities(one.values, head.activation).at(0));
    }
    return made;
  };
}

// Returns a reranker's prompt, written with the roles that sentence-transformers uses.
std::string written(const jinja::ChatTemplate& chat_template, const Ranking& ranking,
                    const std::string* instruction, const std::string& document, const Gone& gone) {
  const auto message = [](const char* role, const std::string& text) {
    return jinja::make_dict({{"role", role}, {"content", text}});
  };
  Values messages;
  if (instruction != nullptr) messages.push_back(message("system", *instruction));
  messages.push_back(message("query", ranking.query));
  messages.push_back(message("document", document));
  try {
    return chat_template.render(jinja::make_list(std::move(messages)), true, jinja::make_dict({}),
                                gone);
  } catch (const jinja::Refused& error) {
    throw RequestError(error.what(), "messages", "chat_template");
  }
}

// A model that answers yes or no: the probability of yes.
Scores by_prompts(const Ranking& ranking, const Texts& texts, const VectorModel& model,
                  VectorPlan& plan, const Gone& gone) {
  if (model.chat_template == nullptr) {
    throw RequestError("This model has no chat template, which pairs are written in");
  }
  const Head& head = model.head;
  const std::string* instruction =
      head.default_prompt ? head.prompt(*head.default_prompt) : nullptr;
  if (ranking.instructed) instruction = &ranking.instruction;
  for (size_t i = 0; i < ranking.documents.size(); ++i) {
    plan.prompts.push_back(texts.of_prompt(
        [&](const std::string& document) {
          return written(*model.chat_template, ranking, instruction, document, gone);
        },
        ranking.documents[i], item("documents", i)));
    plan.jobs.push_back({i, head.yes});
    plan.jobs.push_back({i, head.no});
  }
  return [](const Results& results) {
    std::vector<double> made;
    for (size_t i = 0; i + 1 < results.size(); i += 2) {
      made.push_back(probability(results[i].logprob, results[i + 1].logprob));
    }
    return made;
  };
}

// An embedding model: the similarity of the vectors.
Scores by_embeddings(const Ranking& ranking, const Texts& texts, const Head& head,
                     VectorPlan& plan) {
  if (head.kind != HeadKind::kEmbedding) {
    throw RequestError(
        "This model writes text: nothing says that its embeddings can be compared, nor which of "
        "its tokens mean yes and no. Take an embedding model or a reranker in the layout of "
        "sentence-transformers",
        "", "no_scores");
  }
  refuse_instruction(ranking, "this model compares embeddings");
  plan.embed(texts.of_text(prompt_of(head, kQueries) + ranking.query, "query"));
  const std::string before = prompt_of(head, kDocuments);
  const bool many = ranking.documents.size() > 1;
  for (size_t i = 0; i < ranking.documents.size(); ++i) {
    plan.embed(
        texts.of_text(before + ranking.documents[i], many ? item("documents", i) : "documents"));
  }
  return [&head](const Results& results) {
    std::vector<double> made;
    for (size_t i = 1; i < results.size(); ++i) {
      made.push_back(cosine(results[0].values, results[i].values, head));
    }
    return made;
  };
}

Scores scores_of(const Fields& fields, const VectorModel& model, VectorPlan& plan,
                 const Gone& gone) {
  const Texts texts(model, fields, gone);
  const Ranking ranking = ranking_of(fields, texts);
  if (model.head.kind == HeadKind::kClass) return by_pairs(ranking, texts, model.head, plan);
  if (model.head.kind == HeadKind::kScore) return by_prompts(ranking, texts, model, plan, gone);
  return by_embeddings(ranking, texts, model.head, plan);
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
  Values made;
  for (const size_t i : order) {
    std::vector<std::pair<Value, Value>> one = {{"index", Value::size(i)},
                                                {"relevance_score", scores[i]}};
    if (shown) one.emplace_back("document", jinja::make_dict({{"text", documents[i]}}));
    made.push_back(jinja::make_dict(std::move(one)));
  }
  return jinja::make_list(std::move(made));
}

}  // namespace

VectorPlan ranking_plan(const Value& request, const VectorModel& model, const Gone& gone) {
  const auto fields = std::make_shared<Fields>(checked_rerank(request));
  VectorPlan plan;
  const Scores scores = scores_of(*fields, model, plan, gone);
  const Value usage = plan.usage();
  plan.whole = [fields, usage, scores, &model](const Results& results) {
    return jinja::to_compact_json(jinja::make_dict({{"id", new_id("rerank")},
                                                    {"model", name_of(*fields, model)},
                                                    {"results", ranked(scores(results), *fields)},
                                                    {"usage", usage}}));
  };
  return plan;
}

}  // namespace wherry::app
