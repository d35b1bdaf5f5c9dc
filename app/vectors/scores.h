// How well documents match queries: by a cross-encoder, a reranker that reads prompts, or
// embeddings.
#ifndef WHERRY_APP_VECTORS_SCORES_H_
#define WHERRY_APP_VECTORS_SCORES_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/vectors/texts.h"

namespace wherry::app {

// Queries and documents: one query for all documents, or one for each.
struct Pairs {
  std::vector<std::string> queries, documents;
  // What an embedding model reads before each.
  std::string before_query, before_document;
  std::optional<std::string> instruction;  // for rerankers that read a prompt

  const std::string& query(size_t document) const {
    return queries[queries.size() > 1 ? document : 0];
  }
};

// Makes the scores, one for each document, of the results of a plan's jobs.
using Scores = std::function<std::vector<double>(const std::vector<VectorResult>&)>;

// Adds the jobs to the plan, after cutting the texts as the fields say. Throws RequestError or
// jinja::Abandoned.
Scores scores_of(Pairs pairs, const Fields& fields, const VectorModel& model, VectorPlan& plan,
                 const Gone& gone);

}  // namespace wherry::app

#endif  // WHERRY_APP_VECTORS_SCORES_H_
