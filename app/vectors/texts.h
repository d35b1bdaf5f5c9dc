// Turns the texts of a request for numbers into tokens, cut to what the model reads.
#ifndef WHERRY_APP_VECTORS_TEXTS_H_
#define WHERRY_APP_VECTORS_TEXTS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "app/request/fields.h"
#include "app/vectors/vector_plan.h"

namespace wherry::app {

constexpr size_t kMostInputs = 2048;  // texts in one request, as in OpenAI's API

using Ids = std::vector<int32_t>;

class Texts {
 public:
  // Throws RequestError if fields about truncation contradict each other.
  Texts(const VectorModel& model, const Fields& fields, const Gone& gone);

  // Each returns tokens and throws RequestError, or jinja::Abandoned if the client has gone. where:
  // the field that an error names.
  Ids of_text(const std::string& text, const std::string& where) const;
  Ids of_ids(const Value& list, const std::string& where) const;
  Ids of_pair(const std::string& query, const std::string& document,
              const std::string& where) const;
  // Returns the tokens of a prompt whose document may be cut. written: returns the prompt with a
  // document in it.
  Ids of_prompt(const std::function<std::string(const std::string&)>& written,
                const std::string& document, const std::string& where) const;

  // Returns a text of a pair cut to "max_tokens_per_query" or "max_tokens_per_doc".
  std::string first_tokens(const std::string& text, const char* field) const;

 private:
  size_t longest() const;
  void check_here() const;
  void check(const Ids& ids, const std::string& where) const;
  void check_length(const std::string& text, const std::string& where) const;
  Ids encoded(const std::string& text, bool add_special_tokens, const std::string& where) const;
  Ids cut_text(const std::string& text) const;
  text::Pair cut_pair(const std::string& query, const std::string& document) const;
  std::string beginning(const std::string& text, size_t most) const;
  [[noreturn]] void too_long(const std::string& where, const std::string& match) const;

  const VectorModel& model_;
  const Fields& fields_;
  const Gone& gone_;
  size_t most_;  // tokens of a text at most
  bool cuts_;    // whether longer texts are cut at their ends; otherwise they are errors
};

// Returns the texts of a list that is checked; items may be objects with a text.
std::vector<std::string> texts_of(const Value& list);

}  // namespace wherry::app

#endif  // WHERRY_APP_VECTORS_TEXTS_H_
