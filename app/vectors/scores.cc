#include "app/vectors/scores.h"

#include <memory>
#include <utility>

#include "app/request/request_error.h"
#include "app/vectors/numbers.h"

namespace wherry::app {

namespace {

using Results = std::vector<VectorResult>;

void refuse_instruction(const Pairs& pairs, const char* why) {
  if (!pairs.instruction) return;
  throw RequestError(std::string("instruction is for rerankers that read a prompt; ") + why,
                     "instruction");
}

// A cross-encoder: the logit of each pair.
Scores by_pairs(const Pairs& pairs, const Texts& texts, const Head& head, VectorPlan& plan) {
  refuse_instruction(pairs, "this one reads pairs");
  if (head.labels.size() != 1) {
    throw RequestError("This model has " + std::to_string(head.labels.size()) +
                           " classes, and a ranking needs a single score: ask for "
                           "\"classify\"",
                       "", "no_scores");
  }
  for (size_t i = 0; i < pairs.documents.size(); ++i) {
    plan.embed(texts.of_pair(pairs.query(i), pairs.documents[i], item("documents", i)));
  }
  return [&head](const Results& results) {
    std::vector<double> result;
    for (const VectorResult& one : results) {
      result.push_back(probabilities(one.values, head.activation).at(0));
    }
    return result;
  };
}

// Returns a reranker's prompt, written with the roles that sentence-transformers uses.
std::string written(const jinja::ChatTemplate& chat_template, const std::string& query,
                    const std::string* instruction, const std::string& document, const Gone& gone) {
  const auto message = [](const char* role, const std::string& text) {
    return json::make_dict({{"role", role}, {"content", text}});
  };
  Values messages;
  if (instruction != nullptr) messages.push_back(message("system", *instruction));
  messages.push_back(message("query", query));
  messages.push_back(message("document", document));
  try {
    return chat_template.render(json::make_list(std::move(messages)), true, json::make_dict({}),
                                gone);
  } catch (const jinja::Refused& error) {
    throw RequestError(error.what(), "messages", "chat_template");
  }
}

// A model that answers yes or no: the probability of yes.
Scores by_prompts(const Pairs& pairs, const Texts& texts, const VectorModel& model,
                  VectorPlan& plan, const Gone& gone) {
  if (model.chat_template == nullptr) {
    throw RequestError("This model has no chat template, which pairs are written in");
  }
  const Head& head = model.head;
  const std::string* instruction =
      head.default_prompt ? head.prompt(*head.default_prompt) : nullptr;
  if (pairs.instruction) instruction = &*pairs.instruction;
  for (size_t i = 0; i < pairs.documents.size(); ++i) {
    plan.prompts.push_back(texts.of_prompt(
        [&](const std::string& document) {
          return written(*model.chat_template, pairs.query(i), instruction, document, gone);
        },
        pairs.documents[i], item("documents", i)));
    plan.jobs.push_back({i, head.yes});
    plan.jobs.push_back({i, head.no});
  }
  return [](const Results& results) {
    std::vector<double> result;
    for (size_t i = 0; i + 1 < results.size(); i += 2) {
      result.push_back(probability(results[i].logprob, results[i + 1].logprob));
    }
    return result;
  };
}

// An embedding model: the similarity of the vectors.
Scores by_embeddings(const Pairs& pairs, const Texts& texts, const Head& head, VectorPlan& plan) {
  if (head.kind != HeadKind::kEmbedding) {
    throw RequestError(
        "This model writes text: nothing says that its embeddings can be compared, nor which of "
        "its tokens mean yes and no. Take an embedding model or a reranker in the layout of "
        "sentence-transformers",
        "", "no_scores");
  }
  refuse_instruction(pairs, "this model compares embeddings");
  const auto add = [&](const char* field, const std::string& before,
                       const std::vector<std::string>& given) {
    for (size_t i = 0; i < given.size(); ++i) {
      plan.embed(texts.of_text(before + given[i], given.size() > 1 ? item(field, i) : field));
    }
  };
  add("query", pairs.before_query, pairs.queries);
  add("documents", pairs.before_document, pairs.documents);
  return [&head, queries = pairs.queries.size()](const Results& results) {
    std::vector<double> result;
    for (size_t i = 0; queries + i < results.size(); ++i) {
      const VectorResult& query = results[queries > 1 ? i : 0];
      result.push_back(cosine(query.values, results[queries + i].values, head));
    }
    return result;
  };
}

}  // namespace

Scores scores_of(Pairs pairs, const Fields& fields, const VectorModel& model, VectorPlan& plan,
                 const Gone& gone) {
  const Texts texts(model, fields, gone);
  for (std::string& text : pairs.queries) text = texts.first_tokens(text, "max_tokens_per_query");
  for (std::string& text : pairs.documents) text = texts.first_tokens(text, "max_tokens_per_doc");
  if (model.head.kind == HeadKind::kClass) return by_pairs(pairs, texts, model.head, plan);
  if (model.head.kind == HeadKind::kScore) return by_prompts(pairs, texts, model, plan, gone);
  return by_embeddings(pairs, texts, model.head, plan);
}

VectorPlan score_plan(const Value& request, const VectorModel& model, const Gone& gone) {
  const auto fields = std::make_shared<Fields>(checked_score(request));
  Pairs pairs;
  pairs.queries = texts_of(*fields->find("text_1"));
  pairs.documents = texts_of(*fields->find("text_2"));
  const size_t queries = pairs.queries.size(), documents = pairs.documents.size();
  if (queries != 1 && queries != documents) {
    throw RequestError("There are " + std::to_string(queries) + " queries (text_1) and " +
                           std::to_string(documents) +
                           " documents (text_2); send one query, or as many as documents",
                       "text_1");
  }
  VectorPlan plan;
  plan.ignored = fields->unknown();
  const Scores scores = scores_of(std::move(pairs), *fields, model, plan, gone);
  const Value usage = plan.usage();
  plan.complete = [fields, usage, scores, &model](const Results& results) {
    Values data;
    for (const double score : scores(results)) {
      data.push_back(json::make_dict(
          {{"index", Value::size(data.size())}, {"score", score}, {"object", "score"}}));
    }
    return list_response("score", name_of(*fields, model), std::move(data), usage);
  };
  return plan;
}

}  // namespace wherry::app
