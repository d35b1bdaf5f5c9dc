#include "app/vectors/embeddings.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "app/request/request_error.h"
#include "app/template/budget.h"
#include "app/template/code_points.h"
#include "app/template/json_text.h"
#include "support/error.h"

namespace wherry::app {

namespace {

constexpr size_t kMostInputs = 2048;  // texts in one request, as in OpenAI's API
// Characters that are tokenized for each token that is kept or allowed, at most, so that the work
// is bounded for texts of any length; runtime_py/request/truncation.py has the same number.
constexpr size_t kCharacters = 16;
constexpr char kTooLong[] = "context_length_exceeded";

// What happens to texts of more than `most` tokens.
struct Cut {
  size_t most;
  bool cuts;  // whether they are cut at their ends; otherwise they are errors
};

class Planner {
 public:
  Planner(const Embedder& model, const Fields& fields) : model_(model), cut_(cut_of(fields)) {}

  std::vector<int32_t> of_text(const std::string& text, const std::string& where) const {
    if (!cut_.cuts) {
      // No token has more bytes on average, so that a text of this length is not tokenized.
      if (text.size() > 128 * longest() && text.size() > 65536) {
        too_long(where, std::to_string(longest() + 1) + " tokens or more");
      }
      return model_.tokenizer->encode(text, true);
    }
    return shortened(text);
  }

  std::vector<int32_t> of_ids(const Value& list) const {
    std::vector<int32_t> ids;
    for (const Value& id : list.items()) ids.push_back(static_cast<int32_t>(id.integer()));
    if (cut_.cuts && ids.size() > cut_.most) ids.resize(cut_.most);
    return ids;
  }

  void check(const std::vector<int32_t>& ids, const std::string& where) const {
    if (ids.empty()) {
      throw RequestError(where + " is empty; the model needs at least one token", where);
    }
    if (ids.size() > longest()) too_long(where, std::to_string(ids.size()) + " tokens");
    const int32_t worst = *std::max_element(ids.begin(), ids.end());
    if (worst >= model_.vocab_size) {
      throw RequestError(where + " holds token " + std::to_string(worst) + "; ids go from 0 to " +
                             std::to_string(model_.vocab_size - 1),
                         where);
    }
  }

 private:
  size_t longest() const {
    const int64_t own = model_.head.max_tokens;
    return static_cast<size_t>(own > 0 ? std::min(own, model_.context) : model_.context);
  }

  Cut cut_of(const Fields& fields) const {
    Cut made{longest(), fields.truth("truncate")};
    const std::optional<int64_t> given = fields.integer("truncate_prompt_tokens");
    if (!given) return made;
    if (*given == 0) {
      throw RequestError("truncate_prompt_tokens takes a number of tokens from 1, or -1",
                         "truncate_prompt_tokens");
    }
    if (fields.has("truncate") && !fields.truth("truncate")) {
      throw RequestError("truncate is false and truncate_prompt_tokens is " +
                             std::to_string(*given) + ": send one of them",
                         "truncate_prompt_tokens");
    }
    if (*given != -1) made.most = std::min(made.most, static_cast<size_t>(*given));
    made.cuts = true;
    return made;
  }

  // Returns the tokens of a text, cut at its end; special tokens after it stay.
  std::vector<int32_t> shortened(const std::string& text) const {
    const std::string_view kept(text.data(), jinja::byte_of(text, kCharacters * cut_.most));
    std::vector<int32_t> ids = model_.tokenizer->encode(kept, true);
    if (ids.size() <= cut_.most) return ids;
    const std::vector<int32_t> bare = model_.tokenizer->encode("", true);
    size_t after = 0;
    while (after < std::min(bare.size(), cut_.most) &&
           bare[bare.size() - 1 - after] == ids[ids.size() - 1 - after]) {
      ++after;
    }
    const auto end = static_cast<std::ptrdiff_t>(after);
    std::copy(ids.end() - end, ids.end(),
              ids.begin() + static_cast<std::ptrdiff_t>(cut_.most) - end);
    ids.resize(cut_.most);
    return ids;
  }

  [[noreturn]] void too_long(const std::string& where, const std::string& found) const {
    throw RequestError("This model reads at most " + std::to_string(longest()) + " tokens; " +
                           where + " has " + found +
                           ". Shorten it, or send \"truncate\": true, which cuts it at its end.",
                       where, kTooLong);
  }

