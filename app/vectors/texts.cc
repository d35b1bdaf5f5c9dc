#include "app/vectors/texts.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "app/request/request_error.h"
#include "app/template/budget.h"
#include "app/value/code_points.h"

namespace wherry::app {

namespace {

// Characters that are tokenized for each token that is kept or allowed, at most, so that the work
// is bounded for texts of any length.
constexpr size_t kCharacters = 16;
constexpr char kTooLong[] = "context_length_exceeded";

std::string beginning_of(const std::string& text, size_t characters) {
  return text.substr(0, unicode::byte_of(text, characters));
}

bool begins_with(const Ids& ids, const Ids& expected, size_t n) {
  return ids.size() >= n &&
         std::equal(expected.begin(), expected.begin() + static_cast<ptrdiff_t>(n), ids.begin());
}

// Returns the tokens that two texts keep in `room` tokens: the longer one loses first.
std::pair<size_t, size_t> longest_first(size_t first, size_t second, size_t room) {
  const size_t shorter = std::min(first, second), half = room / 2;
  const size_t kept = 2 * shorter <= room ? shorter : half;
  return first <= second ? std::pair(kept, room - kept) : std::pair(room - kept, kept);
}

}  // namespace

Texts::Texts(const VectorModel& model, const Fields& fields, const Gone& gone)
    : model_(model),
      fields_(fields),
      gone_(gone),
      most_(longest()),
      cuts_(fields.truth("truncate")) {
  const std::optional<int64_t> given = fields.integer("truncate_prompt_tokens");
  if (!given) return;
  if (*given == 0) {
    throw RequestError("truncate_prompt_tokens takes a number of tokens from 1, or -1",
                       "truncate_prompt_tokens");
  }
  if (fields.has("truncate") && !fields.truth("truncate")) {
    throw RequestError("truncate is false and truncate_prompt_tokens is " + std::to_string(*given) +
                           ": send one of them",
                       "truncate_prompt_tokens");
  }
  if (*given != -1) most_ = std::min(most_, static_cast<size_t>(*given));
  cuts_ = true;
}

size_t Texts::longest() const {
  const int64_t own = model_.head.max_tokens;
  return static_cast<size_t>(own > 0 ? std::min(own, model_.context) : model_.context);
}

void Texts::check_here() const {
  if (gone_ && gone_()) throw jinja::Abandoned();
}

void Texts::check(const Ids& ids, const std::string& where) const {
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

void Texts::check_length(const std::string& text, const std::string& where) const {
  // No token has more bytes on average, so that a text of this length is not tokenized.
  if (text.size() > 128 * longest() && text.size() > 65536) {
    too_long(where, std::to_string(longest() + 1) + " tokens or more");
  }
}

void Texts::too_long(const std::string& where, const std::string& match) const {
  throw RequestError("This model reads at most " + std::to_string(longest()) + " tokens; " + where +
                         " has " + match +
                         ". Shorten it, or send \"truncate\": true, which cuts it at its end.",
                     where, kTooLong);
}

Ids Texts::encoded(const std::string& text, bool add_special_tokens,
                   const std::string& where) const {
  check_length(text, where);
  try {
    return model_.tokenizer->encode_at_most(text, add_special_tokens,
                                            static_cast<int64_t>(longest()));
  } catch (const text::TooManyTokens& many) {
    too_long(where, std::to_string(many.at_least) + " tokens or more");
  }
}

Ids Texts::of_text(const std::string& text, const std::string& where) const {
  check_here();
  Ids ids = cuts_ ? cut_text(text) : encoded(text, true, where);
  check(ids, where);
  return ids;
}

Ids Texts::of_ids(const Value& list, const std::string& where) const {
  Ids ids;
  for (const Value& id : list.items()) ids.push_back(static_cast<int32_t>(id.integer()));
  if (cuts_ && ids.size() > most_) ids.resize(most_);
  check(ids, where);
  return ids;
}

Ids Texts::of_pair(const std::string& query, const std::string& document,
                   const std::string& where) const {
  check_here();
  if (!cuts_) {
    check_length(query, where);
    check_length(document, where);
  }
  const text::Pair pair =
      cuts_ ? cut_pair(query, document) : model_.tokenizer->encode_pair(query, document);
  check(pair.ids, where);
  // The compiled library finds the second text by the separator.
  const int32_t separator = model_.head.separator;
  if (separator < 0) return pair.ids;
  const auto& kinds = pair.segments;
  if (std::none_of(kinds.begin(), kinds.end(), [](int32_t kind) { return kind != 0; })) {
    return pair.ids;
  }
  const auto at = std::find(pair.ids.begin(), pair.ids.end(), separator) - pair.ids.begin();
  for (size_t i = 0; i < kinds.size(); ++i) {
    if (kinds[i] != (static_cast<ptrdiff_t>(i) > at ? 1 : 0)) {
      throw RequestError(where + " or the query contains " +
                             model_.tokenizer->token_of(separator).value_or("the separator") +
                             ", the token between them",
                         "documents");
    }
  }
  return pair.ids;
}

Ids Texts::of_prompt(const std::function<std::string(const std::string&)>& written,
                     const std::string& document, const std::string& where) const {
  check_here();
  const auto fits = static_cast<size_t>(model_.context - 1);  // a token for the answer
  std::string kept = cuts_ ? beginning_of(document, kCharacters * most_) : document;
  const size_t most = cuts_ ? std::min(most_, fits) : fits;
  while (true) {
    const std::string prompt = written(kept);
    const Ids ids = cuts_ ? model_.tokenizer->encode(prompt, false) : encoded(prompt, false, where);
    if (ids.size() <= most) {
      check(ids, where);
      return ids;
    }
    if (!cuts_) too_long(where, std::to_string(ids.size()) + " tokens");
    const size_t count = model_.tokenizer->encode(kept, false).size(), over = ids.size() - most;
    std::string shorter = count > over ? beginning(kept, count - over) : "";
    if (shorter.empty() || shorter == kept) break;
    kept = std::move(shorter);
  }
  throw RequestError("At most " + std::to_string(most) +
                         " tokens are read, and the query and the prompt around it have more. "
                         "Shorten the query.",
                     "query", kTooLong);
}

std::string Texts::first_tokens(const std::string& text, const char* field) const {
  const int64_t most = fields_.integer(field).value_or(0);
  return most == 0 ? text : beginning(text, static_cast<size_t>(most));
}

// Returns the beginning of a text that has at most `most` tokens, without special ones; a character
// of several tokens is left out as a whole.
std::string Texts::beginning(const std::string& text, size_t most) const {
  const std::string kept = beginning_of(text, kCharacters * most);
  const Ids ids = model_.tokenizer->encode(kept, false);
  if (ids.size() <= most) return kept;
  std::string written;  // what the tokens stand for, in tokenizers that change no text
  for (size_t i = 0; i < most; ++i) written += model_.tokenizer->piece(ids[i]);
  if (kept.compare(0, written.size(), written) == 0) {
    size_t end = written.size();
    while (end > 0 && end < kept.size() && unicode::is_continuation(kept[end])) {
      --end;
    }
    return kept.substr(0, end);
  }
  // In others the shortest text that begins with these tokens.
  size_t least = 0, enough = unicode::count_code_points(kept);
  while (least < enough) {
    const size_t middle = least + (enough - least) / 2;
    const Ids matches = model_.tokenizer->encode(beginning_of(kept, middle), false);
    if (begins_with(matches, ids, most)) {
      enough = middle;
    } else {
      least = middle + 1;
    }
  }
  return beginning_of(kept, least);
}

// Returns the tokens of a text, cut at its end; special tokens after it stay.
Ids Texts::cut_text(const std::string& text) const {
  Ids ids = model_.tokenizer->encode(beginning_of(text, kCharacters * most_), true);
  if (ids.size() <= most_) return ids;
  const Ids bare = model_.tokenizer->encode("", true);
  size_t after = 0;
  while (after < std::min(bare.size(), most_) &&
         bare[bare.size() - 1 - after] == ids[ids.size() - 1 - after]) {
    ++after;
  }
  const auto end = static_cast<ptrdiff_t>(after);
  std::copy(ids.end() - end, ids.end(), ids.begin() + static_cast<ptrdiff_t>(most_) - end);
  ids.resize(most_);
  return ids;
}

// Returns a pair whose longer text is cut first, as cross-encoders do.
text::Pair Texts::cut_pair(const std::string& query, const std::string& document) const {
  text::Pair pair = model_.tokenizer->encode_pair(beginning_of(query, kCharacters * most_),
                                                  beginning_of(document, kCharacters * most_));
  if (pair.ids.size() <= most_) return pair;
  const auto count = [&](int32_t of) {
    return static_cast<size_t>(std::count(pair.texts.begin(), pair.texts.end(), of));
  };
  const size_t special = count(-1);
  if (most_ < special + 2) {
    throw RequestError("truncate_prompt_tokens is " + std::to_string(most_) +
                           "; a pair of texts needs " + std::to_string(special + 2) + " or more",
                       "truncate_prompt_tokens");
  }
  auto [first, second] = longest_first(count(0), count(1), most_ - special);
  text::Pair result;
  for (size_t i = 0; i < pair.ids.size(); ++i) {
    size_t* left = pair.texts[i] == 0 ? &first : pair.texts[i] == 1 ? &second : nullptr;
    if (left != nullptr && *left == 0) continue;
    if (left != nullptr) --*left;
    result.ids.push_back(pair.ids[i]);
    result.segments.push_back(pair.segments[i]);
    result.texts.push_back(pair.texts[i]);
  }
  return result;
}

std::vector<std::string> texts_of(const Value& list) {
  const auto text_of = [](const Value& one) {
    return one.is_string() ? one.text() : one.dict().find("text")->text();
  };
  if (!list.is(json::Kind::kList)) return {text_of(list)};
  std::vector<std::string> texts;
  for (const Value& one : list.items()) texts.push_back(text_of(one));
  return texts;
}

}  // namespace wherry::app