  const Embedder& model_;
  const Cut cut_;
};

const std::string& prompt_of(const Fields& fields, const Head& head) {
  static const std::string kNone;
  if (!fields.has("prompt_name") && !head.default_prompt) return kNone;
  const std::string name =
      fields.has("prompt_name") ? fields.text("prompt_name") : *head.default_prompt;
  if (const std::string* found = head.prompt(name)) return *found;
  std::string known;
  for (const auto& one : head.prompts) known += (known.empty() ? "'" : ", '") + one.first + "'";
  throw RequestError(
      "prompt_name is '" + name + "'; this model's prompts are " + (known.empty() ? "none" : known),
      "prompt_name");
}

void require_embeddings(const Head& head) {
  if (head.kind == HeadKind::kClass) {
    throw RequestError("This model has classes and no embeddings", "", "no_embeddings");
  }
  if (head.kind == HeadKind::kScore) {
    throw RequestError("This model scores pairs of texts and has no embeddings", "",
                       "no_embeddings");
  }
}

// Returns the inputs: texts, or lists of token ids.
Values inputs_of(const Value& given) {
  if (given.is_string()) return {given};
  const Values& items = given.items();
  return items.empty() || items[0].is(jinja::Kind::kInt) ? Values{given} : items;
}

std::string in_base64(const std::vector<float>& values) {
  static constexpr char kDigits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<unsigned char> bytes;  // little-endian on any machine
  for (const float value : values) {
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    for (int shift = 0; shift < 32; shift += 8) {
      bytes.push_back(static_cast<unsigned char>(bits >> shift));
    }
  }
  std::string made;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t n = std::min<size_t>(3, bytes.size() - i);
    uint32_t three = 0;
    for (size_t k = 0; k < 3; ++k) three = three << 8 | (k < n ? bytes[i + k] : 0U);
    for (size_t k = 0; k < 4; ++k) made += k <= n ? kDigits[three >> (18 - 6 * k) & 63] : '=';
  }
  return made;
}

Value value_of(const EmbeddingPlan& plan, const std::vector<float>& vector) {
  if (plan.base64) return in_base64(vector);
  Values numbers;
  numbers.reserve(vector.size());
  for (const float number : vector) numbers.emplace_back(static_cast<double>(number));
  return jinja::make_list(std::move(numbers));
}

}  // namespace

EmbeddingPlan embedding_plan(const Value& request, const Embedder& model,
                             const std::function<bool()>& gone) {
  const Fields fields = checked_embedding(request);
  require_embeddings(model.head);
  const Values inputs = inputs_of(*fields.find("input"));
  if (inputs.size() > kMostInputs) {
    throw RequestError("input has " + std::to_string(inputs.size()) + " texts; at most " +
                           std::to_string(kMostInputs) + " are accepted",
                       "input");
  }
  EmbeddingPlan plan;
  plan.dimensions = fields.integer("dimensions").value_or(0);
  if (model.head.size > 0 && plan.dimensions > model.head.size) {
    throw RequestError("dimensions is " + std::to_string(plan.dimensions) +
                           "; this model's embeddings have " + std::to_string(model.head.size),
                       "dimensions");
  }
  const std::string& before = prompt_of(fields, model.head);
  const bool texts = std::all_of(inputs.begin(), inputs.end(),
                                 [](const Value& input) { return input.is_string(); });
  if (!fields.text("prompt_name").empty() && !texts) {
    throw RequestError("prompt_name is for texts; input has token ids", "prompt_name");
  }
  plan.model = fields.text("model");
  plan.user = fields.text("user");
  plan.salt = fields.text("cache_salt");
  plan.base64 = fields.text("encoding_format") == "base64";
  plan.normalize = model.head.normalize;
  const Planner planner(model, fields);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (gone && gone()) throw jinja::Abandoned();
    const std::string where = inputs.size() > 1 ? item("input", i) : "input";
    plan.prompts.push_back(inputs[i].is_string() ? planner.of_text(before + inputs[i].text(), where)
                                                 : planner.of_ids(inputs[i]));
    planner.check(plan.prompts.back(), where);
  }
  return plan;
}

std::vector<float> finished(const EmbeddingPlan& plan, const float* values, size_t n) {
  if (!std::all_of(values, values + n, [](float x) { return std::isfinite(x); })) {
    throw Error(WHERRY_INTERNAL,
                "The model's result holds NaN or infinity: the weights or the compiled model are "
                "damaged");
  }
  if (plan.dimensions > 0) n = std::min(n, static_cast<size_t>(plan.dimensions));
  std::vector<float> made(values, values + n);
  if (!plan.normalize) return made;
  double squares = 0;  // summed in order, as runtime_py/answer/vectors.py does: the same bits
  for (const float x : made) squares += static_cast<double>(x) * static_cast<double>(x);
  const double length = std::sqrt(squares);
  if (length == 0) return made;
  for (float& x : made) x /= static_cast<float>(length);
  return made;
}

std::string embedding_answer(const EmbeddingPlan& plan, const std::string& model,
                             const std::vector<std::vector<float>>& vectors) {
  Values data;
  int64_t tokens = 0;
  for (size_t i = 0; i < vectors.size(); ++i) {
    tokens += static_cast<int64_t>(plan.prompts[i].size());
    data.push_back(jinja::make_dict({{"index", Value::size(i)},
                                     {"embedding", value_of(plan, vectors[i])},
                                     {"object", "embedding"}}));
  }
  const Value usage = jinja::make_dict({{"prompt_tokens", tokens}, {"total_tokens", tokens}});
  return jinja::to_compact_json(
      jinja::make_dict({{"data", jinja::make_list(std::move(data))},
                        {"model", plan.model.empty() ? model : plan.model},
                        {"usage", usage},
                        {"object", "list"}}));
}

}  // namespace wherry::app
